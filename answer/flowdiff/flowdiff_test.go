package flowdiff

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/oracle/captures"
)

// captured reads the state of the integration bridge of a captured node.
func captured(t *testing.T, node captures.Node) State {
	t.Helper()
	open := func(command string) *os.File {
		path, err := filepath.Glob(filepath.Join(filepath.Dir(node.Flows), "*"+command+"*br-int*"))
		if err != nil || len(path) == 0 {
			t.Fatalf("%s: no %s", node.Name, command)
		}
		f, err := os.Open(path[len(path)-1]) // of the newest OpenFlow version
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	s, lost := Read(open("dump-flows"), open("dump-groups"), open("dump-meters"))
	if len(s.Flows) < 100 || len(lost) > 0 {
		t.Fatalf("%s: %d flows, lost %v", node.Name, len(s.Flows), lost)
	}
	return s
}

// renumbered returns a state with other ids, in another order.
func renumbered(s State) State {
	other := func(at openflow.ID) string { return fmt.Sprint(1000 - at.Number%900) }
	entries := func(kind openflow.IDKind, list []openflow.Entry) (new []openflow.Entry) {
		for _, e := range slices.Backward(list) {
			n, _ := strconv.ParseUint(other(openflow.ID{Kind: kind, Number: e.ID}), 10, 32)
			head, _, _ := strings.Cut(e.Text, "=")
			new = append(new, openflow.Entry{ID: uint32(n), Text: fmt.Sprintf("%s=%d,%s", head, n, body(e.Text))})
		}
		return new
	}
	renamed := State{Groups: entries(groups, s.Groups), Meters: entries(meters, s.Meters)}
	for _, f := range slices.Backward(s.Flows) {
		renamed.Flows = append(renamed.Flows, openflow.Flow{Text: openflow.RenameIDs(f.Text, other)})
	}
	return renamed
}

// TestOtherIDsAreNoChange compares the states of captured nodes with themselves, with other
// ids of groups, meters and conjunctions.
func TestOtherIDsAreNoChange(t *testing.T) {
	for _, node := range captures.Nodes(t) {
		s := captured(t, node)
		d := Compare(s, renumbered(s))
		if !d.Equal() || d.Flows != len(s.Flows) {
			t.Errorf("%s: %d of %d flows are the same; %+v", node.Name, d.Flows, len(s.Flows), d)
		}
	}
}

// conjunctive is a state with two ACLs that share a clause, a group, and two equal meters.
func conjunctive() State {
	s, _ := Read(strings.NewReader(` cookie=0xa, table=44, priority=1001,conj_id=7,ip,metadata=0x1 actions=next
 cookie=0xb, table=44, priority=1001,conj_id=9,ip,metadata=0x1 actions=drop
 cookie=0x0, table=44, priority=1001,ip,metadata=0x1,nw_src=10.0.0.1 actions=conjunction(7,1/2),conjunction(9,1/2)
 cookie=0x0, table=44, priority=1001,ip,metadata=0x1,nw_src=10.0.0.2 actions=conjunction(7,1/2)
 cookie=0x0, table=44, priority=1001,tcp,metadata=0x1,tp_dst=80 actions=conjunction(7,2/2),conjunction(9,2/2)
 cookie=0xc, table=20, priority=120,ip,metadata=0x1,nw_dst=10.9.0.1 actions=group:4
 cookie=0xd, table=20, priority=120,ip,metadata=0x1,nw_dst=10.9.0.2 actions=group:5
 cookie=0xe, table=26, priority=10,metadata=0x1,reg14=0x1 actions=meter:1,resubmit(,27)
 cookie=0xf, table=26, priority=10,metadata=0x1,reg14=0x2 actions=meter:2,resubmit(,27)
`), strings.NewReader(` group_id=4,type=select,bucket=bucket_id:0,weight:100,actions=output:1
 group_id=5,type=select,bucket=bucket_id:0,weight:100,actions=output:2
`), strings.NewReader(`meter=1 kbps bands=
type=drop rate=100
meter=2 kbps bands=
type=drop rate=100
`))
	return s
}

// TestOnlyWhatDiffersIsAChange changes one entry at a time, beside other ids.
func TestOnlyWhatDiffersIsAChange(t *testing.T) {
	edit := func(s *State, old, new string) {
		for i := range s.Flows {
			s.Flows[i].Text = strings.Replace(s.Flows[i].Text, old, new, 1)
		}
		for _, list := range [][]openflow.Entry{s.Groups, s.Meters} {
			for i := range list {
				list[i].Text = strings.Replace(list[i].Text, old, new, 1)
			}
		}
	}
	remove := func(part string) func(*State) {
		return func(s *State) {
			s.Flows = slices.DeleteFunc(s.Flows, func(f openflow.Flow) bool { return strings.Contains(f.Text, part) })
		}
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"nothing":            {func(*State) {}, ""},
		"clause removed":     {remove("nw_src=10.0.0.2"), "- flow nw_src=10.0.0.2"},
		"shared clause":      {remove("nw_src=10.0.0.1"), "- flow nw_src=10.0.0.1"},
		"conjunction itself": {remove("conj_id=9"), "- flow conj_id=9"},
		"cookie":             {func(s *State) { edit(s, "cookie=0xc", "cookie=0xcc") }, "! flow nw_dst=10.9.0.1 cookie"},
		"action":             {func(s *State) { edit(s, "actions=drop", "actions=next") }, "! flow conj_id=9 actions"},
		"bucket":             {func(s *State) { edit(s, "output:2", "output:3") }, "! group output:3 actions"},
		"rate": {func(s *State) { s.Meters[1].Text = strings.Replace(s.Meters[1].Text, "100", "5", 1) },
			"! meter rate=5 actions"},
		"another group": {func(s *State) { edit(s, "actions=group:5", "actions=group:4") },
			"! flow nw_dst=10.9.0.2 actions"},
		"another meter": {func(s *State) { edit(s, "meter:2", "meter:1") }, "! flow reg14=0x2 actions"},
		"another clause": {func(s *State) { edit(s, "(7,1/2)", "(7,2/2)") },
			"! flow nw_src=10.0.0.1 actions|! flow nw_src=10.0.0.2 actions"},
		"new flow": {func(s *State) {
			s.Flows = append(s.Flows, openflow.Flow{Text: "cookie=0x1,table=44,priority=2000,ip,nw_src=10.5.0.1 actions=drop"})
		}, "+ flow nw_src=10.5.0.1"},
		"group removed": {func(s *State) { s.Groups = s.Groups[:1] }, "- group output:2"},
	} {
		for _, again := range []bool{false, true} {
			b := conjunctive()
			c.change(&b)
			if again {
				b = renumbered(b)
			}
			if got := describe(Compare(conjunctive(), b), c.want); got != c.want {
				t.Errorf("%s, other ids %v:\n%s\nwant\n%s", what, again, got, c.want)
			}
		}
	}
}

// describe returns a difference as a text. Of each entry it has the word that want has.
func describe(d Diff, want string) string {
	var lines []string
	for _, list := range []struct {
		sign    string
		changes []Change
	}{{"-", d.OnlyA}, {"+", d.OnlyB}, {"!", d.Changed}} {
		for _, c := range list.changes {
			word := c.Text()
			for w := range strings.FieldsFuncSeq(want, func(c rune) bool { return c == ' ' || c == '|' }) {
				if strings.Contains(w, "=") || strings.Contains(w, ":") {
					if strings.Contains(c.Text(), w) {
						word = w
					}
				}
			}
			line := list.sign + " " + c.Kind + " " + word
			if c.Cookie {
				line += " cookie"
			}
			if c.Actions {
				line += " actions"
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "|")
}

// TestCausesOfChanges removes all flows of an ACL and alters one of a load balancer of a
// captured node.
func TestCausesOfChanges(t *testing.T) {
	const acl = "ACL ns1 deny all (to) (priority 1000, drop)"
	for _, node := range captures.Nodes(t) {
		if node.Name != "ovn-kubernetes-worker" {
			continue
		}
		recorded := captured(t, node)
		index := func(path string) *file.Index {
			x, err := file.OpenIndex(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(x.Close)
			return x
		}
		names, err := NewNames(index(node.NB), index(node.SB), recorded.Flows)
		if err != nil {
			t.Fatal(err)
		}
		changed := recorded
		changed.Flows = nil
		removed := 0
		for _, f := range recorded.Flows {
			if c, _, err := names.CauseOf(f.Text); err != nil {
				t.Fatal(err)
			} else if c.Northbound == "ACL" && c.Words == acl {
				removed++
				continue
			}
			changed.Flows = append(changed.Flows, f)
		}
		d := Compare(changed, recorded)
		found, err := Name(d.OnlyB, nil, names)
		if err != nil || len(found) != 1 || removed < 2 || len(found[0].Changes) != removed ||
			!strings.HasPrefix(found[0].String(), acl+", stage ls_out_acl of switch ") {
			t.Errorf("%d flows removed: %v %+v", removed, err, found)
			for _, g := range found {
				t.Log(g.String())
			}
		}
	}
}

// TestMetersOfNestedActionsAreIDs compares two flows of the lab's router that differ in the
// number of a meter, also within the actions that ovn-controller executes.
func TestMetersOfNestedActionsAreIDs(t *testing.T) {
	const text = " cookie=0x98b0030a,table=11,priority=150,ip,metadata=0xb actions=controller(userdata=00.00.00.0e.00.00.00.00.00.19.00.10.80.00.26.01.03.00.00.00.00.00.00.00." +
		"ff.ff.00.30.00.00.23.20.00.25.00.00.00.00.00.00.00.03.00.0e.00.00.00.0d.00.00.00.00.05.78.00.00.00.04.00.04.00.00.00.00.00.05.00.08.00.00.00.%02x," +
		"meter_id=%d)\n"
	const meters = "meter=%d pktps bands=\ntype=drop rate=100\nmeter=%d pktps bands=\ntype=drop rate=200\n"
	read := func(first, second, inFlow, nested int) State {
		s, lost := Read(strings.NewReader(fmt.Sprintf(text, nested, inFlow)), strings.NewReader(""),
			strings.NewReader(fmt.Sprintf(meters, first, second)))
		if len(lost) > 0 || len(s.Flows) != 1 || len(s.Meters) != 2 {
			t.Fatal(s, lost)
		}
		return s
	}
	a := read(1, 2, 1, 2)
	if d := Compare(a, read(7, 5, 7, 5)); !d.Equal() {
		t.Errorf("other ids: %+v", d)
	}
	for what, b := range map[string]State{"the nested meter": read(7, 5, 7, 7), "the flow's meter": read(7, 5, 5, 5)} {
		if d := Compare(a, b); len(d.Changed) != 1 || !d.Changed[0].Actions || len(d.OnlyA)+len(d.OnlyB) > 0 {
			t.Errorf("%s: %+v", what, d)
		}
	}
}
