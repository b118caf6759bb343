package graph

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
)

func box(t *testing.T, g *Graph, kind Kind, name string) *Box {
	t.Helper()
	for _, b := range g.Boxes {
		if b.Kind == kind && b.Name == name {
			return b
		}
	}
	t.Fatalf("no %s %s in the picture", kind, name)
	return nil
}

func port(t *testing.T, b *Box, name string) *Port {
	t.Helper()
	for _, p := range b.Ports {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%s has no port %s", b.Name, name)
	return nil
}

// edgesOf returns the edges of a port.
func (g *Graph) edgesOf(p *Port) []*Edge {
	var found []*Edge
	for _, e := range g.Edges {
		if e.FromPort == p || e.ToPort == p {
			found = append(found, e)
		}
	}
	return found
}

func TestNodeOfACapture(t *testing.T) {
	g, err := Node(context.Background(), collected.Locked(t, captures.Report(t, "captures/ovn-openstack-compute")))
	if err != nil {
		t.Fatal(err)
	}
	bridge := box(t, g, Bridge, "br-int")
	vm := port(t, bridge, "tapvm1aaaaa-aa")
	if vm.Number != "3" || vm.Kind != Interface || vm.State != Up || !strings.Contains(vm.Note, "p-vm1") {
		t.Errorf("the instance's port: %+v", vm)
	}
	tunnel := port(t, bridge, "ovn-4c4c45-0")
	edges := g.edgesOf(tunnel)
	if len(edges) != 1 || edges[0].To.Kind != Remote || edges[0].To.Note != "192.168.24.12" || edges[0].State != Up {
		t.Fatalf("the tunnel leads to %+v", edges)
	}
	if name := edges[0].To.Name; name != "gw1" {
		t.Errorf("the chassis with the address 192.168.24.12 is called %s", name)
	}
}

func TestLogicalNetworkOfACapture(t *testing.T) {
	g, err := Logical(context.Background(), collected.Locked(t, captures.Report(t, "captures/ovn-kubernetes-worker")))
	if err != nil {
		t.Fatal(err)
	}
	pod := port(t, box(t, g, Switch, "ovn-worker"), "ns1/web1")
	if pod.Note != "10.244.1.3" {
		t.Errorf("the note of the pod's port is %q", pod.Note)
	}
	cluster, joined := box(t, g, Router, "ovn_cluster_router"), false
	for _, e := range g.Edges {
		joined = joined || e.From == box(t, g, Switch, "join") && e.To == cluster
	}
	if !joined {
		t.Error("the switch join is not joined to ovn_cluster_router")
	}
}

// random returns a network of bridges with ports, patch pairs, tunnels and bonds.
func random(seed uint64, boxes, ports int) *Graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &Graph{Title: "random"}
	for i := range boxes {
		b := &Box{Name: fmt.Sprintf("br%d", i), Kind: Bridge, Note: strings.Repeat("n", r.IntN(50))}
		for j := range r.IntN(ports) {
			p := &Port{Name: fmt.Sprintf("p%d-%d", i, j), Number: fmt.Sprint(j), Kind: System, State: Up}
			for m := range r.IntN(3) {
				p.Members = append(p.Members, &Port{Name: fmt.Sprintf("m%d", m), Kind: System, State: Down, Active: m == 0})
			}
			b.Ports = append(b.Ports, p)
		}
		g.Boxes = append(g.Boxes, b)
	}
	for range boxes {
		from, to := g.Boxes[r.IntN(boxes)], g.Boxes[r.IntN(boxes)]
		if len(from.Ports) > 0 && len(to.Ports) > 0 {
			g.Edges = append(g.Edges, &Edge{From: from, FromPort: from.Ports[r.IntN(len(from.Ports))], To: to,
				ToPort: to.Ports[r.IntN(len(to.Ports))], Kind: Patch, State: Up})
		}
	}
	return g
}

