package trace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestCapturesOfBothEnds asks about captures of whole conversations at each port of the set
// openstack: ssh, DNS, pings, NAT, load balancers. Every packet there was delivered, so none may
// be unreachable.
func TestCapturesOfBothEnds(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	recorded := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	s := openSet(t, startReplicas(t, recorded), nil)
	for _, userspace := range []bool{true, false} { // Linux's conntrack delivers them as well
		for _, n := range s.nodes {
			n.Conntrack.Userspace = userspace
		}
		capturesOfEachEnd(t, s, recorded)
		capturesOutside(t, s, recorded)
	}
}

func capturesOfEachEnd(t *testing.T, s *Session, recorded *sets.Set) {
	for _, name := range []string{"vm1", "vm2", "vm3", "vm4", "vm5"} {
		sent := 0
		for _, p := range recorded.Talks {
			if p.From == name {
				sent++
			}
		}
		c := askCapture(t, s, Between{From: name}, recorded.Captured(name))
		if counts := checkNoneIsLost(t, name, c, sent); counts[answer.Reachable] != sent {
			t.Errorf("%s: the connections of some packets were not followed\n%s", name, described(c))
		}
		cameOut(t, recorded, name, "", c)
		c = askCapture(t, s, Between{From: name}, answersOnly(t, recorded, name))
		checkNoneIsLost(t, "only what "+name+" sent", c, sent)
		for _, sent := range c.Sent {
			if a := sent.Answer; a.Verdict == answer.Undetermined &&
				!strings.Contains(a.Missing[0], " has no connection to which the packet belongs, and how that began is not in the capture") {
				t.Errorf("%s: %s: %q", name, sent.Flow, a.Missing)
			}
		}
		if to := map[string]string{"vm1": "vm2", "vm2": "vm1", "vm4": "vm1"}[name]; to != "" {
			checkNoneIsLost(t, name+" to "+to, askCapture(t, s, Between{From: name, To: to}, recorded.Captured(name)), sent)
		}
	}
}

// capturesOutside asks about the captures of the host outside, whose packets are of the provider's
// router and of a host behind it. SNAT hides which port a packet there answers.
func capturesOutside(t *testing.T, s *Session, recorded *sets.Set) {
	for address, want := range map[string]map[answer.Verdict]int{
		"172.24.4.1":   {answer.Reachable: 12},
		"198.51.100.9": {answer.Undetermined: 6},
	} {
		c := askCapture(t, s, Between{From: external + address}, recorded.Captured("ext0"))
		counts := verdicts(c)
		for verdict, n := range want {
			if counts[verdict] != n || counts["all"] != n {
				t.Errorf("outside, %s: %v, want %d packets %s\n%s", address, counts, n, verdict, described(c))
			}
		}
		t.Logf("outside, %s: %v", address, counts)
		if want[answer.Reachable] > 0 {
			cameOut(t, recorded, "ext0", "nw_src="+address+",", c)
		}
	}
}

// cameOut checks that each packet of a port, with a text in its flow, is said to come out where it
// did: at every port if the answer has no choice, else by one of its choices.
func cameOut(t *testing.T, recorded *sets.Set, label, text string, c *Captured) {
	t.Helper()
	for _, p := range recorded.Talks {
		if p.From != label || !strings.Contains(p.Flow, text) {
			continue
		}
		f, err := sets.Frame(p.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(c.Sent, func(s *Sent) bool {
			return s.Answer != nil && s.Flow == f.Packet.Input() && s.MinSize <= f.Size && f.Size <= s.MaxSize
		})
		if at < 0 {
			t.Errorf("packet %d (%s) has no answer", p.ID, p.Shows)
			continue
		}
		a := c.Sent[at].Answer
		real := slices.DeleteFunc(slices.Clone(p.Outputs),
			func(o sets.Output) bool { return !o.Own || o.Node == "fabric" || label == "ext0" && o.Role != "edge" })
		found := 0
		for _, o := range real {
			if slices.ContainsFunc(a.Outcomes, func(said answer.Outcome) bool {
				return said.Node == o.Node && said.Bridge == o.Bridge && said.Port == o.Port
			}) {
				found++
			}
		}
		isChosen := len(a.Outcomes) > 1 && !slices.ContainsFunc(a.Outcomes,
			func(o answer.Outcome) bool { return o.Choice == "" })
		if found == 0 || found < len(real) || !isChosen && len(a.Outcomes) != len(real) {
			t.Errorf("packet %d (%s) came out at %v\n%+v", p.ID, p.Shows, real, a.Outcomes)
		}
	}
}

// verdicts counts the packets by their verdicts.
func verdicts(c *Captured) map[answer.Verdict]int {
	counts := map[answer.Verdict]int{}
	for _, s := range c.Sent {
		verdict := answer.Verdict("error")
		if s.Answer != nil {
			verdict = s.Answer.Verdict
		}
		counts[verdict] += s.Packets
		counts["all"] += s.Packets
	}
	return counts
}

// described lists what did not arrive.
func described(c *Captured) string {
	var b strings.Builder
	for _, s := range c.Sent {
		switch {
		case s.Answer == nil:
			b.WriteString(s.Flow + ": " + s.Error + "\n")
		case s.Answer.Verdict != answer.Reachable:
			b.WriteString(s.Flow + ":\n" + text(s.Answer))
		}
	}
	return b.String()
}

// captured asks about the packets of a capture file.
func askCapture(t *testing.T, s *Session, b Between, path string) *Captured {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("%v: record the sets again (make test does)", err)
	}
	defer f.Close()
	c, err := s.Capture(t.Context(), b, f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

// answersOnly writes a capture file that has only the packets of a port, of those that came in
// the conversations after the set's capture.
func answersOnly(t *testing.T, recorded *sets.Set, label string) string {
	t.Helper()
	var frames []string
	for _, p := range recorded.Talks {
		if p.From == label {
			frames = append(frames, p.Bytes)
		}
	}
	path := filepath.Join(t.TempDir(), label+".pcap")
	if err := sets.WriteCapture(path, frames); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkNoneIsLost checks that no packet is unreachable.
func checkNoneIsLost(t *testing.T, title string, c *Captured, sent int) map[answer.Verdict]int {
	t.Helper()
	counts := verdicts(c)
	t.Logf("%s: %d packets sent, %d of others, %d for others: %v", title, sent, c.Others, c.Elsewhere, counts)
	// One of several backends is TO, and which of them got a packet is not known at the client.
	if counts["all"]+c.Elsewhere != sent ||
		counts[answer.Reachable]+counts[answer.Undetermined]+counts[answer.Ambiguous] != counts["all"] {
		t.Errorf("%s: %d packets were sent and delivered\n%s", title, sent, described(c))
	}
	return counts
}
