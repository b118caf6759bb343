package graph

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// anyGraph returns a graph of every kind of box and port, with edges between any of
// them, which no database makes.
func anyGraph(seed uint64) *Graph {
	r := rand.New(rand.NewPCG(seed, 2))
	boxes := []Kind{Bridge, Switch, Router, Remote, Network}
	kinds := []Kind{Internal, System, Interface, Patch, Tunnel, Bond, Userspace, Attached, Link, Service, Virtual,
		External, Child}
	states := []State{Up, Down, Failed, Unknown}
	g := &Graph{Title: "any"}
	for i := range 1 + r.IntN(8) {
		b := &Box{Name: fmt.Sprintf("b%d", i), Kind: boxes[r.IntN(len(boxes))]}
		few := kinds[r.IntN(len(kinds)):]
		for j := range r.IntN(20) {
			b.Ports = append(b.Ports, &Port{Name: fmt.Sprintf("p%d-%d", i, j), Kind: few[r.IntN(len(few))],
				State: states[r.IntN(len(states))], VLAN: fmt.Sprint("tag ", j)})
		}
		g.Boxes = append(g.Boxes, b)
	}
	end := func() (*Box, *Port) {
		b := g.Boxes[r.IntN(len(g.Boxes))]
		if len(b.Ports) == 0 || r.IntN(4) == 0 {
			return b, nil
		}
		return b, b.Ports[r.IntN(len(b.Ports))]
	}
	for range r.IntN(30) {
		e := &Edge{Kind: kinds[r.IntN(len(kinds))], State: Up}
		e.From, e.FromPort = end()
		e.To, e.ToPort = end()
		g.Edges = append(g.Edges, e)
	}
	return g
}

// checkWhole checks that each edge ends at a box, and a port of it, in the picture.
func checkWhole(t *testing.T, g *Graph) {
	t.Helper()
	owner, boxes := map[*Port]*Box{}, map[*Box]bool{}
	for _, b := range g.Boxes {
		boxes[b] = true
		for _, p := range b.Ports {
			owner[p] = b
		}
	}
	for _, e := range g.Edges {
		if !boxes[e.From] || !boxes[e.To] {
			t.Errorf("an edge from %s to %s, which are not both in the picture", e.From.Name, e.To.Name)
		}
		if e.FromPort != nil && owner[e.FromPort] != e.From || e.ToPort != nil && owner[e.ToPort] != e.To {
			t.Errorf("an edge from %s to %s ends at a port that is not in the picture", e.From.Name, e.To.Name)
		}
	}
}

// count returns the number of ports in all boxes, collapsed or not, and of boxes
// other than remotes.
func (g *Graph) count() (ports, boxes int) {
	for _, b := range g.Boxes {
		if b.Kind != Remote {
			boxes++
		}
		for _, p := range b.Ports {
			ports += max(1, p.Count)
		}
	}
	return ports, boxes
}

// FuzzCollapse draws any graph after a collapse. With seed 25, a port with an edge to a
// bridge was collapsed, the bridge was removed as its remote, and drawing the other
// edges to that bridge panicked.
func FuzzCollapse(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed, 1+int(seed%6))
	}
	f.Fuzz(func(t *testing.T, seed uint64, limit int) {
		g := anyGraph(seed)
		ports, boxes := g.count()
		g.Collapse(max(1, limit))
		checkWhole(t, g)
		if p, b := g.count(); b != boxes || p != ports {
			t.Errorf("%d ports and %d boxes became %d and %d", ports, boxes, p, b)
		}
		var svg, dot bytes.Buffer
		if err := errors.Join(g.SVG(&svg), g.DOT(&dot)); err != nil {
			t.Fatal(err)
		}
		for decoder := xml.NewDecoder(&svg); ; {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestCollapseKeepsPortsWithPhysicalNetworks draws a switch of several segments: each
// localnet port leads to another physical network.
func TestCollapseKeepsPortsWithPhysicalNetworks(t *testing.T) {
	b := &Box{Name: "net", Kind: Switch}
	g := &Graph{Boxes: []*Box{b}}
	for i := range 9 {
		p := &Port{Name: fmt.Sprintf("provnet-%d", i), Kind: Service}
		network := &Box{Name: fmt.Sprintf("physnet%d", i), Kind: Network}
		b.Ports = append(b.Ports, p, &Port{Name: fmt.Sprintf("localport-%d", i), Kind: Service})
		g.Boxes = append(g.Boxes, network)
		g.Edges = append(g.Edges, &Edge{From: b, FromPort: p, To: network, Kind: Link, State: Up})
	}
	g.Collapse(5)
	checkWhole(t, g)
	if len(g.Boxes) != 10 || len(g.Edges) != 9 || len(b.Ports) != 10 || port(t, b, "localport-*").Count != 9 {
		t.Errorf("%d boxes, %d edges, %d ports", len(g.Boxes), len(g.Edges), len(b.Ports))
	}
}

func TestCollapsedPortsShowTheirVLANs(t *testing.T) {
	for want, vlans := range map[string][]string{
		"3 VLANs":           {"tag 1", "tag 2", "vxlan 802 (tag 3)", ""},
		"vxlan 802 (tag 3)": {"vxlan 802 (tag 3)", "vxlan 802 (tag 3)"},
		"":                  {"tag 1", ""},
	} {
		b := &Box{Name: "br-int", Kind: Bridge}
		for i, vlan := range vlans {
			p := &Port{Name: fmt.Sprint("tap", i), Kind: Interface, VLAN: vlan}
			p.note(fmt.Sprint("web", i))
			p.note(vlan)
			b.Ports = append(b.Ports, p)
		}
		g := &Graph{Boxes: []*Box{b}}
		g.Collapse(1)
		if got := port(t, b, "tap*"); got.Note != want || got.Count != len(vlans) {
			t.Errorf("ports with the VLANs %q are drawn as %q", vlans, got.Note)
		}
	}
}
