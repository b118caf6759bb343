package ovnkube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// asked is the answer of trace to one question.
type asked struct {
	From, To, Error string
	Answer          *answered
}

type answered struct {
	Verdict string
	Missing []string
	Return  *answered
}

// verdict returns the verdict about the packet and its reply.
func (a asked) verdict() string {
	switch {
	case a.Answer == nil:
		return "error"
	case a.Answer.Verdict == "REACHABLE" && a.Answer.Return != nil && a.Answer.Return.Verdict == "UNDETERMINED":
		return "undetermined"
	case a.Answer.Verdict == "ONE-WAY": // nobody gets an answer
		return "unreachable"
	}
	return strings.ToLower(a.Answer.Verdict)
}

// TestAnswersAreWhatRealPacketsDid asks all questions by the names that users type.
func TestAnswersAreWhatRealPacketsDid(t *testing.T) {
	need(t)
	text, err := json.Marshal(lab.truths)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "questions.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var answers []asked
	read(t, &answers, run("-w", lab.nodes, "trace", "--file", file, "-o", "json"), 1, 3)
	if len(answers) != len(lab.truths) {
		t.Fatalf("%d answers, %d questions", len(answers), len(lab.truths))
	}
	count := map[string]int{}
	for i, a := range answers {
		truth, verdict := lab.truths[i], a.verdict()
		switch {
		case verdict == truth.Expect:
			count["right "+verdict]++
		case verdict == "undetermined":
			count["undetermined"]++
			t.Logf("undetermined: %s to %s, %s", truth.From, truth.To, truth.Protocol)
			if len(a.Answer.Missing) == 0 && (a.Answer.Return == nil || len(a.Answer.Return.Missing) == 0) {
				t.Errorf("%s to %s: no cause", truth.From, truth.To)
			}
		default:
			count["wrong"]++
			t.Errorf("%s to %s, %s: %s, and real packets say %s: %s", truth.From, truth.To, truth.Protocol, verdict, truth.Expect, a.Error)
		}
	}
	t.Logf("%d questions: %v", len(answers), count)
	right := count["right reachable"] + count["right unreachable"] + count["right ambiguous"]
	if right*100 < 97*len(answers) || len(answers) < 600 {
		t.Errorf("%d of %d questions are answered right", right, len(answers))
	}
}

// TestReachIsWhatRealPacketsDid compares the cells of the pods with real packets.
func TestReachIsWhatRealPacketsDid(t *testing.T) {
	need(t)
	var matrix struct {
		Cells []struct {
			Port  string
			Asked []struct{ From, To, Verdict string }
		}
	}
	read(t, &matrix, run("-w", lab.nodes, "reach", "--port", fmt.Sprintf("tcp/%d,icmp", ServerPort), "--all-members", "-o", "json"), 3)
	type cell struct{ from, to, port string }
	truth := map[cell]string{}
	for _, q := range lab.truths {
		to, _ := strings.CutSuffix(q.To, fmt.Sprintf(":%d", ServerPort))
		port := map[string]string{"tcp": fmt.Sprintf("tcp/%d", ServerPort), "icmp": "icmp"}[q.Protocol]
		if q.Family == 0 && q.Network == "" && port != "" {
			truth[cell{q.From, to, port}] = q.Expect
		}
	}
	count := map[string]int{}
	for _, c := range matrix.Cells {
		for _, pair := range c.Asked {
			want, known := truth[cell{pair.From, pair.To, c.Port}]
			if !known {
				continue
			}
			switch verdict := (asked{Answer: &answered{Verdict: pair.Verdict}}).verdict(); verdict {
			case want:
				count["right"]++
			case "undetermined":
				count[verdict]++
			default:
				t.Errorf("%s to %s, %s: %s, and real packets say %s", pair.From, pair.To, c.Port, verdict, want)
			}
		}
	}
	t.Logf("%v", count)
	if total := count["right"] + count["undetermined"]; total < 600 || count["undetermined"]*100 > total*3 {
		t.Errorf("%v of %d cells", count, len(matrix.Cells))
	}
}

