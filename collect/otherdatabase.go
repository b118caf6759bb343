package collect

import (
	"cmp"
	"fmt"
)

// otherSchemas returns which program has a database that no replica serves, by the name of its
// schema.
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

// otherDatabase returns the remark that names a database which no replica serves.
func otherDatabase(origin, schema string) string {
	return fmt.Sprintf("%s is not used: it is the database %q %s", origin, schema, cmp.Or(otherSchemas()[schema], "of another program"))
}