// TestNothingOverlaps checks the positions of boxes and ports in many pictures.
func TestNothingOverlaps(t *testing.T) {
	for seed := range uint64(40) {
		g := random(seed, 1+int(seed), 1+int(seed)*3)
		l := arrange(g)
		for i, a := range g.Boxes {
			p := l.boxes[a]
			if p.x < -0.5 || p.y < -0.5 || p.x+p.w > l.w+0.5 || p.y+p.h > l.h+0.5 {
				t.Errorf("seed %d: %s is outside of the picture", seed, a.Name)
			}
			for _, b := range g.Boxes[i+1:] {
				if q := l.boxes[b]; p.x < q.x+q.w && q.x < p.x+p.w && p.y < q.y+q.h && q.y < p.y+p.h {
					t.Errorf("seed %d: %s and %s overlap", seed, a.Name, b.Name)
				}
			}
			checkCells(t, seed, p)
		}
	}
}

// TestManyNetworksMakeNoTower draws a router of 50 networks with 20 ports each: boxes
// below each other must get more columns, or the picture is ten times as tall as wide.
func TestManyNetworksMakeNoTower(t *testing.T) {
	router := &Box{Name: "r1", Kind: Router}
	g := &Graph{Boxes: []*Box{router}}
	for i := range 50 {
		b := &Box{Name: fmt.Sprintf("net-%d", i), Kind: Switch, Ports: []*Port{{Name: "router", Kind: Link}}}
		for j := range 20 {
			b.Ports = append(b.Ports, &Port{Name: fmt.Sprintf("vm-%d-%d", i, j), Kind: Attached,
				Note: "10.0.0.1 fd00:10::f816:3eff:fe10:c3db"})
		}
		router.Ports = append(router.Ports, &Port{Name: fmt.Sprintf("lrp-%d", i), Kind: Link})
		g.Boxes = append(g.Boxes, b)
		g.Edges = append(g.Edges, &Edge{From: b, FromPort: b.Ports[0], To: router, ToPort: router.Ports[i], Kind: Link,
			State: Up})
	}
	if l := arrange(g); l.h > 2*l.w || l.w > 2*l.h {
		t.Errorf("the picture is %.0f pixels wide and %.0f tall", l.w, l.h)
	}
}

func checkCells(t *testing.T, seed uint64, p *placedBox) {
	t.Helper()
	all := slices.Concat(p.lanes[0], p.lanes[1], p.lanes[2])
	if len(all) != len(p.box.Ports) {
		t.Errorf("seed %d: %s shows %d of %d ports", seed, p.box.Name, len(all), len(p.box.Ports))
	}
	for i, c := range all {
		if c.x < 0 || c.y < 0 || c.x+c.w > p.w || c.y+c.h > p.h {
			t.Errorf("seed %d: %s is outside of its box", seed, c.port.Name)
		}
		for _, d := range all[i+1:] {
			if c.x < d.x+d.w && d.x < c.x+c.w && c.y < d.y+d.h && d.y < c.y+c.h {
				t.Errorf("seed %d: %s and %s overlap", seed, c.port.Name, d.port.Name)
			}
		}
	}
}

// hostile returns a graph whose names contain markup and control characters.
func hostile() *Graph {
	evil := "</text><script>alert(1)</script>\x00\x1b[31m\"'\\&\xff\n|{}<b>"
	p, q := &Port{Name: evil, Number: "1", Kind: Patch, State: Failed, Note: evil, Detail: []string{evil}},
		&Port{Name: evil, Kind: Patch}
	a, b := &Box{Name: evil, Kind: Bridge, Note: evil, Ports: []*Port{p}},
		&Box{Name: evil, Kind: Bridge, Ports: []*Port{q}}
	return &Graph{Title: evil, Boxes: []*Box{a, b}, Edges: []*Edge{{From: a, FromPort: p, To: b, ToPort: q, Kind: Patch}},
		Remarks: []string{evil}}
}

func TestHostileNamesStayText(t *testing.T) {
	for name, g := range map[string]*Graph{"hostile": hostile(), "random": random(7, 9, 20)} {
		var picture bytes.Buffer
		if err := g.SVG(&picture); err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(&picture)
		for {
			token, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: not XML: %v", name, err)
			}
			if start, ok := token.(xml.StartElement); ok &&
				!slices.Contains([]string{"svg", "style", "title", "rect", "g", "text", "path"}, start.Name.Local) {
				t.Errorf("%s: an element <%s> in the picture", name, start.Name.Local)
			}
		}
	}
}

