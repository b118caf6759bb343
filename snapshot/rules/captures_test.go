package rules

import (
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
)

func open(tb testing.TB, path string) *file.Index {
	tb.Helper()
	x, err := file.OpenIndex(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(x.Close)
	return x
}

// flowsOf yields the flows of a dump.
func flowsOf(tb testing.TB, path string) iter.Seq[openflow.Key] {
	return func(yield func(openflow.Key) bool) {
		dump, err := os.Open(path)
		if err != nil {
			tb.Fatal(err)
		}
		defer dump.Close()
		for line, problem := range openflow.Flows(dump) {
			if problem == nil && !yield(line.Key()) {
				return
			}
		}
	}
}

// loaded are the rules of a node, and its flows.
type loaded struct {
	name  string
	rules *Rules
	flows []Flow
}

func load(tb testing.TB, name, nb, sb, flows string) loaded {
	tb.Helper()
	r := New(open(tb, nb), open(tb, sb))
	layout, err := r.Layout(flowsOf(tb, flows))
	if err != nil {
		tb.Fatal(err)
	}
	l := loaded{name: name, rules: r}
	for k := range flowsOf(tb, flows) {
		l.flows = append(l.flows, FlowOf(k, layout))
	}
	return l
}

// checkCookies checks that all cookies of a node are found, and that none of them is ambiguous.
func (l loaded) checkCookies(t *testing.T, egress int) {
	t.Helper()
	cookies, datapaths := map[uint64]bool{}, map[uint64]bool{}
	for _, f := range l.flows {
		if f.Layout.Ingress != 8 || f.Layout.Egress != egress {
			t.Fatalf("%s: layout %+v", l.name, f.Layout)
		}
		rule, ok, err := l.rules.Find(f)
		if err != nil {
			t.Fatal(err)
		}
		if !ok || rule.Words == "" || rule.Stage == "" || rule.Candidates > 0 {
			t.Errorf("%s: flow %+v: %+v", l.name, f, rule)
		}
		if pipeline, _ := f.Layout.logical(f.Table); pipeline != "" && f.Metadata != 0 {
			datapaths[f.Metadata] = true
			if f.Cookie != 0 && (rule.Row != logicalFlow || rule.Datapath.Key != f.Metadata || rule.Datapath.Name == "") {
				t.Errorf("%s: flow %+v of a pipeline: %+v", l.name, f, rule)
			}
		}
		cookies[f.Cookie] = true
	}
	t.Logf("%s: %d flows, %d cookies, %d datapaths", l.name, len(l.flows), len(cookies), len(datapaths))
}

// TestCookiesOfCapturesAreNamed checks every flow of the captured nodes.
func TestCookiesOfCapturesAreNamed(t *testing.T) {
	for _, node := range captures.Nodes(t) {
		load(t, node.Name, node.NB, node.SB, node.Flows).checkCookies(t, 42)
	}
}

// TestRulesAreThoseOfDetrace compares rules with what ovn-detrace prints for every cookie
// of the captured nodes.
func TestRulesAreThoseOfDetrace(t *testing.T) {
	ovs.Need(t, "ovsdb-server", "ovn-detrace")
	for _, node := range captures.Nodes(t) {
		l := load(t, node.Name, node.NB, node.SB, node.Flows)
		dir := ovs.Dir(t)
		var databases []string
		for name, path := range map[string]string{"nb.db": node.NB, "sb.db": node.SB} {
			copied := filepath.Join(dir, name)
			if _, _, err := file.Standalone(t.Context(), path, copied); err != nil {
				t.Fatal(err)
			}
			databases = append(databases, copied)
		}
		server := ovs.Serve(t, databases...)
		var trace strings.Builder
		var asked []Flow
		for _, f := range l.flows {
			if f.Cookie != 0 && !slices.ContainsFunc(asked, func(o Flow) bool { return o.Cookie == f.Cookie }) {
				asked = append(asked, f)
				fmt.Fprintf(&trace, " 1. priority 1, cookie %#x\n\n", f.Cookie)
			}
		}
		detrace := exec.Command("ovn-detrace", "--ovnsb="+server.Remote, "--ovnnb="+server.Remote)
		detrace.Stdin = strings.NewReader(trace.String())
		out, err := detrace.Output()
		if err != nil {
			t.Skipf("ovn-detrace: %v", err)
		}
		blocks := strings.Split(string(out), "1. priority 1, ")[1:]
		if len(blocks) != len(asked) {
			t.Fatalf("%d answers to %d cookies", len(blocks), len(asked))
		}
		named := 0
		for i, block := range blocks {
			named += compareWithDetrace(t, l.rules, asked[i], block)
		}
		t.Logf("%s: %d cookies, %d with rows of the NB database", node.Name, len(asked), named)
		if named == 0 {
			t.Error("ovn-detrace named no northbound row")
		}
	}
}

// compareWithDetrace compares a rule with the output of ovn-detrace, and returns 1 if that
// has a northbound row.
func compareWithDetrace(t *testing.T, r *Rules, f Flow, block string) int {
	t.Helper()
	rule, ok, err := r.Find(f)
	if err != nil || !ok {
		t.Errorf("cookie %#x: %v", f.Cookie, err)
		return 0
	}
	var want string
	switch rule.Row {
	case logicalFlow:
		want = fmt.Sprintf("Logical flow: table=%d (%s), priority=%d, match=(%s), actions=(%s)", rule.Table, rule.Stage,
			rule.Priority,
			strings.Trim(rule.Match, `"`), strings.Trim(rule.Actions, `"`))
	case "Port_Binding":
		row, _, _ := r.sb.Row("Port_Binding", rule.UUID)
		want = fmt.Sprintf(`Port Binding: logical_port "%s"`, row.String("logical_port"))
	case "MAC_Binding":
		want = "MAC Binding: ip "
	case "Multicast_Group":
		want = fmt.Sprintf(`Multicast Group: name "%s"`, strings.Fields(rule.Words)[2])
	case "Load_Balancer":
		want = "Load Balancer: "
	default:
		t.Errorf("cookie %#x: row of %s", f.Cookie, rule.Row)
	}
	if !strings.Contains(block, want) {
		t.Errorf("cookie %#x: no %q in\n%s", f.Cookie, want, block)
	}
	hints := map[string]string{"ACL": "ACL: ", "NAT": "NAT: external IP ", "Logical_Router_Static_Route": "Route: ",
		"Load_Balancer":         "Load Balancer: ",
		"Logical_Router_Policy": "Logical Router Policy: ", "QoS": "QoS: ", "Logical_Switch_Port": "Logical Switch Port: ",
		"Logical_Router_Port": "Logical Router Port: ", "DHCP_Options": "DHCP Options: "}
	if rule.Row != logicalFlow {
		return 0
	}
	for table, text := range hints {
		if strings.Contains(block, "\n   * "+text) != (rule.Cause.Table == table) {
			t.Errorf("cookie %#x: cause %+v, but ovn-detrace printed\n%s", f.Cookie, rule.Cause, block)
		}
	}
	if rule.Cause.Table == "ACL" {
		row, _, _ := r.nb.Row("ACL", rule.Cause.UUID)
		if !strings.Contains(block, row.String("match")) ||
			!strings.Contains(rule.Words, strconv.Itoa(number(row, "priority"))) {
			t.Errorf("cookie %#x: %q, but ovn-detrace printed\n%s", f.Cookie, rule.Words, block)
		}
	}
	if rule.Cause.Table == "" {
		return 0
	}
	return 1
}

// TestTablesOfNewerReleasesAreNamed has tables of OVN 25.03, with the numbers of its
// controller/lflow.h.
func TestTablesOfNewerReleasesAreNamed(t *testing.T) {
	l := Layout{Ingress: 8, IngressEnd: 39, Egress: 45, EgressEnd: 63}
	for table, want := range map[int]string{66: "MAC addresses of neighbours", 79: "use of MAC bindings",
		80: "conntrack: zone", 81: "conntrack: original IPv4 destination",
		83: "conntrack: original destination port", 84: "output: flood to remote chassis", 85: "conntrack: state",
		86: "conntrack: original protocol", 88: "FDB of remote chassis, learning", 90: "table 90", 50: "egress table 5"} {
		expect.Equal(t, l.TableName(table), want, "table", table)
	}
}

// TestLayoutStopsOnceItIsClear repeats the flows of a node: the layout is that of the whole dump,
// and the repeated ones are not read.
func TestLayoutStopsOnceItIsClear(t *testing.T) {
	for _, node := range captures.Nodes(t) {
		r := New(open(t, node.NB), open(t, node.SB))
		all, read := slices.Collect(flowsOf(t, node.Flows)), 0
		layout, err := r.Layout(func(yield func(openflow.Key) bool) {
			for range 3 {
				for _, f := range all {
					if read++; !yield(f) {
						return
					}
				}
			}
		})
		if err != nil || layout != (Layout{8, 36, 42, 63}) || read >= len(all) {
			t.Errorf("%s: %+v %v after %d flows of %d", node.Name, layout, err, read, len(all))
		}
		if l, err := r.ReadLayout(t.Context(), nil, node.Flows); err != nil || l != layout {
			t.Errorf("%s: the dump has %+v %v, want %+v", node.Name, l, err, layout)
		}
		if l, err := r.ReadLayout(t.Context(), nil, filepath.Join(t.TempDir(), "absent")); err != nil || l != (Layout{}) {
			t.Errorf("without a dump: %+v %v", l, err)
		}
	}
}
