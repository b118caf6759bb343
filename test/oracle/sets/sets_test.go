package sets

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

const lab = "../../../scripts/lab/lab"

// What a tracer is measured with: at least so many packets of all sets together, of which
// a third is dropped and a quarter belongs to established connections.
const packets = 300

func TestPacketsGoWhereTheLabIsBuiltForThemToGo(t *testing.T) {
	ovs.Need(t, programs()...)
	var all []*Packet
	for _, name := range Names() {
		s := Recorded(t, lab, name)
		checkSurprises(t, s)
		all = append(all, s.Packets...)
		t.Run(name, func(t *testing.T) { canBeReplayed(t, s) })
	}
	count := func(what func(p *Packet) bool) (n int) {
		for _, p := range all {
			if what(p) {
				n++
			}
		}
		return n
	}
	lost := count(func(p *Packet) bool { return p.Class == Dropped })
	open := count(func(p *Packet) bool { return p.Established })
	t.Logf("%d packets, %d dropped, %d of established connections", len(all), lost, open)
	if len(all) < packets || 3*lost < len(all) || 4*open < len(all) {
		t.Errorf("want at least %d packets, a third of them dropped and a quarter of established connections", packets)
	}
}

// TestPacketsThroughNamespacesGoWhereTheLabIsBuiltForThemToGo runs the sets whose routers are network namespaces.
func TestPacketsThroughNamespacesGoWhereTheLabIsBuiltForThemToGo(t *testing.T) {
	for _, name := range NamespaceNames() {
		s := RecordedNamespaces(t, lab, name)
		checkSurprises(t, s)
		recordsNamespaces(t, s)
	}
}

// TestPacketsThroughOwnNamespacesGoWhereTheLabIsBuiltForThemToGo runs the sets whose packets pass rules of iptables in
// the nodes' own namespaces.
func TestPacketsThroughOwnNamespacesGoWhereTheLabIsBuiltForThemToGo(t *testing.T) {
	for _, name := range OwnNames() {
		s := RecordedNamespaces(t, lab, name)
		checkSurprises(t, s)
		paths, err := s.Workdirs(context.Background(), filepath.Join(t.TempDir(), "wd"), Native)
		if err != nil {
			t.Fatal(err)
		}
		for node, path := range paths {
			wd, err := workdir.Find(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(wd.HostRecorded(workdir.HostNftables))
			if err != nil || !strings.Contains(string(text), "table ") {
				t.Errorf("%s: no rules of the node's own namespace were recorded (%v)", node, err)
			}
		}
	}
}

// recordsNamespaces checks that the workdir of a node has the outputs of each namespace with a device.
func recordsNamespaces(t *testing.T, s *Set) {
	paths, err := s.Workdirs(context.Background(), filepath.Join(t.TempDir(), "wd"), Native)
	if err != nil {
		t.Fatal(err)
	}
	collected := map[string][]string{}
	for _, node := range s.Nodes {
		collected[node] = inReport(t, s, node)
	}
	for _, p := range s.Ports {
		if p.Namespace == "" {
			continue
		}
		wd, err := workdir.Find(paths[p.Node])
		if err != nil {
			t.Fatal(err)
		}
		if report := collected[p.Node]; !slices.Contains(report, p.Namespace) {
			t.Errorf("%s: the sos report has namespaces %q, and not %s", p.Node, report, p.Namespace)
		}
		text, err := os.ReadFile(wd.NamespaceRecorded(p.Namespace, "ip.address"))
		if err != nil || !strings.Contains(string(text), p.Name) {
			t.Errorf("%s: the addresses of namespace %s have no device %s (%v)", p.Node, p.Namespace, p.Name, err)
		}
	}
}

// inReport returns the network namespaces that the sos report of a node has.
func inReport(t *testing.T, s *Set, node string) []string {
	t.Helper()
	report, err := s.Report(node)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), node)
	if err := workdirOf(context.Background(), report, dir, Native); err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, err := wd.RecordedNamespaces()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSetsOfEachRelease runs the sets with the daemons of other releases: the packets go
// the same ways.
func TestSetsOfEachRelease(t *testing.T) {
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	ovs.Need(t, programs()...)
	for _, release := range []string{"trixie", "sid"} {
		root := filepath.Join(roots, release)
		for _, name := range Names() {
			t.Run(release+"/"+name, func(t *testing.T) {
				if _, err := os.Stat(root); err != nil {
					t.Skip(err)
				}
				runs(t, Options{Lab: lab, Root: root, Name: name})
			})
		}
	}
}

// checkSurprises fails for each packet that went another way than the lab was built for.
func checkSurprises(t *testing.T, s *Set) {
	t.Helper()
	for _, surprise := range s.Surprises {
		t.Errorf("%s: %s", s.Name, surprise)
	}
}

// runs runs a set, and fails for each surprise.
func runs(t *testing.T, o Options) *Set {
	t.Helper()
	s, err := Run(t.Context(), o, t.TempDir())
	if err != nil {
		t.Fatalf("%s: %v", o.Name, err)
	}
	checkSurprises(t, s)
	t.Logf("%s, Open vSwitch %s, OVN %s: %d packets, %+v", o.Name, s.OVS, s.OVN, len(s.Packets), s.Timing)
	return s
}

func programs() []string {
	return []string{"ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare",
		"xz"}
}

// canBeReplayed checks that replicas of the nodes take each packet, as nodes with native
// tunnels and as nodes with the kernel's.
func canBeReplayed(t *testing.T, s *Set) {
	for as, tunnel := range map[Datapath]string{Native: "tnl_push(", Kernel: "set(tunnel("} {
		paths, err := s.Workdirs(context.Background(), filepath.Join(t.TempDir(), "wd"), as)
		if err != nil {
			t.Fatal(err)
		}
		pushed := 0
		for node, path := range paths {
			pushed += takesPackets(t, s, node, path, tunnel)
		}
		if pushed == 0 {
			t.Errorf("no trace of a packet has the action %s", tunnel)
		}
	}
}

// takesPackets returns the number of traces with a certain datapath action.
func takesPackets(t *testing.T, s *Set, node, path, action string) (found int) {
	t.Helper()
	n, err := fidelity.Adopt(context.Background(), path, replica.Options{})
	if err != nil {
		t.Fatalf("%s: %v", node, err)
	}
	defer func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	ofNode := slices.DeleteFunc(slices.Clone(s.Packets), func(p *Packet) bool { return p.Node != node })
	for _, p := range sweep.Spread(ofNode, 20) {
		trace, err := n.Tool(context.Background(), "ovs-appctl", "ofproto/trace", p.Bridge, p.Flow, "--ct-next", "trk,new",
			"--ct-next", "trk,new", "--ct-next", "trk,new")
		if err != nil || !strings.Contains(trace, "Datapath actions:") {
			t.Errorf("packet %d: ofproto/trace %s %s: %v %s", p.ID, p.Bridge, p.Flow, err, trace)
		}
		if strings.Contains(trace, action) {
			found++
		}
	}
	return found
}
