package rules

import (
	"testing"

	"ovs-offline/test/generate/ovndb"
)

// ruled builds a port group with an ACL, with ports or without.
func ruled(match string, ports bool, columns ovndb.Row) func(*network) {
	return func(n *network) {
		n.owner("Logical_Switch", "blue", ovndb.Row{})
		row := ovndb.Row{"priority": 1001, "direction": "to-lport", "action": "drop", "match": match}
		for column, value := range columns {
			row[column] = value
		}
		group := ovndb.Row{"name": "web", "acls": n.addNB("ACL", row)}
		if ports {
			port := n.addNB("Logical_Switch_Port", ovndb.Row{"name": "vm"})
			n.has("blue", "ports", port)
			group["ports"] = port
		}
		n.addNB("Port_Group", group)
		n.addNB("Address_Set", ovndb.Row{"name": "known"})
		n.addNB("Meter", ovndb.Row{"name": "slow", "unit": "pktps"})
	}
}

func TestMatches(t *testing.T) {
	log := func(meter string) ovndb.Row { return ovndb.Row{"log": true, "meter": meter} }
	const acl = "ACL of port group web (priority 1001, drop)"
	test(t, map[string]testCase{
		"a readable match": {matchMalformed, ruled("outport == @web && ip4", true, nil), nil},
		"an unreadable match": {matchMalformed, ruled("outport == @web && ip4.src=10.0.0.1", true, nil),
			[]string{"error: " + acl + ": its match can't be read: field `ip4.src' is compared with nothing, in outport == @web && ip4.src=10.0.0.1"}},
		"one of no port": {matchMalformed, ruled("outport == @web && (ip4", false, nil), nil},
		"known sets": {matchRefersToNothing,
			ruled("outport == @web && ip4.src == {$known, $web_ip4} && eth.dst == $svc_monitor_mac && ip6.src == $web_ip6", true,
				nil), nil},
		"an unknown set": {matchRefersToNothing, ruled("outport == @web && ip4.src == {$known, $gone}", true, nil),
			[]string{"error: " + acl + " refers to address set gone, which does not exist"}},
		"an unknown group": {matchRefersToNothing, ruled("outport == @gone", true, nil),
			[]string{"error: " + acl + " refers to port group gone, which does not exist"}},
		"a name in a comment": {matchRefersToNothing, ruled("outport == @web /* $gone */ && inport == \"$gone\"", true, nil),
			nil},
		"a known meter": {meterMissing, ruled("outport == @web", true, log("slow")), nil},
		"an unknown meter": {meterMissing, ruled("outport == @web", true, log("gone")),
			[]string{"warning: " + acl + " logs with meter gone, which does not exist"}},
		"a meter without logs": {meterMissing, ruled("outport == @web", true, ovndb.Row{"meter": "gone"}), nil},
	})
}
