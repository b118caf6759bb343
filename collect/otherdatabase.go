package collect

import (
	"cmp"
	"fmt"
)

// otherSchemas are the databases of Open vSwitch's and OVN's programs that no replica serves, by
// the names of their schemas, and whose they are.
func otherSchemas() map[string]string {
	return map[string]string{
		"OVN_IC_Northbound":     "of ovn-ic, which connects zones",
		"OVN_IC_Southbound":     "of ovn-ic, which connects zones",
		"OVN_Bridge_Controller": "of ovn-br-controller",
		"hardware_vtep":         "of a VTEP gateway",
		"Local_Config":          "of an ovsdb-server, with its connections",
		"_Server":               "of an ovsdb-server, with its state",
	}
}

// otherDatabase returns the remark about a database that is none of those that a replica serves.
func otherDatabase(origin, schema string) string {
	return fmt.Sprintf("%s is not used: it is the database %q %s", origin, schema, cmp.Or(otherSchemas()[schema], "of another program"))
}
