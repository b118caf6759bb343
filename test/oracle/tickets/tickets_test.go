package tickets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/tickets"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	packetlist "ovs-offline/test/oracle/trace"
)

// leastRight is the least share of tickets with all data whose answers are those of the whole node, in percent. The
// others are UNDETERMINED.
const leastRight = 92

// TestTickets makes tickets of each form, and asks their replicas what becomes of packets. No answer may be wrong: it
// is that of the whole node, or UNDETERMINED with the cause. In `make test`, there are forms of a small live node; the
// sweep has all forms of it, and of recorded nodes.
func TestTickets(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovs-appctl", "ovs-vsctl", "xz")
	table := newTable()
	for _, version := range sweep.Last([]string{"OpenFlow15", "OpenFlow14", "OpenFlow13"}) {
		t.Run("live, "+version, func(t *testing.T) { askForms(t, table, liveNode(t, version)) })
	}
	if sweep.Whole() {
		askCaptures(t, table)
		askSets(t, table)
	}
	table.check(t)
}

// askCaptures asks for the nodes in testdata, of each version of OpenFlow.
func askCaptures(t *testing.T, table *table) {
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		r, err := fidelity.Capture(t.Context(), "../../../testdata/captures/"+name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(r.Packets)
		if err != nil {
			t.Fatal(err)
		}
		list, err := packetlist.ReadPackets(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		var flows []string
		for _, p := range list {
			if len(p.Options) == 0 {
				flows = append(flows, p.Bridge+" "+p.Flow)
			}
		}
		for _, version := range []string{"OpenFlow13", "OpenFlow14", "OpenFlow15"} {
			t.Run(name+", "+version, func(t *testing.T) { askForms(t, table, recordedNode(t, "n1", version, r.Report, flows)) })
		}
	}
}

// askSets asks for the nodes of the lab's sets.
func askSets(t *testing.T, table *table) {
	for _, name := range sets.Names() {
		s := sets.Recorded(t, "../../../scripts/lab/lab", name)
		for i, node := range s.Nodes {
			report, err := s.Report(node)
			if err != nil {
				t.Fatal(err)
			}
			var flows []string
			for _, p := range s.Packets {
				if p.Node == node && len(p.After) == 0 && !p.Choice && p.Bridge != "-" && strings.Contains(p.Flow, "in_port=") {
					flows = append(flows, p.Bridge+" "+p.Flow)
				}
			}
			version := []string{"OpenFlow14", "OpenFlow15"}[i%2] // sos takes the dumps of few versions
			t.Run(name+" "+node+", "+version, func(t *testing.T) {
				if len(flows) == 0 {
					t.Skip("no packet of the set enters this node by a port")
				}
				askForms(t, table, recordedNode(t, node, version, report, flows))
			})
		}
	}
}

// forms returns all forms in a sweep, and otherwise those with all data, most of which share a replica, and some of
// the others.
func forms() (list []tickets.Form) {
	var lacking []tickets.Form
	for _, f := range tickets.Forms() {
		if f.Whole() {
			list = append(list, f)
		} else {
			lacking = append(lacking, f)
		}
	}
	return append(list, sweep.Spread(lacking, 16)...)
}

// askForms asks for all forms of a node.
func askForms(t *testing.T, table *table, w *whole) {
	t.Helper()
	t.Logf("%d outputs, %d packets", len(w.Outputs), len(w.packets))
	for _, p := range w.packets {
		t.Logf("  %s: %s", p.flow, p.end)
	}
	dir, texts := ovs.Dir(t), map[string]bool{}
	var made []ticket
	for i, f := range forms() {
		text := f.Write(&w.Node)
		if text == "" || texts[text] {
			continue // the node has nothing of which the form is
		}
		texts[text] = true
		one, err := collected(t.Context(), filepath.Join(dir, fmt.Sprint(i)), w, f, text)
		if err != nil {
			t.Fatalf("%s/%s: %v", f.Kind, f.Name, err)
		}
		made = append(made, one)
	}
	all, err := sayings(t.Context(), w, made)
	if err != nil {
		t.Error(err)
	}
	for _, one := range made {
		table.add(t, one.form, judge(one, w, all[one.key]))
	}
	t.Logf("%d tickets, %d replicas", len(made), len(all))
}

// table counts the outcomes of tickets by form.
type table struct {
	forms  []tickets.Form
	counts map[string][]int // by kind and name of a form
}

func newTable() *table { return &table{forms: tickets.Forms(), counts: map[string][]int{}} }

// add counts a ticket. A wrong answer fails the test.
func (c *table) add(t *testing.T, f tickets.Form, j judged) {
	t.Helper()
	name := f.Kind + "/" + f.Name
	if c.counts[name] == nil {
		c.counts[name] = make([]int, len(outcomes()))
	}
	c.counts[name][j.outcome]++
	switch {
	case j.outcome > refused:
		t.Errorf("%s is %s: %s", name, outcomes()[j.outcome], j.why)
	case j.outcome > right:
		t.Logf("%s is %s: %s", name, outcomes()[j.outcome], j.why)
	}
}

// check prints the table, and compares the share of the right answers.
func (c *table) check(t *testing.T) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%-36s %s\n", "form", strings.Join(outcomes(), "  "))
	all, whole := make([]int, len(outcomes())), make([]int, len(outcomes()))
	for _, f := range c.forms {
		counts := c.counts[f.Kind+"/"+f.Name]
		mark := " "
		if !f.Whole() {
			mark = "-"
		}
		fmt.Fprintf(&b, "%s %-34s", mark, f.Kind+"/"+f.Name)
		for i, n := range counts {
			fmt.Fprintf(&b, " %*d", len(outcomes()[i])+1, n)
			all[i] += n
			if f.Whole() {
				whole[i] += n
			}
		}
		b.WriteByte('\n')
	}
	wholes, total := sum(whole), sum(all)
	fmt.Fprintf(&b, "all %d: %v; of %d forms with all data: %v\n", total, all, wholes, whole)
	t.Log(b.String())
	if percent := fidelity.Percent(whole[right], wholes); percent < leastRight {
		t.Errorf("%.1f %% of the tickets with all data are right, want %d %%", percent, leastRight)
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
