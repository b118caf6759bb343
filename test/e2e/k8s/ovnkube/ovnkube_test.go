package ovnkube

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/rigtest"
	"ovs-offline/test/e2e/k8s/truth"
)

//go:embed testdata/made.yaml
var made []byte

// TestAnswersAreWhatRealPacketsDid asks all questions by the names that users type.
func TestAnswersAreWhatRealPacketsDid(t *testing.T) {
	need(t)
	truth.CheckAnswers(t, lab.Program, lab.Nodes, lab.truths, 600)
}

// TestReachIsWhatRealPacketsDid compares the cells of the pods with real packets.
func TestReachIsWhatRealPacketsDid(t *testing.T) {
	need(t)
	truth.CheckReach(t, lab.Program, lab.Nodes, lab.truths, 600)
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
	lab.Program.Run("-w", lab.Nodes, "reach", "-o", "json").Read(t, &matrix, 3)
	asked, undetermined := 0, 0
	for _, c := range matrix.Cells {
		network := func(name string) string {
			network, _, _ := strings.Cut(strings.TrimPrefix(name, "lan: "), "_")
			return network
		}
		if isSecondary := strings.HasPrefix(c.From, "lan: ") || strings.HasPrefix(c.To, "lan: "); isSecondary &&
			network(c.From) != network(c.To) {
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
	if asked < 5000 || undetermined*100 > asked*3 ||
		!strings.Contains(strings.Join(matrix.Remarks, "\n"), "are in secondary networks") {
		t.Errorf("%d of %d questions are undetermined; remarks: %q", undetermined, asked, matrix.Remarks)
	}
}

// TestEveryFlowHasAName lists all flows of the integration bridge and of the bridge to the
// outside.
func TestEveryFlowHasAName(t *testing.T) {
	need(t)
	truth.CheckFlowNames(t, lab.Program, lab.Nodes, map[string]int{"br-int": 1000, "br-ex": 100})
}

// TestDriftOfRealNodes looks for drift on the nodes as they are, with two load balancers that
// need the same flow, and with planted faults.
func TestDriftOfRealNodes(t *testing.T) {
	need(t)
	if r := lab.Program.Run("-w", lab.Nodes, "drift", "--detail"); r.Code != 0 {
		t.Errorf("as they are: %v", r)
	}
	const service = `
apiVersion: v1
kind: Service
metadata: {namespace: front, name: local}
spec: {type: NodePort, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`
	if err := lab.Cluster.Apply(t.Context(), []byte(service)); err != nil {
		t.Fatal(err)
	}
	defer lab.Cluster.Delete(background, []byte(service))
	n := lab.deployment.Nodes[0]
	await(t, func() error {
		out, err := n.Output(t.Context(), "ovn-nbctl", "find", "Load_Balancer",
			`external_ids:"k8s.ovn.org/owner"="front/local"`)
		if err == nil && out == "" {
			err = errors.New("the service has no load balancer yet")
		}
		return err
	})
	folder := collected(t, lab.Cluster, lab.deployment)
	if r := lab.Program.Run("-w", folder, "drift", "--detail"); r.Code != 0 {
		t.Errorf("with a service with externalTrafficPolicy Local: %v", r)
	}
	plant(t, n)
	folder = filepath.Join(t.TempDir(), "planted")
	if r := lab.Program.Collect(lab.Cluster, folder); r.Code != 0 {
		t.Fatal(r)
	}
	r := lab.Program.Run("-w", folder, "drift")
	if r.Code != 4 || !strings.Contains(r.Out, "NetworkPolicy shop/db-for-front") {
		t.Errorf("a flow of a policy was deleted: %v", r)
	}
	restartController(t, n)
	if r := lab.Program.Run("-w", collected(t, lab.Cluster, lab.deployment), "drift", "--detail"); r.Code != 0 {
		t.Errorf("after a restart of ovn-controller: %v", r)
	}
}

// restartController restarts the ovn-controller of a node, which installs all its flows again.
func restartController(t *testing.T, n *Node) {
	t.Helper()
	controller := n.Daemons["ovn-controller"]
	controller.Kill()
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() error { return n.Tool(t.Context(), "ovn-appctl", "-t", "ovn-controller", "version") })
}

// TestDriftWhileANetworkIsMade collects the nodes again and again while a user-defined network with a pod on
// each node is made: what is on its way is no drift.
func TestDriftWhileANetworkIsMade(t *testing.T) {
	need(t)
	if err := lab.Cluster.AddNamespace(t.Context(), "made",
		map[string]string{"k8s.ovn.org/primary-user-defined-network": ""}); err != nil {
		t.Fatal(err)
	}
	if err := lab.Cluster.Apply(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	count := map[int]int{}
	for i := range 6 {
		folder := filepath.Join(t.TempDir(), "nodes")
		if r := lab.Program.Collect(lab.Cluster, folder); r.Code != 0 {
			t.Fatal(r)
		}
		r := lab.Program.Run("-w", folder, "drift")
		if count[r.Code]++; r.Code != 0 && r.Code != 3 {
			t.Errorf("collection %d: %v", i, r)
		}
	}
	t.Logf("exit codes: %v", count)
	if r := lab.Program.Run("-w", collected(t, lab.Cluster, lab.deployment), "drift", "--detail"); r.Code != 0 {
		t.Errorf("when the network is made: %v", r)
	}
}

// plant deletes the flows of a NetworkPolicy from a node.
func plant(t *testing.T, n *Node) {
	t.Helper()
	acl, err := n.Output(t.Context(), "ovn-nbctl", "--bare", "--columns=_uuid", "find", "ACL",
		`external_ids:"k8s.ovn.org/name"="shop:db-for-front"`)
	if err != nil || len(strings.Fields(acl)) == 0 {
		t.Fatal(acl, err)
	}
	flows, err := n.Output(t.Context(), "ovn-sbctl", "--bare", "--columns=_uuid", "find", "Logical_Flow",
		"external_ids:stage-hint="+acl[:8])
	if err != nil || len(strings.Fields(flows)) == 0 {
		t.Fatal(flows, err)
	}
	for _, uuid := range strings.Fields(flows) {
		if err := n.Tool(t.Context(), "ovs-ofctl", "del-flows", "br-int", "cookie=0x"+uuid[:8]+"/-1"); err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until each ovn-controller has installed what the databases say.
func settle(t *testing.T, d *Deployment) {
	t.Helper()
	for _, n := range d.Nodes {
		if err := n.Tool(t.Context(), "ovn-nbctl", "--wait=hv", "--timeout=60", "sync"); err != nil {
			t.Fatal(err)
		}
	}
}

func await(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ovs.Patience())
	defer cancel()
	if err := lab.deployment.Manager.Await(ctx, check); err != nil {
		t.Fatal(err)
	}
}

// TestRestartOfAControllerChangesNoObject restarts ovn-controller on a node, and compares the node with what
// it was before.
func TestRestartOfAControllerChangesNoObject(t *testing.T) {
	need(t)
	before := collected(t, lab.Cluster, lab.deployment)
	restartController(t, lab.deployment.Nodes[0])
	after := collected(t, lab.Cluster, lab.deployment)
	for _, f := range objectFindings(t, before, after) {
		t.Errorf("%s: %s", f.Change, f.Name)
	}
	if r := lab.Program.Run("-w", after, "drift", "--detail"); r.Code != 0 {
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
		if err := lab.Cluster.Delete(t.Context(), []byte(text)); err != nil {
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
	folder := collected(t, lab.Cluster, lab.deployment)
	r := lab.Program.Run("compare", lab.Nodes, folder, "--detail")
	for _, want := range []string{
		"node1: pod egress/e1 (port egress_e1)", "node2: pod egress/e2 (port egress_e2)",
		"node1, node2: port group of NetworkPolicy blue/closed, of network blue/net-blue",
		"node1, node2: port group of namespace egress", "EgressIP sender for egress/e1",
	} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(r)
	}
	r = history(t, lab.deployment.Nodes[0])
	for _, want := range []string{"- Logical_Switch_Port egress_e1 (",
		"- Port_Group blue_net-blue-network-controller:NetworkPolicy:blue:closed (",
		"- Port_Group default-network-controller:Namespace:egress ("} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("history: no %q", want)
		}
	}
}

// history prints the history of the OVN NB database of a node.
func history(t *testing.T, n *Node) rigtest.Result {
	t.Helper()
	content, err := n.Output(t.Context(), "cat", "/var/lib/ovn/ovnnb_db.db")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ovnnb_db.db")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	workdir := filepath.Join(t.TempDir(), "history")
	if r := lab.Program.Run("-w", workdir, "collect", file); r.Code != 0 {
		t.Fatal(r)
	}
	return lab.Program.Run("-w", workdir, "history", "nb", "--detail")
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
	for network, pods := range map[string][2]string{"blue/net-blue": {"blue/b1", "blue/b2"},
		"mono/mono": {"mono/m1", "mono/m2"}, "overlap-a": {"red/r1", "red/r2"}} {
		if r := lab.Program.Run("-w", lab.Nodes, "trace", pods[0], pods[1], "--network", network, "--expect",
			"reachable"); r.Code != 0 {
			t.Error(r)
		}
	}
}
