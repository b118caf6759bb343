// Package ovsdb is a client of a running ovsdb-server. It also has what all readers of
// OVSDB data share: the names of the databases, rows, and a parser of the output of
// ovs-vsctl. Package file below it handles database files.
package ovsdb

// The names of the databases in their schemas. Only the schema identifies a
// database: the name of its file does not.
const (
	OVS = "Open_vSwitch"
	NB  = "OVN_Northbound"
	SB  = "OVN_Southbound"
)
