package graph

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestTunnelsJoinThePortsOfTwoNodes draws the nodes of a set in one picture.
func TestTunnelsJoinThePortsOfTwoNodes(t *testing.T) {
	s := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	paths, err := s.Workdirs(t.Context(), t.TempDir(), sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var graphs []*Graph
	for _, node := range s.Nodes {
		names = append(names, node)
		wd, err := workdir.Find(paths[node])
		if err != nil {
			t.Fatal(err)
		}
		g, err := Node(t.Context(), wd)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	j := Join(names, graphs)
	tunnels := 0
	for _, e := range j.Edges {
		if e.Kind != Tunnel {
			continue
		}
		tunnels++
		from, _, _ := strings.Cut(e.From.Title(), " ")
		to, _, _ := strings.Cut(e.To.Title(), " ")
		if e.ToPort == nil || from == to {
			t.Errorf("a tunnel from %s to %s, port %v", e.From.Name, e.To.Name, e.ToPort)
		}
	}
	if want := len(names) * (len(names) - 1) / 2; tunnels != want {
		t.Errorf("%d tunnels, want %d: one for each pair of nodes", tunnels, want)
	}
	if slices.ContainsFunc(j.Boxes, func(b *Box) bool { return b.Kind == Remote }) {
		t.Error("a node of the set is drawn as a remote")
	}
}
