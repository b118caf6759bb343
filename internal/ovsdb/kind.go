// Package ovsdb is a client of a running ovsdb-server, and holds what every
// reader of OVSDB data shares: the names of the databases, rows, and the text
// that ovs-vsctl prints. Database files are the subject of package file below it.
package ovsdb

import "ovs-offline/internal/workdir"

// The names of the databases in their schemas. Only the schema identifies a
// database: the name of its file does not.
const (
	OVS = "Open_vSwitch"
	NB  = "OVN_Northbound"
	SB  = "OVN_Southbound"
)

// Name returns the schema name of the database of a kind.
func Name(k workdir.Kind) string {
	switch k {
	case workdir.OVS:
		return OVS
	case workdir.NB:
		return NB
	default:
		return SB
	}
}

// KindOf returns the kind of the database with a schema name, "" for a database
// that a workdir does not hold.
func KindOf(name string) workdir.Kind {
	for _, k := range workdir.Kinds() {
		if Name(k) == name {
			return k
		}
	}
	return ""
}
