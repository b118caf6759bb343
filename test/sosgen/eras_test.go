package sosgen

import (
	"fmt"
	"slices"
	"testing"

	"ovs-offline/test/fidelity"
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

// TestEras gives the report of each era. Those without a manifest are read by
// the names of their files: one topology shows that.
func TestEras(t *testing.T) {
	for _, topology := range []string{"openstack", "kubernetes", "ml2-ovs"} {
		n := recorded(t, topology)
		for _, e := range Eras() {
			t.Run(topology+" "+e.Name, func(t *testing.T) {
				t.Parallel()
				path := reportFolder(t, n, n.Report(e))
				r := checkEra(t, n, e, path)
				checkInspection(t, n, e, path, r)
				f := r.log(t, n)
				if want := parities()[topology][e.Name]; alike(f) < want {
					t.Errorf("%.1f %% of the packets are traced alike, want %.1f %%", alike(f), want)
				}
			})
			if topology == "ml2-ovs" && e.HasManifest() {
				t.Run(topology+" "+e.Name+" by names", func(t *testing.T) {
					t.Parallel()
					checkEra(t, n, e, reportFolder(t, n, WithoutManifest(n.Report(e))))
				})
			}
		}
	}
}

func reportFolder(t *testing.T, n *Node, report Tree) string {
	t.Helper()
	return writeTop(t, fmt.Sprintf(reportName, n.Host), report)
}

func checkEra(t *testing.T, n *Node, e Era, path string) *replica {
	t.Helper()
	r := replay(t, path)
	checkBridges(t, n, r, supplies(e, n))
	return r
}

// alike is how many packets have the live result, whatever member a balancing bond chose.
func alike(f fidelity.Figures) float64 { return fidelity.Percent(f.Results+f.Balanced, f.Packets) }

// parities are the least shares of packets whose traces end as on the live
// node. Where an era's reports tell all that a trace depends on, that is all of
// them. Sos before 4.3 did not ask for TLV maps, nor, on bridges of default
// protocols, for groups: OVN's hang on those.
func parities() map[string]map[string]float64 {
	all := func(old map[string]float64) map[string]float64 {
		for _, e := range Eras() {
			if _, known := old[e.Name]; !known {
				old[e.Name] = 100
			}
		}
		return old
	}
	return map[string]map[string]float64{
		"openstack":  all(map[string]float64{"3.8": 75, "3.9": 75, "4.0-4.1": 75, "4.2": 75}),
		"kubernetes": all(map[string]float64{"3.8": 70, "3.9": 70, "4.0-4.1": 70, "4.2": 70}),
		"ml2-ovs":    all(map[string]float64{"3.8": 85, "3.9": 85}),
	}
}
