package rules

import (
	"slices"
	"strings"
)

// TablesOf returns the northbound tables that the logical flows of a stage are mostly about, the
// likeliest first; none for a stage about no table in particular.
func TablesOf(stage string) (tables []string) {
	for _, s := range []struct {
		word   string // in the name of the stage
		tables []string
	}{
		{"acl", []string{"ACL", "Port_Group"}}, // also of ls_in_acl_after_lb
		{"lb", []string{"Load_Balancer", "Load_Balancer_Group"}},
		{"nat", []string{"NAT", "Load_Balancer"}},
		{"stateful", []string{"Load_Balancer", "ACL", "NAT"}},
		{"qos", []string{"QoS"}},
		{"dhcp", []string{"DHCP_Options"}},
		{"dns", []string{"DNS"}},
		{"policy", []string{"Logical_Router_Policy"}},
		{"routing", []string{"Logical_Router_Static_Route", "Logical_Router_Port"}},
	} {
		if strings.Contains(stage, s.word) {
			tables = append(tables, s.tables...)
		}
	}
	return tables
}

// IsAbout reports whether the logical flows of a stage are mostly about a table.
func IsAbout(stage, table string) bool {
	tables := TablesOf(stage)
	return len(tables) > 0 && tables[0] == table
}

// hintTables lists the tables whose rows ovn-northd gives as hints (northd/northd.c), the table
// that a stage is about first.
func hintTables(stage string) []string {
	tables := []string{"ACL", "NAT", "Load_Balancer", "Logical_Router_Static_Route", "Logical_Router_Policy", "QoS", "Logical_Switch_Port",
		"Logical_Router_Port", "DHCP_Options", "Forwarding_Group", "Static_MAC_Binding", "DNS", "Logical_Switch", "Logical_Router", "Mirror"}
	if about := TablesOf(stage); len(about) > 0 {
		at := slices.Index(tables, about[0])
		tables = slices.Insert(slices.Delete(tables, at, at+1), 0, about[0])
	}
	return tables
}
