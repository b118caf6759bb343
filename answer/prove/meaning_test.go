package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/internal/bdd"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// twins are two bridges of a real ovs-vswitchd, old and new, with the ports 1 to 4.
type twins struct {
	*ovs.Switch
	t    *testing.T
	conn *unixctl.Conn
}

func startTwins(t *testing.T) *twins {
	b := &twins{Switch: ovs.Start(t, "--enable-dummy=override", "--disable-system"), t: t}
	for _, bridge := range []string{oldState, newState} {
		b.Vsctl("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=dummy", "fail_mode=secure",
			"protocols=OpenFlow15")
		for n := 1; n <= 4; n++ {
			name := fmt.Sprintf("%s%d", bridge, n)
			b.Vsctl("add-port", bridge, name, "--", "set", "interface", name, "type=dummy",
				fmt.Sprintf("ofport_request=%d", n))
		}
	}
	conn, err := unixctl.Connect(t.Context(), b.Dir, "ovs-vswitchd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	b.conn = conn
	return b
}

// put replaces the flows and groups of a bridge, and returns what the bridge dumps.
func (b *twins) put(bridge string, flows, groups []string) flowdiff.State {
	b.t.Helper()
	write := func(name string, lines []string) string {
		path := filepath.Join(b.t.TempDir(), name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			b.t.Fatal(err)
		}
		return path
	}
	ofctl := func(args ...string) string {
		return b.Ofctl(append([]string{"-O", "OpenFlow15", "--no-names"}, args...)...)
	}
	ofctl("del-flows", bridge)
	ofctl("del-groups", bridge)
	ofctl("add-groups", bridge, write("groups", groups))
	ofctl("--bundle", "add-flows", bridge, write("flows", flows))
	state, lost := flowdiff.Read(strings.NewReader(ofctl("dump-flows", bridge)),
		strings.NewReader(ofctl("dump-groups", bridge)), strings.NewReader(""))
	if len(lost) > 0 {
		b.t.Fatal(lost[0])
	}
	return state
}

// trace implements Trace.
func (b *twins) trace(ctx context.Context, second bool, packet string) (string, error) {
	bridge := map[bool]string{false: oldState, true: newState}[second]
	printed, err := b.conn.Run(ctx, "ofproto/trace", bridge, packet, "--names")
	return string(printed), err
}

// treats returns what a bridge does with a packet.
func (b *twins) treats(bridge, packet string) string {
	b.t.Helper()
	printed, err := b.trace(b.t.Context(), bridge == newState, packet)
	if err != nil {
		b.t.Fatalf("%s: %v", packet, err)
	}
	list, err := treatments(printed)
	if err != nil {
		b.t.Fatalf("%s: %v", packet, err)
	}
	return strings.Join(list, "\n")
}

// rules makes tables at random, of fields of a few values.
type rules struct{ *rand.Rand }

func (r rules) of(list ...string) string { return list[r.IntN(len(list))] }

func (r rules) match() string {
	text := r.of("ip", "tcp", "udp", "icmp")
	if r.IntN(2) == 0 {
		text += fmt.Sprintf(",nw_src=10.0.0.%d/%d", r.IntN(16), 28+r.IntN(5))
	}
	if r.IntN(2) == 0 {
		text += fmt.Sprintf(",nw_dst=10.0.0.%d/%d", r.IntN(16), 28+r.IntN(5))
	}
	if (strings.HasPrefix(text, "tcp") || strings.HasPrefix(text, "udp")) && r.IntN(2) == 0 {
		text += fmt.Sprintf(",tp_dst=%d/0x%x", r.IntN(16), 1+r.IntN(15))
	}
	return text
}

func (r rules) actions(table int) string {
	next := fmt.Sprintf("resubmit(,%d)", table+1)
	if table == 3 {
		return r.of("output:1", "output:2", "output:3", "output:4", "drop", "dec_ttl,output:2",
			"set_field:10.0.0.9->ip_dst,output:3", "output:1,output:4", "IN_PORT")
	}
	return r.of(next, next, "set_field:1->reg0,"+next, fmt.Sprintf("set_field:10.0.0.%d->ip_dst,", r.IntN(16))+next,
		fmt.Sprintf("ct(commit,table=%d,zone=%d)", table+1, r.IntN(3)), "group:1", "group:2", "output:3,"+next, "drop",
		fmt.Sprintf("ct(commit,table=%d,nat(dst=10.0.0.%d))", table+1, r.IntN(16)))
}

// tables returns flows of four tables, a conjunction and two groups.
func (r rules) tables() (flows, groups []string) {
	flows = []string{"table=0,priority=1,ip actions=resubmit(,1)", "table=3,priority=1,ip actions=output:2"}
	for table := range 4 {
		for n := range 6 + r.IntN(4) {
			flows = append(flows, fmt.Sprintf("table=%d,priority=%d,%s actions=%s", table, 10+n, r.match(),
				r.actions(table)))
		}
	}
	for n := range 6 {
		field := fmt.Sprintf("nw_src=10.0.0.%d", n*3)
		if n%2 == 1 {
			field = fmt.Sprintf("nw_dst=10.0.0.%d/30", n*4%16)
		}
		flows = append(flows, fmt.Sprintf("table=2,priority=12,ip,%s actions=conjunction(7,%d/2)", field, 1+n%2))
	}
	return append(flows, "table=2,priority=12,conj_id=7,ip actions=set_field:10.0.0.5->ip_src,resubmit(,3)"), []string{
		"group_id=1,type=all,bucket=output:1,bucket=set_field:10.0.0.9->ip_src,resubmit(,3)",
		"group_id=2,type=select,selection_method=hash,bucket=bucket_id:0,output:2,bucket=bucket_id:1," +
			"set_field:10.0.0.7->ip_dst,resubmit(,3)"}
}

var number = regexp.MustCompile(`10\.0\.0\.[0-9]+|output:[1-4]`)

// mutated returns flows and groups of which one is changed: deleted, or with another priority, value or output.
func (r rules) mutated(flows, groups []string) (_, _ []string, what string) {
	changed, at := append([]string{}, flows...), r.IntN(len(flows))
	if r.IntN(6) == 0 {
		changed, at = append([]string{}, groups...), r.IntN(len(groups))
		if head, bucket, ok := cutLast(changed[at], ",bucket="); ok && r.IntN(2) == 0 {
			changed[at], what = head, "without bucket "+bucket
		} else {
			changed[at], what = r.other(changed[at])
		}
		return flows, changed, groups[at] + ": " + what
	}
	switch r.IntN(3) {
	case 0:
		what = "deleted"
		changed = append(changed[:at], changed[at+1:]...)
	case 1:
		changed[at], what = strings.Replace(changed[at], "priority=1", "priority=2", 1), "other priority"
	default:
		changed[at], what = r.other(changed[at])
	}
	return changed, groups, flows[at] + ": " + what
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

// other changes a value of a match, or an output.
func (r rules) other(text string) (_, what string) {
	at := r.IntN(3)
	made := number.ReplaceAllStringFunc(text, func(found string) string {
		if at--; at >= 0 {
			return found
		}
		at = 100
		if strings.HasPrefix(found, "output") {
			return fmt.Sprintf("output:%d", 1+r.IntN(4))
		}
		return fmt.Sprintf("10.0.0.%d", r.IntN(16))
	})
	return made, made
}

func (r rules) packet() string {
	text := r.of("tcp", "udp", "icmp") + fmt.Sprintf(",nw_src=10.0.0.%d,nw_dst=10.0.0.%d,nw_ttl=%d", r.IntN(16),
		r.IntN(16), r.IntN(4))
	if strings.HasPrefix(text, "icmp") {
		return text + ",icmp_type=8"
	}
	text += fmt.Sprintf(",tp_src=%d,tp_dst=%d", r.IntN(16), r.IntN(16))
	if strings.HasPrefix(text, "tcp") {
		return text + ",tcp_flags=syn"
	}
	return text
}

// TestMutationsMeanWhatTwoSwitchesDo changes a flow, a group or a bucket: each difference that is found has a packet
// that two real switches treat differently, and packets outside of the differences are treated alike.
func TestMutationsMeanWhatTwoSwitchesDo(t *testing.T) {
	b := startTwins(t)
	mutations, samples := sweep.Count(200, 12), sweep.Count(100, 10)
	differing, outside, witnessed := 0, 0, 0
	for seed := range mutations {
		r := rules{rand.New(rand.NewPCG(uint64(seed), 11))}
		flows, groups := r.tables()
		changed, others, what := r.mutated(flows, groups)
		for slices.Equal(changed, flows) && slices.Equal(others, groups) {
			changed, others, what = r.mutated(flows, groups)
		}
		c := Change{Older: b.put(oldState, flows, groups), Newer: b.put(newState, changed, others), Limit: time.Minute,
			Trace: b.trace}
		for n := 1; n <= 4; n++ {
			c.Ports = append(c.Ports, BridgePort{Number: n, Name: fmt.Sprintf("p%d", n)})
		}
		q := c.start()
		m, err := symbolic.New(symbolic.IPv4, q.states, carriedFields()...)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range c.Ports[:2] {
			set, err := q.judgePort(t.Context(), m, port)
			if err != nil {
				t.Fatal(err)
			}
			for range samples {
				text := r.packet()
				packet, err := flow.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				one, err := setOf(m, packet)
				if err != nil || m.Space().And(one, m.Valid()) == bdd.None {
					t.Fatalf("%s: %v", text, err)
				}
				if m.Space().And(one, set) != bdd.None {
					continue
				}
				outside++
				text = fmt.Sprintf("in_port=%d,%s", port.Number, packet.Input())
				if did, does := b.treats(oldState, text), b.treats(newState, text); did != does {
					t.Errorf("seed %d: %s\n%s is in no difference: %s before, %s after", seed, what, text, did, does)
				}
			}
		}
		q.finish()
		for _, p := range q.meaning.Packets {
			if p.Certain {
				witnessed++
			}
		}
		if len(q.meaning.Packets) > 0 {
			differing++
		}
		if len(q.meaning.Missing) > 0 {
			t.Errorf("seed %d: %s\n%q", seed, what, q.meaning.Missing)
		}
	}
	t.Logf("%d of %d mutations differ, %d witnesses, %d packets outside", differing, mutations, witnessed, outside)
	if differing < mutations/3 || outside < mutations*samples/4 || witnessed < mutations/3 {
		t.Error("want more")
	}
}
