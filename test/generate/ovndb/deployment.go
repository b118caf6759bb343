package ovndb

import (
	"fmt"
	"testing"
)

// Deployment are the databases of a deployment with one node, the chassis "worker": a router
// with switches, of which an ovn-northd makes more than 13,000 logical flows. The southbound
// database has only the chassis.
type Deployment struct{ NB, SB, OVS string }

// NewDeployment writes the databases of a Deployment with these schemas.
func NewDeployment(tb testing.TB, nbSchema, sbSchema, ovsSchema string) Deployment {
	tb.Helper()
	return Deployment{largeNB(tb, nbSchema), emptySB(tb, sbSchema), worker(tb, ovsSchema)}
}

const (
	switches       = 64
	portsPerSwitch = 40
)

// numbered returns a UUID with a number.
func numbered(kind, n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind<<24|n, n) }

// largeNB writes a router with switches and their ports, each tenth of which has an ACL.
func largeNB(tb testing.TB, schema string) string {
	tb.Helper()
	f := Create(tb, schema)
	rows := Rows{"NB_Global": {numbered(1, 0): {}}, "Logical_Switch": {}, "Logical_Switch_Port": {}, "Logical_Router_Port": {}, "ACL": {}}
	var routerPorts []any
	for n := range switches {
		var ports, acls []any
		for p := range portsPerSwitch {
			uuid, name := numbered(2, n*portsPerSwitch+p), fmt.Sprintf("pod-%d-%d", n, p)
			address := fmt.Sprintf("0a:58:0a:00:%02x:%02x 10.0.%d.%d", n, p+2, n, p+2)
			rows["Logical_Switch_Port"][uuid] = Row{"name": name, "addresses": address, "port_security": address}
			ports = append(ports, UUID(uuid))
			if p%10 == 0 {
				acl := numbered(3, n*portsPerSwitch+p)
				rows["ACL"][acl] = Row{"priority": 1001, "direction": "to-lport", "action": "allow-related", "match": fmt.Sprintf("outport == %q && ip4.src == {10.1.0.0/16, 10.2.0.0/16} && tcp.dst == {80, 443}", name)}
				acls = append(acls, UUID(acl))
			}
		}
		join, port := numbered(4, n), numbered(5, n)
		rows["Logical_Switch_Port"][join] = Row{"name": fmt.Sprintf("sw%d-r", n), "type": "router", "addresses": "router", "options": Map("router-port", fmt.Sprintf("r-sw%d", n))}
		rows["Logical_Router_Port"][port] = Row{"name": fmt.Sprintf("r-sw%d", n), "mac": fmt.Sprintf("0a:58:0a:00:%02x:01", n), "networks": fmt.Sprintf("10.0.%d.1/24", n)}
		rows["Logical_Switch"][numbered(6, n)] = Row{"name": fmt.Sprintf("sw%d", n), "ports": Set(append(ports, UUID(join))...), "acls": Set(acls...)}
		routerPorts = append(routerPorts, UUID(port))
	}
	rows["Logical_Router"] = map[string]Row{numbered(7, 0): {"name": "r", "ports": Set(routerPorts...)}}
	f.Add(rows)
	return f.Close()
}

// emptySB writes a database with the chassis of the node.
func emptySB(tb testing.TB, schema string) string {
	tb.Helper()
	f := Create(tb, schema)
	f.Add(Rows{"SB_Global": {numbered(1, 1): {}},
		"Encap":           {numbered(8, 0): {"type": "geneve", "ip": "192.0.2.1", "chassis_name": "worker"}},
		"Chassis":         {numbered(9, 0): {"name": "worker", "hostname": "worker", "encaps": UUID(numbered(8, 0))}},
		"Chassis_Private": {numbered(10, 0): {"name": "worker", "chassis": UUID(numbered(9, 0))}}})
	return f.Close()
}

// worker writes the OVS database of a node with the ports of a switch.
func worker(tb testing.TB, schema string) string {
	tb.Helper()
	f := Create(tb, schema)
	rows := Rows{"Interface": {}, "Port": {}}
	var ports []any
	for p := range portsPerSwitch {
		name, uuid := fmt.Sprintf("veth%d", p), numbered(11, p)
		rows["Interface"][uuid] = Row{"name": name, "ofport": p + 1, "external_ids": Map("iface-id", fmt.Sprintf("pod-0-%d", p))}
		rows["Port"][numbered(12, p)] = Row{"name": name, "interfaces": UUID(uuid)}
		ports = append(ports, UUID(numbered(12, p)))
	}
	rows["Bridge"] = map[string]Row{numbered(13, 0): {"name": "br-int", "ports": Set(ports...)}}
	rows["Open_vSwitch"] = map[string]Row{numbered(14, 0): {"bridges": UUID(numbered(13, 0)),
		"external_ids": Map("system-id", "worker", "ovn-encap-ip", "192.0.2.1", "ovn-encap-type", "geneve")}}
	f.Add(rows)
	return f.Close()
}