// TestReachOfTheWholeCluster asks about all ports of the policies and services. Who is in a secondary
// network is asked about that network alone.
func TestReachOfTheWholeCluster(t *testing.T) {
	need(t)
	var matrix struct {
		Remarks []string
		Cells   []struct {
			From, To string
			Asked    []struct{ Verdict, Reply string }
		}
	}
	read(t, &matrix, run("-w", lab.nodes, "reach", "-o", "json"), 3)
	asked, undetermined := 0, 0
	for _, c := range matrix.Cells {
		network := func(name string) string {
			network, _, _ := strings.Cut(strings.TrimPrefix(name, "lan: "), "_")
			return network
		}
		if isSecondary := strings.HasPrefix(c.From, "lan: ") || strings.HasPrefix(c.To, "lan: "); isSecondary && network(c.From) != network(c.To) {
			t.Errorf("%s to %s is asked", c.From, c.To)
		}
		for _, answer := range c.Asked {
			asked++
			if answer.Verdict == "UNDETERMINED" || answer.Reply == "UNDETERMINED" {
				undetermined++
			}
		}
	}
	t.Logf("%d questions, %d undetermined", asked, undetermined)
	if asked < 5000 || undetermined*100 > asked*3 || !strings.Contains(strings.Join(matrix.Remarks, "\n"), "are in secondary networks") {
		t.Errorf("%d of %d questions are undetermined; remarks: %q", undetermined, asked, matrix.Remarks)
	}
}

// TestEveryFlowHasAName lists all flows of the integration bridge and of the bridge to the
// outside. Open vSwitch itself makes one: the flow of a bridge without others.
func TestEveryFlowHasAName(t *testing.T) {
	need(t)
	var list struct {
		Flows []struct{ Bridge, Cookie, Match, Stage, For, Flow string }
	}
	read(t, &list, run("-w", lab.nodes, "flows", "-o", "json"))
	count, without := map[string]int{}, 0
	for _, flow := range list.Flows {
		count[flow.Bridge]++
		isDefault := flow.Bridge == "br-ex" && flow.Cookie == "0x0" && flow.Match == "" && strings.HasSuffix(flow.Flow, "actions=NORMAL")
		if named := flow.For != "" || flow.Cookie == "0x0" && flow.Stage != ""; !named && !isDefault || flow.For == "no row has its cookie" {
			without++
			t.Logf("no name: %s", flow.Flow)
		}
	}
	if without > 0 || count["br-int"] < 1000 || count["br-ex"] < 100 {
		t.Errorf("%d of %v flows have no name", without, count)
	}
}

// TestDriftOfRealNodes looks for drift on the nodes as they are, with two load balancers that
// need the same flow, and with planted faults.
func TestDriftOfRealNodes(t *testing.T) {
	need(t)
	if r := run("-w", lab.nodes, "drift"); r.code != 0 {
		t.Errorf("as they are: %v", r)
	}
	const service = `
apiVersion: v1
kind: Service
metadata: {namespace: front, name: local}
spec: {type: NodePort, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`
	if err := lab.cluster.Apply(t.Context(), []byte(service)); err != nil {
		t.Fatal(err)
	}
	defer lab.cluster.Delete(background, []byte(service))
	n := lab.deployment.Nodes[0]
	await(t, func() error {
		out, err := n.Output(t.Context(), "ovn-nbctl", "find", "Load_Balancer", `external_ids:"k8s.ovn.org/owner"="front/local"`)
		if err == nil && out == "" {
			err = errors.New("the service has no load balancer yet")
		}
		return err
	})
	settle(t)
	folder := filepath.Join(t.TempDir(), "nodes")
	if r := collectTo(folder); r.code != 0 {
		t.Fatal(r)
	}
	if r := run("-w", folder, "drift"); r.code != 0 {
		t.Errorf("with a service with externalTrafficPolicy Local: %v", r)
	}
	plant(t, n)
	folder = filepath.Join(t.TempDir(), "planted")
	if r := collectTo(folder); r.code != 0 {
		t.Fatal(r)
	}
	r := run("-w", folder, "drift")
	if r.code != 4 || !strings.Contains(r.out, "NetworkPolicy shop/db-for-front") {
		t.Errorf("a flow of a policy was deleted: %v", r)
	}
	if err := n.tool(t.Context(), "ovn-appctl", "-t", "ovn-controller", "inc-engine/recompute"); err != nil {
		t.Fatal(err)
	}
}

