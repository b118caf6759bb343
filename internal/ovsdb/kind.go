// Package ovsdb is a client of a running ovsdb-server, and holds what every
// reader of OVSDB data shares: the names of the databases, rows, and the text
// that ovs-vsctl prints. Database files are the subject of package file below it.
package ovsdb

// The names of the databases in their schemas. Only the schema identifies a
// database: the name of its file does not.
const (
	OVS = "Open_vSwitch"
	NB  = "OVN_Northbound"
	SB  = "OVN_Southbound"
)
