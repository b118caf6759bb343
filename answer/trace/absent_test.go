package trace

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/replica"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// TestNodeWithoutReplicaCostsItsShare stops the replica of the first and the last node of a set, and of each in a
// sweep, in turn. Packets that do not get to that node keep their answers, which are what came out; the others are
// undetermined, with the cause.
func TestNodeWithoutReplicaCostsItsShare(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	for _, name := range sets.Names() {
		t.Run(name, func(t *testing.T) {
			recorded := sets.Recorded(t, "../../scripts/lab/lab", name)
			folder, replicas := startIn(t, recorded, sets.Native, "")
			packets := slices.DeleteFunc(slices.Clone(eachShape(recorded.Packets, wayOf)),
				func(p *sets.Packet) bool { return len(p.After) > 0 })
			all := openSet(t, folder, nil)
			var whole []*answer.Answer
			for _, p := range packets {
				whole = append(whole, ask(t, all, p).answer)
			}
			first, last := recorded.Nodes[0], recorded.Nodes[len(recorded.Nodes)-1]
			for _, node := range sweep.Rows(recorded.Nodes,
				func(node string) bool { return node == last || node == first && name == "openstack" }) {
				if err := replicas[node].Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				s := openSet(t, folder, nil)
				if down := s.Unavailable(); len(down) != 1 || down[0].Node != node {
					t.Fatalf("%s was stopped, and these are named: %v", node, down)
				}
				share, spared := 0, 0
				for i, p := range packets {
					w := ask(t, s, p)
					if comparePart(t, node, p, whole[i], w, recorded.OVN != "") {
						share++
					} else if w.answer.Verdict == answer.Unreachable &&
						slices.Contains(w.answer.Trust.Assumed,
							"node "+node+", whose replica can't be asked, sends on no packet for the MAC address of another node") {
						spared++
					}
				}
				t.Logf("without %s: %d of %d packets are undetermined", node, share, len(packets))
				if share == 0 || share > 4*len(packets)/5 {
					t.Errorf("without %s, %d of %d packets are undetermined", node, share, len(packets))
				}
				if name == "openstack" && spared == 0 {
					t.Errorf("without %s, each drop behind the physical network is undetermined", node)
				}
				again, err := fidelity.Adopt(t.Context(), replicas[node].Workdir.Path(), replica.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { again.Close(context.Background()) })
			}
		})
	}
}

// comparePart compares the answer of a set whose node has no replica with that of the whole
// set. It reports whether the answer is undetermined for that.
func comparePart(t *testing.T, node string, p *sets.Packet, whole *answer.Answer, part *inquiry, ovn bool) bool {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Errorf("without %s, packet %d (%s): %s: "+format+"\n%s\nwith it:\n%s",
			append(append([]any{node, p.ID, p.Shows, p.Flow}, args...), text(part.answer), text(whole))...)
	}
	isThere := func(h answer.Hop) bool { return h.Node == node }
	if slices.ContainsFunc(part.answer.Path, isThere) {
		wrong("the path leads over the node")
	}
	if part.answer.Verdict == answer.Undetermined && whole.Verdict != answer.Undetermined {
		if !slices.ContainsFunc(whole.Path, isThere) {
			wrong("the packet never gets to the node")
		}
		cause := "node " + node + ": its replica does not run"
		if !slices.ContainsFunc(part.answer.Missing, func(text string) bool { return strings.HasPrefix(text, cause) }) {
			wrong("the cause is not %q", cause)
		}
		return true
	}
	if part.answer.Verdict != whole.Verdict {
		wrong("the verdict changed")
		return false
	}
	if whole.Verdict != answer.Undetermined {
		compare(t, p, part, ovn)
	}
	return false
}
