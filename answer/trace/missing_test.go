package trace

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/replica"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// TestEachMissingFlowIsNamed removes the flow of one stage after the other from the recorded
// flows of a captured node, and asks for a packet that all of them let pass. None of the drops
// may read as the policy, or as a fault of the port.
func TestEachMissingFlowIsNamed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	n := fidelity.Started(t, wd.Path())
	whole, err := os.ReadFile(wd.DumpFile("br-int", workdir.Flows))
	if err != nil {
		t.Fatal(err)
	}
	ask := func() *answer.Answer {
		s, err := OpenSet(t.Context(), snapshot.Of(n.Workdir), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		a, err := s.Ask(t.Context(), Between{From: "p-vm1", To: "p-vm2:22", Question: names.Question{}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	before := ask()
	if before.Verdict != answer.Reachable {
		t.Fatalf("before:\n%s", text(before))
	}
	for stage, want := range map[string]string{
		"input: from physical to logical":  "p-vm1 is bound to this node, which lacks the flow by which its packets enter",
		"ls_in_check_port_sec":             "1 logical flow of stage ls_in_check_port_sec",
		"ls_in_acl_hint":                   "1 logical flow of stage ls_in_acl_hint",
		"ls_in_acl":                        "1 logical flow of stage ls_in_acl for it",
		"ls_in_l2_lkup":                    "1 logical flow of stage ls_in_l2_lkup",
		"output: to this chassis":          `lacks the flow for port p-vm2`,
		"output: loopback check":           `lacks the flow of the stage "output: loopback check" that all packets match`,
		"ls_out_acl_hint":                  "1 logical flow of stage ls_out_acl_hint",
		"output: from logical to physical": `lacks the flow for port p-vm2`,
	} {
		at := slices.IndexFunc(stagesOf(before), func(s answer.Stage) bool { return s.Name == stage && s.Flow != "" })
		if at < 0 {
			t.Errorf("the packet passes no stage %s", stage)
			continue
		}
		gone := stagesOf(before)[at]
		isWanted := func(line string) bool {
			_, priority, _ := strings.Cut(gone.Flow, "priority=")
			return strings.Contains(line, fmt.Sprintf(" table=%d,", gone.Table)) &&
				strings.Contains(line, "cookie="+gone.Cookie+",") &&
				(gone.Cookie != "0x0" || strings.Contains(line, "priority="+priority+" "))
		}
		edit(t, wd.Path(), isWanted, "")
		if err := n.Restart(t.Context(), replica.Options{}); err != nil {
			t.Fatal(err)
		}
		if a := ask(); a.Drop == nil || a.Drop.Reason != "missing flow" || !strings.Contains(a.Drop.Rule, want) {
			t.Errorf("without the flow of stage %s, %q expected:\n%s", stage, want, text(a))
		}
		if err := os.WriteFile(wd.DumpFile("br-int", workdir.Flows), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// stagesOf returns the stages on the path of a packet.
func stagesOf(a *answer.Answer) []answer.Stage {
	var all []answer.Stage
	for _, h := range a.Path {
		all = append(all, h.Stages...)
	}
	return all
}
