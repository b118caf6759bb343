package logicalflows

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// ovn-trace asks for the whole database. What it does not need to parse logical flows is
// left out, because the server spends most of the time of a check on it: tables that
// grow with the deployment, and columns of logical flows.
var (
	unneededTables  = []string{"MAC_Binding", "FDB", "Multicast_Group", "Load_Balancer", "Service_Monitor", "IGMP_Group", "DNS", "Chassis", "Chassis_Private", "Encap", "ECMP_Nexthop", "Learned_Route", "Advertised_Route", "Advertised_MAC_Binding"}
	unneededColumns = map[string][]string{
		"Logical_Flow": {"priority", "controller_meter", "external_ids", "tags", "flow_desc"},
		"Port_Binding": {"external_ids", "mac", "nat_addresses", "port_security", "encap", "chassis", "additional_chassis", "additional_encap", "requested_chassis", "requested_additional_chassis", "gateway_chassis", "ha_chassis_group", "mirror_rules", "mirror_port", "up", "virtual_parent"},
	}
)

// message is a message of a client of ovsdb-server (JSON-RPC 1.0).
type message struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// copyRequests copies the requests of ovn-trace to the server until their end. Requests
// to monitor the database leave out what is not needed.
func copyRequests(to io.Writer, from io.Reader) error {
	in, out := json.NewDecoder(from), json.NewEncoder(to)
	for {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return err
		}
		if err := out.Encode(reduced(raw)); err != nil {
			return err
		}
	}
}

// reduced returns a request without what is not needed. The third parameter of the
// methods that begin with "monitor" has the wanted columns of each table, in one
// object or a list of objects (RFC 7047, 4.1.5, and ovsdb-server(7), 4.1.12 and later).
func reduced(raw json.RawMessage) any {
	var message message
	var tables map[string]json.RawMessage
	if json.Unmarshal(raw, &message) != nil || !strings.HasPrefix(message.Method, "monitor") || len(message.Params) < 3 || json.Unmarshal(message.Params[2], &tables) != nil {
		return raw
	}
	for _, table := range unneededTables {
		delete(tables, table)
	}
	for table, unneeded := range unneededColumns {
		var requests []map[string]any
		if json.Unmarshal(tables[table], &requests) != nil {
			continue
		}
		for _, request := range requests {
			if columns, ok := request["columns"].([]any); ok {
				request["columns"] = slices.DeleteFunc(columns, func(value any) bool {
					name, _ := value.(string)
					return slices.Contains(unneeded, name)
				})
			}
		}
		if text, err := json.Marshal(requests); err == nil {
			tables[table] = text
		}
	}
	text, err := json.Marshal(tables)
	if err != nil {
		return raw
	}
	message.Params[2] = text
	return message
}
