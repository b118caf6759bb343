package graph

import (
	"encoding/json"
	"strconv"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// vlan returns the VLAN tag of a port. If the ML2/OVS agent chose the tag, the
// text begins with the network that the tag is for: "vxlan 802 (tag 1)".
func vlan(row ovsdb.Row) string {
	tag, network := tagOf(row.Int("tag")), agentNetwork(row.Map("other_config"))
	if tag == "" || network == "" {
		return network + tag
	}
	return network + " (" + tag + ")"
}

// tagOf returns the VLAN tag of a port of OVS or OVN, "" if it has none.
func tagOf(tag int, ok bool) string {
	if ok {
		return "tag " + strconv.Itoa(tag)
	}
	return ""
}

// agentNetwork returns the network that the ML2/OVS agent wrote into a port's
// other_config. The agent writes None for what a network lacks.
func agentNetwork(config map[string]string) string {
	value := func(key string) string {
		if config[key] == "None" {
			return ""
		}
		return config[key]
	}
	network := strings.TrimSpace(value("network_type") + " " + value("segmentation_id"))
	if physical := value("physical_network"); physical != "" {
		network += " on " + physical
	}
	return network
}

// trunks returns notes on the ports of trunks of the ML2/OVS agent by their
// iface-ids: the agent writes the sub-ports of a trunk into the row of the trunk's
// interface.
func trunks(interfaces []ovsdb.Row) map[string]string {
	notes := map[string]string{}
	for _, row := range interfaces {
		ids := row.Map("external_ids")
		var subports []string
		if json.Unmarshal([]byte(ids["subport_ids"]), &subports) != nil {
			continue
		}
		notes[ids["iface-id"]] = "trunk" + counted(len(subports), "sub-port")
		for _, id := range subports {
			notes[id] = "sub-port of " + row.String("name")
		}
	}
	return notes
}
