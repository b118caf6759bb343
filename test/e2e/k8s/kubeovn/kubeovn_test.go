package kubeovn

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/truth"
)

// TestAnswersAreWhatRealPacketsDid asks all questions by the names that users type.
func TestAnswersAreWhatRealPacketsDid(t *testing.T) {
	need(t)
	truth.CheckAnswers(t, lab.Program, lab.Nodes, lab.truths, 1000)
}

// TestReachIsWhatRealPacketsDid compares the cells of the pods with real packets.
func TestReachIsWhatRealPacketsDid(t *testing.T) {
	need(t)
	truth.CheckReach(t, lab.Program, lab.Nodes, lab.truths, 600)
}

// TestEveryFlowHasAName lists all flows of the bridges.
func TestEveryFlowHasAName(t *testing.T) {
	need(t)
	truth.CheckFlowNames(t, lab.Program, lab.Nodes, map[string]int{"br-int": 5000, "br-phy": 2, "br-external": 2})
}

// TestFlowsAreInTheWordsOfKubeOVN looks for each kind of object of the rig among the names of flows.
func TestFlowsAreInTheWordsOfKubeOVN(t *testing.T) {
	need(t)
	var names strings.Builder
	for _, flow := range truth.Flows(t, lab.Program, lab.Nodes) {
		fmt.Fprintln(&names, flow.For)
	}
	for _, want := range []string{
		"\npod shop/db1 (port db1.shop)\n",
		"\nport node/node1 (node-node1)\n",
		"\nsubnet blue-a to VPC blue (port blue-a-blue)\n",
		"\nVPC blue to VPC green (router port blue-green)\n",
		"\nNetworkPolicy shop/db-for-front (ACL priority 2000, drop, tier 2)\n",
		"\nAdminNetworkPolicy no-guard (ACL priority 28000, drop, tier 1)\n",
		"\nBaselineAdminNetworkPolicy default (ACL priority 1800, drop, tier 3)\n",
		"\nnode node1 and its pods (ACL priority 3000, allow-related, tier 2)\n",
		"\nsubnet shop (ACL priority 1010, drop, tier 2)\n",
		"\nprivate subnet vault (ACL priority 1000, drop, tier 2)\n",
		"\nsecurity group web, rule priority 11 (ACL priority 2289, allow-related, tier 2)\n",
		"\nsecurity groups: default deny (ACL priority 2003, drop, tier 2)\n",
		"\nService shop/db (load balancer cluster-tcp-loadbalancer)\n",
		"\nService blue/slr-inner (load balancer vpc-blue-tcp-load)\n",
		"\nOvnDnatRule edge-dnat (load balancer edge-dnat)\n",
		"\nEIP 172.19.0.50, SNAT for 10.40.0.0/24 of VPC edge\n",
		"\nEIP 172.19.0.51, FIP for edge/e1 (10.40.0.",
		"\npolicy route priority 32000: ip4.src == 10.31.0.0/24 && ip4.dst == 10.30.0.12, drop of VPC blue\n",
		"\nroute 10.32.0.0/24 via 169.254.100.2 of VPC blue\n",
		"\nsubnet ovn-default, pods on node1 (policy route priority 29000: ",
	} {
		if !strings.Contains(names.String(), want) {
			t.Errorf("no flow is for %q", strings.TrimSpace(want))
		}
	}
	if strings.Contains(names.String(), "NetworkPolicy node/") || strings.Contains(names.String(), "logical switch ") {
		t.Error("a node is called a NetworkPolicy, or a subnet a logical switch")
	}
}

// TestDriftOfRealNodes looks for drift on the nodes as they are, and with the flows of a policy
// deleted from a node.
func TestDriftOfRealNodes(t *testing.T) {
	need(t)
	if r := lab.Program.Run("-w", lab.Nodes, "drift"); r.Code != 0 {
		t.Errorf("as they are: %v", r)
	}
	const policy = "NetworkPolicy shop/db-for-front"
	n := lab.deployment.Nodes[0]
	deleted := map[string]bool{}
	for _, flow := range truth.Flows(t, lab.Program, lab.Nodes) {
		if strings.HasPrefix(flow.For, policy) && flow.Node == n.Name && !deleted[flow.Cookie] {
			deleted[flow.Cookie] = true
			if err := n.Tool(t.Context(), "ovs-ofctl", "del-flows", "br-int", "cookie="+flow.Cookie+"/-1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := filepath.Join(t.TempDir(), "planted")
	if r := lab.Program.Collect(lab.Cluster, folder); r.Code != 0 {
		t.Fatal(r)
	}
	if r := lab.Program.Run("-w", folder, "drift"); len(deleted) == 0 || r.Code != 4 || !strings.Contains(r.Out, policy) {
		t.Errorf("%d flows of a policy were deleted: %v", len(deleted), r)
	}
	if err := n.Tool(t.Context(), "ovn-appctl", "-t", "ovn-controller", "inc-engine/recompute"); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherBuildDecidesNothing asks what OVN computes where the only programs of the nodes' release are not marked as
// those of kube-ovn.
func TestAnotherBuildDecidesNothing(t *testing.T) {
	need(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	if r := lab.Program.Run("image", "add", "--tag", "stock", lab.Root); r.Code != 0 {
		t.Fatal(r)
	}
	for _, args := range [][]string{{"drift"}, {"what-if", "--", "ovn-nbctl", "lsp-set-enabled", "db1.shop", "disabled"}} {
		r := lab.Program.Run(append([]string{"-w", lab.Nodes}, args...)...)
		if said := r.Out + r.Complaints; r.Code != 3 || !strings.Contains(said, "UNDETERMINED") || !strings.Contains(said, "kube-ovn") {
			t.Error(r)
		}
	}
}

// TestCompareNamesWhatUsersChanged deletes objects of each kind, whose rows kube-ovn then deletes.
func TestCompareNamesWhatUsersChanged(t *testing.T) {
	need(t)
	const changed = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {namespace: front, name: closed}
---
apiVersion: kubeovn.io/v1
kind: OvnFip
metadata: {name: edge-fip}
---
apiVersion: v1
kind: Pod
metadata: {namespace: green, name: x2}
`
	if err := lab.Cluster.Delete(t.Context(), []byte(changed)); err != nil {
		t.Fatal(err)
	}
	n := lab.deployment.Nodes[0]
	ctx, cancel := context.WithTimeout(t.Context(), ovs.Patience())
	defer cancel()
	err := lab.deployment.Controller.Await(ctx, func() error {
		for _, row := range [][]string{{"Port_Group", "name=closed.front"}, {"NAT", "external_ip=172.19.0.51"},
			{"Logical_Switch_Port", "name=x2.green"}} {
			out, err := n.find(ctx, row[0], row[1])
			if err != nil {
				return err
			}
			if out != "" {
				return fmt.Errorf("%s with %s is still there", row[0], row[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "after")
	if r := lab.Program.Collect(lab.Cluster, folder); r.Code != 0 {
		t.Fatal(r)
	}
	r := lab.Program.Run("compare", lab.Nodes, folder, "--detail")
	for _, want := range []string{
		"port group of NetworkPolicy front/closed (closed.front)",
		"address set of NetworkPolicy front/closed, egress rule 0, IPv4, exceptions (closed.front.egress.except.IPv4.0)",
		"EIP 172.19.0.51, FIP for edge/e1 (10.40.0.",
		"pod green/x2 (port x2.green)",
	} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(r)
	}
}
