package sets

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/test/fidelity"
	"ovs-offline/test/ovs"
)

const lab = "../../scripts/lab/lab"

// At least so many packets of all sets together, so many of them dropped, and so many of
// them of established connections, are what a tracer is measured with.
const (
	packets     = 300
	dropped     = packets / 3
	established = packets / 4
)

func TestPacketsGoWhereTheLabIsBuiltForThemToGo(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	var all []*Packet
	for _, name := range Names() {
		s, err := Run(context.Background(), Options{Lab: lab, Name: name}, t.TempDir())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, surprise := range s.Surprises {
			t.Errorf("%s: %s", name, surprise)
		}
		t.Logf("%s: %d packets, %+v", name, len(s.Packets), s.Timing)
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
	if len(all) < packets || lost < dropped || open < established {
		t.Errorf("%d packets, %d dropped, %d of established connections; want %d, %d and %d", len(all), lost, open, packets, dropped, established)
	}
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
	for _, p := range s.Packets {
		if p.Node != node {
			continue
		}
		trace, err := n.Tool(context.Background(), "ovs-appctl", "ofproto/trace", p.Bridge, p.Flow, "--ct-next", "trk,new", "--ct-next", "trk,new", "--ct-next", "trk,new")
		if err != nil || !strings.Contains(trace, "Datapath actions:") {
			t.Errorf("packet %d: ofproto/trace %s %s: %v %s", p.ID, p.Bridge, p.Flow, err, trace)
		}
		if strings.Contains(trace, action) {
			found++
		}
	}
	return found
}
