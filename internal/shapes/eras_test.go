package shapes

import (
	"slices"
	"testing"
)

// supplies is what an era's report holds of a bridge.
func supplies(e Era, n *Node) func(Bridge) supply {
	return func(b Bridge) supply {
		versions := e.Versions(b)
		s := supply{flows: "OpenFlow10"}
		if len(b.Protocols) > 0 && !slices.Contains(b.Protocols, "OpenFlow10") {
			s.flows = ""
		}
		if e.groups {
			s.groups = s.flows
		}
		if k := len(versions); k > 0 {
			best := versions[k-1]
			s.flows, s.groups = best, best
			s.meters = e.meters && best >= "OpenFlow13"
			s.tlv = e.tlv
		}
		if b.Name == "br-int" && n.HasOVN() && s.flows < "OpenFlow13" {
			s.flows = "OpenFlow13"
		}
		// What OpenFlow 1.0 has no words for, bridge/dump-flows tells.
		s.exact = s.flows == "OpenFlow15" || e.datapath
		return s
	}
}

func TestOpenStackEras(t *testing.T)  { testEras(t, "openstack") }
func TestKubernetesEras(t *testing.T) { testEras(t, "kubernetes") }
func TestML2OVSEras(t *testing.T)     { testEras(t, "ml2-ovs") }

func testEras(t *testing.T, topology string) {
	n := record(t, topology)
	for _, e := range Eras() {
		for _, manifest := range []bool{true, false} {
			name := e.Name
			report := n.Report(e)
			if !manifest {
				name += " without manifest"
				report = WithoutManifest(report)
			}
			if !manifest && !e.HasManifest() {
				continue
			}
			t.Run(name, func(t *testing.T) { checkEra(t, n, e, report) })
		}
	}
}

func checkEra(t *testing.T, n *Node, e Era, report Tree) {
	r := replay(t, writeTop(t, "sosreport-"+n.Host+"-2026-01-02-abcdefg", report))
	checkBridges(t, n, r, supplies(e, n))
	f, err := r.Compare(t.Context(), n.Packets(), n.Live())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("collect %d, start %d, %s", r.collected.code, r.started.code, f)
	for i, d := range f.Differences {
		if i < 2 {
			t.Logf("differs: %.500s", d)
		}
	}
}
