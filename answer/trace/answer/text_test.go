package answer_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/mattn/go-runewidth"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/show"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/generate/answers"
)

func written(t *testing.T, a answer.Answer, o answer.Options) string {
	t.Helper()
	var b strings.Builder
	if err := a.Write(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShortFormNamesVerdictPlaceAndRule(t *testing.T) {
	const trust = `  trust    100 % of the entries restored on worker-1 and worker-2
           assumed: the connection is new, because no dump of conntrack has an
           entry
`
	for name, want := range map[string]string{
		"dropped": `UNREACHABLE  dropped on worker-2, switch worker-2, stage ls_out_acl_eval
  reason   ACL
  rule     NetworkPolicy ns2/deny-all (ACL priority 1000, drop)
  path     worker-1 br-int -> backend 10.244.2.7:5432 (1 of 1) -> geneve ->
           worker-2 br-int
  return   not evaluated
` + trust,
		"one-way": `ONE-WAY  arrives at ns2_db-0 (worker-2 br-int port 8a2f1c77e3b1_3); its reply
         does not arrive
  rule     route 10.244.2.0/24 by way of rtos-worker-2
           NetworkPolicy ns2/allow-web (ACL priority 1001, allow-related)
  path     worker-1 br-int -> geneve -> worker-2 br-int
  return   UNREACHABLE: dropped on worker-2, switch worker-2, stage
           ls_in_pre_stateful
           reason: no route
           rule: route 10.244.1.0/24 is missing in ovn_cluster_router
           path: worker-2 br-int
` + trust,
		"backends": `AMBIGUOUS  2 of 3 choices arrive
  choice   backend 10.244.1.7:5432 (1 of 3): arrives at ns2_db-0 (worker-1
           br-int port b00_3)
           backend 10.244.2.7:5432 (2 of 3): arrives at ns2_db-1 (worker-2
           br-int port b01_3)
           backend 10.244.3.7:5432 (3 of 3): dropped on worker-3 br-int: ACL,
           NetworkPolicy ns2/deny-all (ACL priority 1000, drop)
  path     worker-1 br-int -> 3 choices
  return   not evaluated
` + strings.Replace(trust, "worker-1 and worker-2", "worker-1, worker-2 and worker-3", 1),
		"undetermined": `UNDETERMINED  the chassis worker-2 (172.18.0.4) was not captured
  missing  the conntrack dump of zone 8 on worker-1 was not recorded
  path     worker-1 br-int
  return   not evaluated
` + strings.Replace(trust, "worker-1 and worker-2", "worker-1", 1),
		"patch": `REACHABLE  comes out at gateway1 br-ex port eth1
  path     gateway1 br-int -> br-ex
  return   not evaluated
` + strings.Replace(trust, "worker-1 and worker-2", "gateway1", 1),
	} {
		expect.Equal(t, written(t, answers.All()[name], answer.Options{Width: 80}), want, name)
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	for name, a := range answers.All() {
		for _, width := range []int{60, 80, 100} {
			for line := range strings.Lines(written(t, a, answer.Options{Width: width, Verbose: true})) {
				if n := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d columns of %d: %s", name, n, width, line)
				}
			}
		}
	}
}

func TestForeignTextCannotControlTheTerminal(t *testing.T) {
	text := written(t, answers.Hostile(), answer.Options{Verbose: true, Raw: true})
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("the text has the character %q", r)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\\u202e") || strings.HasPrefix(line, "{{") {
			t.Errorf("foreign text begins a line: %s", line)
		}
	}
}

// TestVerboseHasEveryStage counts the stages of all hops, of the reply too.
func TestVerboseHasEveryStage(t *testing.T) {
	a := answers.All()["many-stages"]
	text := written(t, a, answer.Options{Verbose: true, Width: 80})
	want := 0
	for _, of := range []*answer.Answer{&a, a.Return} {
		for _, h := range of.Path {
			want += len(h.Stages)
		}
	}
	if got := strings.Count(text, "  lr_in_") + strings.Count(text, "  ls_"); got != want || want < 200 {
		t.Errorf("%d of %d stages are printed", got, want)
	}
	for _, text := range []string{"router router7, ingress", "route 8.0.0.0/8 by way of router8"} {
		if !strings.Contains(written(t, a, answer.Options{Verbose: true}), text) {
			t.Errorf("%q is not printed", text)
		}
	}
}

func TestRawPrintsTheTracesOfEachHop(t *testing.T) {
	a := answers.All()["five-hops"]
	text := written(t, a, answer.Options{Raw: true})
	if got := strings.Count(text, "\n     bridge(\"br-int\")\n"); got != 7 {
		t.Errorf("%d traces are printed, want 5, and 2 of the reply:\n%s", got, text)
	}
}

func TestPercentIsNeverRoundedUp(t *testing.T) {
	for restored, want := range map[float64]string{100: "100 %", 99.999: "99.9 %", 98.72: "98.7 %", 0: "0 %"} {
		if got := (answer.Fidelity{Restored: restored}).Percent(); got != want {
			t.Errorf("%v is printed as %s, want %s", restored, got, want)
		}
	}
}

// TestAnswerOfNothingSaysSo prints answers in which a part is missing: none may look
// like an answer that is known to be right.
func TestAnswerOfNothingSaysSo(t *testing.T) {
	for want, a := range map[string]answer.Answer{
		"UNDETERMINED  the cause is not known": {Verdict: answer.Undetermined},
		"UNREACHABLE  comes out of no port":    {Verdict: answer.Unreachable},
		"UNREACHABLE  comes out elsewhere, at n1 b1 port p1": {Verdict: answer.Unreachable,
			Outcomes: []answer.Outcome{{Location: answer.Location{Node: "n1", Bridge: "b1", Port: "p1"}}}},
		"REACHABLE  answered by OVN on n1: ICMP echo reply": {Verdict: answer.Reachable,
			Generated: []answer.Generated{{Location: answer.Location{Node: "n1"}, Why: "ICMP echo reply"}}},
		"REACHABLE  answered by router port rp (10.0.0.1)\n": {Verdict: answer.Reachable,
			Answered: "router port rp (10.0.0.1)"},
		"return   the answer comes out at n1 port a\n": {Verdict: answer.Reachable, Answered: "x",
			Outcomes: []answer.Outcome{port("b", false), {Location: answer.Location{Node: "n1", Port: "a"}, Answer: true}}},
		"trust    it is not known how faithful the replicas are": {Verdict: answer.Reachable},
		"UNREACHABLE  dropped on n1, br-ex, table 5": {Verdict: answer.Unreachable,
			Drop: &answer.Drop{Location: answer.Location{Node: "n1", Bridge: "br-ex"}, Stage: answer.Stage{Table: 5}}},
		"\n  next     drift n1\n": {Verdict: answer.Unreachable,
			Drop: &answer.Drop{Location: answer.Location{Node: "n1"}, Reason: "missing flow"}},
		"\n  next     drift n2\n": {Verdict: answer.Reachable, Outcomes: []answer.Outcome{port("a", true)},
			Path: []answer.Hop{{Location: answer.Location{Node: "n2"}, Stages: []answer.Stage{{Stale: true}}}}},
		"REACHABLE  arrives at n1 port a and 2 more ports\n": {Verdict: answer.Reachable,
			Outcomes: []answer.Outcome{port("a", true), port("b", true), port("c", true)}},
		"also     comes out at n1 port b\n           comes out at n1 port c": {Verdict: answer.Reachable,
			Outcomes: []answer.Outcome{port("a", true), port("b", false), port("c", false)}},
	} {
		if got := written(t, a, answer.Options{Call: func(node string,
			args ...string) string {
			return args[0] + " " + node
		}}); !strings.Contains(got, want) {
			t.Errorf("want %q in:\n%s", want, got)
		}
	}
}

func port(name string, destination bool) answer.Outcome {
	return answer.Outcome{Location: answer.Location{Node: "n1", Port: name}, Destination: destination}
}

func TestWrapKeepsTheText(t *testing.T) {
	for _, text := range []string{"", "a", "a b,c d", strings.Repeat("x", 50),
		strings.Repeat("long words, and commas,without spaces ", 9), strings.Repeat("日本語 ", 20)} {
		for width := 2; width < 60; width++ {
			lines := show.Wrap(text, width)
			for _, line := range lines {
				if runewidth.StringWidth(line) > width {
					t.Errorf("%q is wider than %d", line, width)
				}
			}
			squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
			if got := squeeze(strings.Join(lines, "")); got != squeeze(text) {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	}
}

// TestSendersThatAreNoEarlierHops follows a path whose hops name each other, or none, as
// their senders: it must end.
func TestSendersThatAreNoEarlierHops(t *testing.T) {
	a := answers.All()["senders"]
	if first, _ := a.Children(); fmt.Sprint(first) != "[0 1]" {
		t.Errorf("the first hops are %v", first)
	}
	if chain := a.Chain(1); fmt.Sprint(chain) != "[1]" {
		t.Errorf("the chain of hop 1 is %v", chain)
	}
}

// TestLookupsWithinAPipelineBelongToIt groups stages as OVN's tables 73 and 37 come: one
// is looked up in the middle of a pipeline, the other behind it.
func TestLookupsWithinAPipelineBelongToIt(t *testing.T) {
	in := answer.Stage{Datapath: "switch s", Pipeline: "ingress", Match: "1"}
	out := answer.Stage{Datapath: "switch s", Pipeline: "egress", Match: "ip"}
	h := answer.Hop{Location: answer.Location{Bridge: "br-int"},
		Stages: []answer.Stage{{}, in, {Table: 73, Name: "port security"}, in, {Table: 37}, out,
			{Table: 0, OnBridge: "br-ex"}}}
	var got []string
	for _, g := range h.Groups() {
		got = append(got, fmt.Sprint(g.Name, " ", len(g.Stages), " from ", g.First))
	}
	if want := "bridge br-int 1 from 0|switch s, ingress 3 from 1|bridge br-int 1 from 4|switch s, egress 1 from 5|bridge br-ex 1 from 6"; strings.Join(got, "|") != want {
		t.Errorf("the groups are %q", got)
	}
	for want, s := range map[string]answer.Stage{"any packet": in, "ip": out, "no flow matches": {},
		"port p":     {Rule: "port p", Row: "Logical_Switch_Port", Match: "1"},
		"priority=0": {Name: "output", Rule: "output", Flow: "priority=0"}} {
		if got := s.Reads(); got != want {
			t.Errorf("%+v reads %q, want %q", s, got, want)
		}
	}
}

// TestShortFormListsRulesOfUsersOnly has flows of ports and of no row at all on the way:
// they would hide the ACL.
func TestShortFormListsRulesOfUsersOnly(t *testing.T) {
	a := answer.Answer{Verdict: answer.Reachable, Path: []answer.Hop{{From: -1, Stages: []answer.Stage{
		{Rule: "logical flow of stage ls_in_lb, priority 0"}, {Rule: "port vm1", Row: "Logical_Switch_Port"},
		{Rule: "ACL web (priority 1, allow)", Row: "ACL"}, {Rule: "ACL web (priority 1, allow)", Row: "ACL"},
	}}}}
	if got := written(t, a, answer.Options{}); !strings.Contains(got, "  rule     ACL web (priority 1, allow)\n  return") {
		t.Errorf("the short form is:\n%s", got)
	}
}

// TestChoicesAreListedWhateverTheVerdict has a backend that arrives beside one of which
// nothing is known, and a copy that no choice is about.
func TestChoicesAreListedWhateverTheVerdict(t *testing.T) {
	arrives, copied := port("a", true), port("mirror", false)
	arrives.Choice = "backend 1"
	unknown := answer.End{Kind: answer.Unknown, Location: answer.Location{Node: "n1"}, Text: "node n2 was not captured",
		Choice: "backend 2"}
	a := answer.Answer{Verdict: answer.Undetermined, Missing: []string{"node n2 was not captured"},
		Outcomes: []answer.Outcome{arrives, copied}, Path: []answer.Hop{{From: -1, Ends: []answer.End{unknown}}}}
	const want = `UNDETERMINED  node n2 was not captured
  choice   backend 1: arrives at n1 port a
           backend 2: undetermined on n1: node n2 was not captured
  also     comes out at n1 port mirror
`
	if got := written(t, a, answer.Options{}); !strings.HasPrefix(got, want) {
		t.Errorf("want:\n%sin:\n%s", want, got)
	}
}
