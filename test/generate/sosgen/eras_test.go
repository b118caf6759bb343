package sosgen

import (
	"fmt"
	"slices"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/fidelity"
)

// supplies returns what a report of an era holds for each bridge.
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
		s.meters = s.meters || e.doca && !b.Fake && (len(b.Protocols) == 0 || slices.Contains(b.Protocols, "OpenFlow13"))
		if b.Name == "br-int" && n.HasOVN() && s.flows < "OpenFlow13" {
			s.flows = "OpenFlow13"
		}
		// bridge/dump-flows holds what OpenFlow 1.0 cannot express.
		s.exact = s.flows == "OpenFlow15" || e.datapath
		return s
	}
}

// TestEveryEraReplays replays a report of each era of sos. From a report without manifest, which is read by its
// file names, the same files are collected.
func TestEveryEraReplays(t *testing.T) {
	// The databases of OVN are in four places; all else that eras differ in is in ml2-ovs, too.
	kept := map[string][]string{"openstack": {"3.8", "4.3", "4.4-4.7.1", newest().Name}, "kubernetes": {newest().Name}}
	for _, topology := range []string{"openstack", "kubernetes", "ml2-ovs"} {
		n := recorded(t, topology)
		eras := Eras()
		if kept := kept[topology]; kept != nil {
			eras = sweep.Named(t, eras, func(e Era) string { return e.Name }, kept...)
		}
		for _, e := range eras {
			t.Run(topology+" "+e.Name, func(t *testing.T) {
				t.Parallel()
				path := reportFolder(t, n, n.Report(e))
				r := replay(t, path)
				checkBridges(t, n, r, supplies(e, n))
				checkInspection(t, n, e, path, r)
				if e.HasClientLogs() {
					checkClientLogs(t, n, r)
				}
				checkMachine(t, append(n.Machine(), n.Namespaces(e)...), r.Workdir.Path())
				checkNamespaces(t, r.Workdir.Path(), namespaceNames()...)
				if e.HasManifest() {
					byNames, dir := reportFolder(t, n, WithoutManifest(n.Report(e))), shortDir(t)
					if o := collectInto(t, dir, byNames); o.code != r.collected.code {
						t.Errorf("without manifest, collect exits with %d, and not with %d", o.code, r.collected.code)
					}
					sameFiles(t, filesOf(t, r.Workdir.Path()), filesOf(t, dir), byNames)
				}
				f := r.log(t, n)
				if want := leastFidelity()[topology][e.Name]; sameResults(f) < want {
					t.Errorf("the traces of %.1f %% of the packets have the same result, want %.1f %%", sameResults(f), want)
				}
			})
		}
	}
}

func reportFolder(t *testing.T, n *Node, report Tree) string {
	t.Helper()
	return writeTop(t, fmt.Sprintf(reportName, n.Host), report)
}

// sameResults returns the percentage of packets with the result lines of the live
// node, whichever member a balancing bond chose.
func sameResults(f fidelity.Figures) float64 {
	return fidelity.Percent(f.Results+f.Balanced, f.Packets)
}

// leastFidelity returns the least percentage that sameResults must reach. It is 100 if
// the era's reports hold everything that a trace depends on. Before 4.3, sos did not
// collect TLV maps, nor the groups of bridges with default protocols, which OVN uses.
func leastFidelity() map[string]map[string]float64 {
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
