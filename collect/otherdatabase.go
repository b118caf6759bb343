package collect

import (
	"cmp"
	"fmt"
)

// otherSchemas are the databases of Open vSwitch's and OVN's programs that no replica serves, by
// the name of their schemas, and what they are for.
func otherSchemas() map[string]string {
	return map[string]string{
		"OVN_IC_Northbound":     "what ovn-ic connects zones by",
		"OVN_IC_Southbound":     "what ovn-ic connects zones by",
		"OVN_Bridge_Controller": "the logical flows of ovn-br-controller",
		"hardware_vtep":         "the configuration of a VTEP gateway",
		"Local_Config":          "the connections of an ovsdb-server",
		"_Server":               "the state of an ovsdb-server",
	}
}

// otherDatabase returns the remark about a database that is none of those that a replica serves.
func otherDatabase(origin, schema string) string {
	return fmt.Sprintf("%s is not used: it is the database %q, %s", origin, schema, cmp.Or(otherSchemas()[schema], "which is not one of Open vSwitch or OVN"))
}
