package ovnkube

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/e2e/k8s/cluster"
)

// TestUpgradeAndRestart starts a cluster with an older release of ovnkube, replaces that by a newer one, and
// restarts a node. compare, history and drift say what happened, in the words of Kubernetes's users. (The newer
// one does not start again where a ClusterNetworkConnect has policy routes, which it takes for those
// of an EgressFirewall: there is none here.)
func TestUpgradeAndRestart(t *testing.T) {
	older := needOlder(t)
	c, err := lab.StartCluster("upgrade", Flags...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	d, err := Start(t.Context(), Options{Cluster: c, Built: older, Root: lab.Root, Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.AddObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := lab.Program.Run("image", "add", lab.Root); r.Code != 0 {
		t.Fatal(r)
	}
	before := collected(t, c, d)
	if err := d.Upgrade(t.Context(), lab.Built); err != nil {
		t.Fatal(err)
	}
	upgraded := collected(t, c, d)
	checkUpgrade(t, d, before, upgraded)
	if err := d.Nodes[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	restarted := collected(t, c, d)
	for _, f := range objectFindings(t, upgraded, restarted) {
		t.Errorf("after a restart of the node: %s: %s", f.Change, f.Name)
	}
	if r := lab.Program.Run("-w", restarted, "drift"); r.Code != 0 {
		t.Errorf("after a restart of the node: %v", r)
	}
}

// checkUpgrade checks what compare and history say about the upgrade: no object was lost, the newer release
// names the chassis of each pod by its UUID, and replaces some flows to the outside.
func checkUpgrade(t *testing.T, d *Deployment, before, upgraded string) {
	t.Helper()
	for _, f := range objectFindings(t, before, upgraded) {
		if f.Change == "gone" {
			t.Errorf("after the upgrade: gone: %s", f.Name)
		}
	}
	r := lab.Program.Run("compare", before, upgraded, "--detail")
	for _, want := range []string{"node2: pod shop/web (port shop_web)",
		"options:requested-chassis node2 -> " + d.Nodes[1].Chassis(), "node1: flow of br-ex, by the port of input: "} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("after the upgrade: no %q", want)
		}
	}
	if strings.Contains(r.Out, "flow of br-ex, table") {
		t.Error("a flow of br-ex has no name")
	}
	if h := history(t, d.Nodes[1]); !strings.Contains(h.Out, "~ Logical_Switch_Port shop_web ") {
		t.Errorf("history: no change of shop/web: %v", h)
	}
	if t.Failed() {
		t.Log(r)
	}
	if r := lab.Program.Run("-w", upgraded, "drift"); r.Code != 0 {
		t.Errorf("after the upgrade: %v", r)
	}
}

// finding is what compare says about one change.
type finding struct{ Kind, Change, Name string }

// objectFindings returns what compare says about the objects of users between two collections.
func objectFindings(t *testing.T, before, after string) []finding {
	t.Helper()
	var found struct{ Findings []finding }
	lab.Program.Run("compare", before, after, "-o", "json").Read(t, &found, 1, 4)
	return slices.DeleteFunc(found.Findings, func(f finding) bool {
		return !slices.Contains([]string{"port", "port group", "address set", "ACL", "load balancer", "switch", "router"},
			f.Kind)
	})
}

// collected collects the nodes of a deployment, after what the databases say has been installed.
func collected(t *testing.T, c *cluster.Cluster, d *Deployment) (folder string) {
	t.Helper()
	settle(t, d)
	folder = filepath.Join(t.TempDir(), "nodes")
	if r := lab.Program.CollectAtRest(c, folder); r.Code != 0 {
		t.Fatal(r)
	}
	return folder
}