// plant deletes the flows of a NetworkPolicy from a node.
func plant(t *testing.T, n *Node) {
	t.Helper()
	acl, err := n.Output(t.Context(), "ovn-nbctl", "--bare", "--columns=_uuid", "find", "ACL", `external_ids:"k8s.ovn.org/name"="shop:db-for-front"`)
	if err != nil || len(strings.Fields(acl)) == 0 {
		t.Fatal(acl, err)
	}
	flows, err := n.Output(t.Context(), "ovn-sbctl", "--bare", "--columns=_uuid", "find", "Logical_Flow", "external_ids:stage-hint="+acl[:8])
	if err != nil || len(strings.Fields(flows)) == 0 {
		t.Fatal(flows, err)
	}
	for _, uuid := range strings.Fields(flows) {
		if err := n.tool(t.Context(), "ovs-ofctl", "del-flows", "br-int", "cookie=0x"+uuid[:8]+"/-1"); err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until each ovn-controller has installed what the databases say.
func settle(t *testing.T) {
	t.Helper()
	for _, n := range lab.deployment.Nodes {
		if err := n.tool(t.Context(), "ovn-nbctl", "--wait=hv", "--timeout=60", "sync"); err != nil {
			t.Fatal(err)
		}
	}
}

func await(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := lab.deployment.Manager.Await(ctx, check); err != nil {
		t.Fatal(err)
	}
}

// TestRestartChangesNoObject restarts ovn-controller on a node, and compares the node with what
// it was before. (ovnkube da86b2aa does not start again where a ClusterNetworkConnect has policy
// routes, which it takes for those of an EgressFirewall.)
func TestRestartChangesNoObject(t *testing.T) {
	need(t)
	settle(t)
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	if r := collectTo(before); r.code != 0 {
		t.Fatal(r)
	}
	n := lab.deployment.Nodes[0]
	controller := n.Daemons["ovn-controller"]
	controller.Kill()
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() error { return n.tool(t.Context(), "ovn-appctl", "-t", "ovn-controller", "version") })
	settle(t)
	if r := collectTo(after); r.code != 0 {
		t.Fatal(r)
	}
	var found struct {
		Findings []struct{ Kind, Change, Name string }
	}
	read(t, &found, run("compare", before, after, "-o", "json"), 1, 4)
	for _, f := range found.Findings {
		if slices.Contains([]string{"port", "port group", "address set", "ACL", "load balancer", "route", "switch", "router"}, f.Kind) {
			t.Errorf("%s: %s", f.Change, f.Name)
		}
	}
	if r := run("-w", after, "drift"); r.code != 0 {
		t.Error(r)
	}
}

// TestCompareNamesWhatUsersChanged deletes a policy and a namespace. The database of a node has
// the transactions.
func TestCompareNamesWhatUsersChanged(t *testing.T) {
	need(t)
	const policy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {namespace: blue, name: closed}
`
	const namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: egress}
`
	for _, text := range []string{policy, namespace} {
		if err := lab.cluster.Delete(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range lab.deployment.Nodes {
		await(t, func() error {
			out, err := n.Output(t.Context(), "ovn-nbctl", "show")
			if err == nil && strings.Contains(out, "egress_e") {
				err = fmt.Errorf("the pods of namespace egress are still there")
			}
			return err
		})
	}
	settle(t)
	folder := filepath.Join(t.TempDir(), "after")
	if r := collectTo(folder); r.code != 0 {
		t.Fatal(r)
	}
	r := run("compare", lab.nodes, folder, "--detail")
	for _, want := range []string{
		"node1: pod egress/e1 (port egress_e1)", "node2: pod egress/e2 (port egress_e2)",
		"node1, node2: port group of NetworkPolicy blue/closed, of network blue/net-blue",
		"node1, node2: port group of namespace egress", "EgressIP sender for egress/e1",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(r)
	}
	content, err := lab.deployment.Nodes[0].Output(t.Context(), "cat", "/var/lib/ovn/ovnnb_db.db")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ovnnb_db.db")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	workdir := filepath.Join(t.TempDir(), "history")
	if r := run("-w", workdir, "collect", file); r.code != 0 {
		t.Fatal(r)
	}
	r = run("-w", workdir, "history", "nb", "--detail")
	for _, want := range []string{"- Logical_Switch_Port egress_e1 (", "- Port_Group blue_net-blue-network-controller:NetworkPolicy:blue:closed (", "- Port_Group default-network-controller:Namespace:egress ("} {
		if !strings.Contains(r.out, want) {
			t.Errorf("history: no %q", want)
		}
	}
}

// TestNamesOfNetworks asks in the ways in which users name networks, and checks that the
// addresses of the questions are the pods' own.
func TestNamesOfNetworks(t *testing.T) {
	need(t)
	networks := map[string]bool{}
	for _, p := range lab.pods {
		if networks[p.NAD] = true; !slices.ContainsFunc(p.IPs, netip.Addr.Is4) {
			t.Errorf("%s has the addresses %v", p.Title(), p.IPs)
		}
	}
	t.Logf("networks: %v", slices.Sorted(maps.Keys(networks)))
	for network, pods := range map[string][2]string{"blue/net-blue": {"blue/b1", "blue/b2"}, "mono/mono": {"mono/m1", "mono/m2"}, "overlap-a": {"red/r1", "red/r2"}} {
		if r := run("-w", lab.nodes, "trace", pods[0], pods[1], "--network", network, "--expect", "reachable"); r.code != 0 {
			t.Error(r)
		}
	}
}
