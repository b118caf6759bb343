package restore_test

import (
	"fmt"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
)

// TestUnknownNamesAreCounted checks that names which the database does not have
// are counted and reported once, and that the rest is restored.
func TestUnknownNamesAreCounted(t *testing.T) {
	many := sweep.Count(20000, 2000) // a thousand details would be listed
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "a", "--", "set", "Interface", "a", "bfd:enable=true",
		"--", "add-port", "br0", "b", "--", "set", "Interface", "b", "cfm_mpid=1",
		"--", "add-bond", "br0", "lag", "lag-1", "lag-2", "bond_mode=active-backup")
	node.likeKernel("br0")
	node.appctl("bfd/set-forwarding", "a", "true")
	node.appctl("cfm/set-fault", "b", "true")
	sos := node.report()
	for command, section := range map[string]string{
		"bfd/show":  "---- x%d ----\n\tForwarding: true\n",
		"cfm/show":  "---- x%d ----\nfault: recv\n",
		"bond/show": "---- x%d ----\nmember y: enabled\n  may_enable: true\n",
		"lacp/show": "---- x%d ----\nmember: y: current attached\n",
	} {
		var text strings.Builder
		text.WriteString(node.appctl(command))
		for i := range many {
			fmt.Fprintf(&text, section, i)
		}
		write(t, sos, "ovs-appctl_"+strings.Replace(command, "/", ".", 1), text.String())
	}
	r := replay(t, sos, process.Options{})
	r.wantStep("BFD", report.Failed, fmt.Sprint(many))
	r.wantStep("CFM", report.Failed, fmt.Sprint(many))
	r.wantStep("bonds", report.Failed, fmt.Sprint(many))
	for _, s := range r.report.Steps {
		if len(s.Details) > 3 || s.More > 0 {
			t.Errorf("%s has %d details and %d more: %.300q", s.Step, len(s.Details), s.More, s.Details)
		}
	}
	r.sameShown(node, "bond/show")
	if out := r.appctl("bfd/show"); !strings.Contains(out, "Forwarding: true") {
		t.Errorf("the BFD session that is known does not forward:\n%s", out)
	}
	if out := r.appctl("cfm/show"); !strings.Contains(out, "fault: override") {
		t.Errorf("the monitor that is known has no fault:\n%s", out)
	}
}
