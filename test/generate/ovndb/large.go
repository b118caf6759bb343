package ovndb

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Large is a database of a large cluster of Kubernetes: pods NS/pod-N on nodes, each node
// with a switch, and an ACL for each tenth pod.
type Large struct {
	NB, SB string
	Flows  []string // the UUIDs of some logical flows, from all tables
}

// Sizes of a Large.
const (
	podsPerNode    = 40
	podsPerACL     = 10
	perTransaction = 1000
	stages         = 27
	listed         = 2000 // logical flows in Flows
)

// Generate writes a database with a number of ports and of logical flows.
func Generate(tb testing.TB, nbSchema, sbSchema string, ports, flows int) Large {
	tb.Helper()
	g := generator{random: rand.New(rand.NewPCG(1, 2)), nb: Create(tb, nbSchema), sb: Create(tb, sbSchema)}
	for node := range (ports + podsPerNode - 1) / podsPerNode {
		g.node(node, min(podsPerNode, ports-node*podsPerNode))
	}
	for n := 0; n < flows; n += perTransaction {
		g.flows(n, min(perTransaction, flows-n), flows/listed+1)
	}
	return Large{NB: g.nb.Close(), SB: g.sb.Close(), Flows: g.listed}
}

type generator struct {
	random    *rand.Rand
	nb, sb    *File
	datapaths []string
	acls      []string
	listed    []string
}

// node writes a node with its switch and pods.
func (g *generator) node(n, pods int) {
	name, datapath, chassis, encap := fmt.Sprintf("worker-%d", n), newUUID(g.random), newUUID(g.random), newUUID(g.random)
	g.datapaths = append(g.datapaths, datapath)
	ports, bindings, acls, references := map[string]Row{}, map[string]Row{}, map[string]Row{}, []any{}
	for p := range pods {
		id, port := newUUID(g.random), fmt.Sprintf("ns%d_pod-%d-%d", n%200, n, p)
		mac := fmt.Sprintf("0a:58:0a:%02x:%02x:%02x", n>>8, n&255, p+3)
		address := fmt.Sprintf("%s 10.%d.%d.%d", mac, n>>8, n&255, p+3)
		ids := Map("namespace", fmt.Sprintf("ns%d", n%200), "pod", "true")
		references = append(references, UUID(id))
		ports[id] = Row{"name": port, "addresses": address, "port_security": address, "external_ids": ids, "up": true,
			"options": Map("requested-chassis", name, "iface-id-ver", id)}
		bindings[newUUID(g.random)] = Row{"logical_port": port, "datapath": UUID(datapath), "tunnel_key": p + 1, "mac": address,
			"chassis": UUID(chassis), "external_ids": ids, "up": true}
		if p%podsPerACL == 0 {
			acl := newUUID(g.random)
			g.acls = append(g.acls, acl)
			acls[acl] = Row{"priority": 1001, "action": "allow-related", "direction": "to-lport", "match": "outport == @a" + acl[:8],
				"external_ids": Map("k8s.ovn.org/owner-type", "NetworkPolicy", "k8s.ovn.org/name", fmt.Sprintf("ns%d:policy-%d", n%200, p))}
		}
	}
	router := newUUID(g.random)
	references = append(references, UUID(router))
	ports[router] = Row{"name": "stor-" + name, "type": "router", "addresses": "router", "options": Map("router-port", "rtos-"+name)}
	gateway := newUUID(g.random)
	g.nb.Add(Rows{"Logical_Switch": {newUUID(g.random): Row{"name": name, "ports": Set(references...), "other_config": Map("subnet", fmt.Sprintf("10.%d.%d.0/24", n>>8, n&255))}},
		"Logical_Switch_Port": ports, "ACL": acls,
		"Logical_Router_Port": {gateway: Row{"name": "rtos-" + name, "mac": fmt.Sprintf("0a:58:0a:%02x:%02x:01", n>>8, n&255), "networks": fmt.Sprintf("10.%d.%d.1/24", n>>8, n&255)}},
		"Logical_Router":      {newUUID(g.random): Row{"name": "GR_" + name, "ports": UUID(gateway)}}})
	g.sb.Add(Rows{"Chassis": {chassis: Row{"name": chassis, "hostname": name, "encaps": UUID(encap)}},
		"Encap":            {encap: Row{"type": "geneve", "ip": fmt.Sprintf("172.18.%d.%d", n>>8, n&255), "chassis_name": chassis}},
		"Datapath_Binding": {datapath: Row{"tunnel_key": n + 1, "external_ids": Map("name", name, "logical-switch", newUUID(g.random))}},
		"Port_Binding":     bindings})
}

// flows writes logical flows as ovn-northd does; a tenth has the hint of an ACL.
func (g *generator) flows(from, count, every int) {
	rows := map[string]Row{}
	for i := from; i < from+count; i++ {
		id := newUUID(g.random)
		if i%every == 0 {
			g.listed = append(g.listed, id)
		}
		ids := []string{"source", "northd.c:6789", "stage-name", "ls_in_acl_eval"}
		if i%10 == 0 {
			ids = append(ids, "stage-hint", g.acls[g.random.IntN(len(g.acls))][:8])
		}
		rows[id] = Row{"logical_datapath": UUID(g.datapaths[i%len(g.datapaths)]), "pipeline": []string{"ingress", "egress"}[i%2], "table_id": i % stages,
			"priority": i%200 + 1, "match": fmt.Sprintf(`reg0[7] == 1 && (outport == "ns%d_pod-%d" && ip4 && ip4.src == 10.%d.%d.0/24 && tcp.dst == %d)`, i%200, i, i>>16&255, i>>8&255, i&65535),
			"actions": "reg0[1] = 1; next;", "external_ids": Map(ids...)}
	}
	g.sb.Add(Rows{"Logical_Flow": rows})
}