// TestLongNamesAreWholeInTooltips checks a switch and a port whose names have 10,000 characters.
func TestLongNamesAreWholeInTooltips(t *testing.T) {
	long := strings.Repeat("n", 10000)
	g := &Graph{Title: "long", Boxes: []*Box{{Kind: "switch", Name: long, Ports: []*Port{{Name: long, Kind: Attached}}}}}
	var picture bytes.Buffer
	if err := g.SVG(&picture); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(picture.String(), long); n != 2 || !strings.Contains(picture.String(), "<title>switch "+long) {
		t.Errorf("%d whole names, want those of 2 tooltips", n)
	}
	var width int
	if _, err := fmt.Sscanf(picture.String(), `<svg xmlns="http://www.w3.org/2000/svg" width="%d"`, &width); err != nil ||
		width > 3000 {
		t.Errorf("the picture is %d wide: %v", width, err)
	}
}

func TestGraphvizReadsDOT(t *testing.T) {
	if _, err := exec.LookPath("dot"); err != nil {
		t.Skip("graphviz is not installed: ", err)
	}
	for name, g := range map[string]*Graph{"hostile": hostile(), "random": random(3, 6, 40)} {
		var text, problems bytes.Buffer
		if err := g.DOT(&text); err != nil {
			t.Fatal(err)
		}
		dot := exec.Command("dot", "-Tsvg", "-o", filepath.Join(t.TempDir(), "out.svg"))
		dot.Stdin, dot.Stderr = &text, &problems
		if err := dot.Run(); err != nil || problems.Len() > 0 {
			t.Errorf("%s: dot: %v\n%s", name, err, problems.String())
		}
	}
}

// star returns a bridge with n tunnels to as many remotes, and n devices.
func star(n int) *Graph {
	g := &Graph{}
	b := &Box{Name: "br-int", Kind: Bridge}
	g.Boxes = append(g.Boxes, b)
	for i := range n {
		tunnel := &Port{Name: fmt.Sprintf("ovn-%d", i), Kind: Tunnel, State: Up, Note: "geneve"}
		device := &Port{Name: fmt.Sprintf("tap%d", i), Kind: System, State: Up, Note: fmt.Sprintf("tag %d", i)}
		if i%100 == 0 {
			device.State = Down
		}
		b.Ports = append(b.Ports, tunnel, device)
		remote := &Box{Name: fmt.Sprintf("10.0.0.%d", i), Kind: Remote}
		g.Boxes = append(g.Boxes, remote)
		g.Edges = append(g.Edges, &Edge{From: b, FromPort: tunnel, To: remote, Kind: Tunnel, State: Up})
	}
	return g
}

func TestCollapseCountsAllPortsAndKeepsThoseDown(t *testing.T) {
	g := star(1000)
	g.Collapse(50)
	b := g.Boxes[0]
	total, down := 0, 0
	for _, p := range b.Ports {
		total += max(1, p.Count)
		if p.State == Down {
			down++
		}
	}
	if total != 2000 || down != 10 || len(b.Ports) != 12 {
		t.Errorf("%d ports represent %d, %d are down", len(b.Ports), total, down)
	}
	if len(g.Boxes) != 2 || g.Boxes[1].Name != "1000 remotes" || len(g.Edges) != 1 {
		t.Errorf("the remotes: %d boxes, %d edges", len(g.Boxes), len(g.Edges))
	}
}

func TestFilterKeepsJoinedPortsAndCountsTheOthers(t *testing.T) {
	g := star(100)
	matched, err := g.Filter("10.0.0.17")
	if err != nil || matched != 1 {
		t.Fatal(matched, err)
	}
	b := g.Boxes[0]
	if len(g.Boxes) != 2 || len(b.Ports) != 1 || b.Ports[0].Name != "ovn-17" || b.Hidden != 199 {
		t.Errorf("%d boxes; %s shows %v and hides %d", len(g.Boxes), b.Name, b.Ports, b.Hidden)
	}
	if matched, _ := star(10).Filter("nothing*"); matched != 0 {
		t.Errorf("%d match nothing*", matched)
	}
	if _, err := star(1).Filter("["); err == nil {
		t.Error("a bad pattern is no error")
	}
}
