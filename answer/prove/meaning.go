package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/internal/bdd"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/flow"
)

// The verdicts about two states of a bridge.
const (
	Same    Verdict = "SAME"
	Differs Verdict = "DIFFERENT"
)

// Meaning is what the difference between two states of a bridge does to packets that open a connection.
type Meaning struct {
	// Verdict is Same, Differs, or Undetermined if Missing says why it may be incomplete.
	Verdict Verdict   `json:"verdict"`
	Packets []Treated `json:"packets"`
	More    bool      `json:"more,omitempty"` // there are more sets, which are smaller
	Missing []string  `json:"missing,omitempty"`
	Assumed []string  `json:"assumed,omitempty"`
	// Asked is the number of packets about which a real switch was asked in both states, and Disagree the packets about which it says another thing.
	Asked    int      `json:"asked"`
	Disagree []string `json:"disagree,omitempty"`
}

// Treated is a set of packets that two states of a bridge treat differently.
type Treated struct {
	From     []string    `json:"from"`   // ports by which they enter
	Family   string      `json:"family"` // IPv4, IPv6 or ARP
	Criteria []Criterion `json:"criteria"`
	Before   string      `json:"before"` // what becomes of them: "dropped", "to NAME"
	After    string      `json:"after"`
	// Certain reports that all of them are treated differently, in a way that a trace shows. For others, that depends on a choice that the flows leave
	// open, or shows in what other packets meet.
	Certain bool `json:"certain"`
	// Witness is one of them, as trace --flow takes it.
	Witness string `json:"witness"`

	text  string // the criteria in words
	share float64
	group bool
}

// Change is two states of a bridge that are to be compared.
type Change struct {
	Older, Newer flowdiff.State
	Ports        []BridgePort
	Known        func(address string) string // what is known of an address; nil for nothing
	Limit        time.Duration               // that the comparison may take
	// Differs asks a real switch in both states whether it treats a packet differently, in the words of ofproto/trace; known is false if it has no answer. nil asks none.
	Differs func(ctx context.Context, packet string) (differs, known bool, err error)
}

// comparing is a comparison of two states of a bridge.
type comparing struct {
	Change
	states  *states
	lines   []flowdiff.Line // that only one state has
	meaning *Meaning
	random  *rand.Rand
	judged  int // ports, of each family
}

const (
	mostTreated   = 10 // sets of packets that are listed
	mostWays      = 100
	partsOfWay    = 40
	mostWitnesses = 200
	askedBeside   = 3 // packets of each port that are asked although nothing should differ
)

// Meaning computes what the difference does.
func (c Change) Meaning(ctx context.Context) (*Meaning, error) {
	q := c.start()
	if len(q.lines) == 0 {
		q.meaning.Verdict = Same
		return q.meaning, nil
	}
	limited, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	for _, family := range []symbolic.Family{symbolic.IPv4, symbolic.IPv6, symbolic.ARP} {
		q.judged = 0
		err := q.judgeFamily(limited, family)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			q.miss(fmt.Sprintf("%s packets of %s were not judged within %v", family, phrase.Count(len(c.Ports)-q.judged, "port"), c.Limit))
		case errors.Is(err, bdd.ErrTooLarge):
			q.miss(fmt.Sprintf("%s packets of %s: %v", family, phrase.Count(len(c.Ports)-q.judged, "port"), err))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", family, err)
		}
	}
	q.finish()
	return q.meaning, nil
}

func (c Change) start() *comparing {
	q := &comparing{Change: c, meaning: &Meaning{Packets: []Treated{}}, random: rand.New(rand.NewPCG(1, 1))}
	if q.Known == nil {
		q.Known = func(string) string { return "" }
	}
	q.states, q.lines = newStates(c.Older, c.Newer, c.Ports)
	return q
}

func (q *comparing) miss(text string) {
	if !slices.Contains(q.meaning.Missing, text) {
		q.meaning.Missing = append(q.meaning.Missing, text)
	}
}

func (q *comparing) assume(text string) {
	if !slices.Contains(q.meaning.Assumed, text) {
		q.meaning.Assumed = append(q.meaning.Assumed, text)
	}
}

// carriedFields are what packets in OVN's tunnels carry: the logical datapath, and the ports.
func carriedFields() []symbolic.Field {
	return []symbolic.Field{{Name: "tun_id", Bits: 24}, {Name: "tun_metadata0", Bits: 32}}
}

// judgeFamily compares what becomes of the packets of a family, for each port.
func (q *comparing) judgeFamily(ctx context.Context, family symbolic.Family) error {
	if !slices.ContainsFunc(q.lines, func(line flowdiff.Line) bool { return isOf(line, family) }) {
		q.judged = len(q.Ports)
		return nil // no packet of the family meets what differs
	}
	var m *symbolic.Machine
	for _, port := range q.Ports {
		const large = 4_000_000 // nodes
		if m == nil || m.Space().Size() > large {
			var err error
			if m, err = symbolic.New(family, q.states, carriedFields()...); err != nil {
				return err
			}
		}
		if _, err := q.judgePort(ctx, m, port); err != nil {
			return err
		}
		q.judged++
	}
	return nil
}

// isOf reports whether packets of a family may match a flow.
func isOf(line flowdiff.Line, family symbolic.Family) bool {
	for token := range openflow.Tokens(line.Head) {
		if etherType, _, ok := openflow.Protocol(token); ok && symbolic.Family(etherType) != family {
			return false
		}
	}
	return true
}

// judgePort compares what becomes of the packets of a port, and returns those of which something may differ.
func (q *comparing) judgePort(ctx context.Context, m *symbolic.Machine, port BridgePort) (bdd.Set, error) {
	begin, err := q.entering(m, port)
	if err != nil {
		return bdd.None, err
	}
	run := func(state string, set bdd.Set) (*symbolic.Result, error) {
		return m.Run(ctx, symbolic.Place{Node: state, Bridge: state}, port.Number, set)
	}
	both, err := run(bothStates, begin)
	if err != nil {
		return bdd.None, err
	}
	meets := both.Unknown[symbolic.Stop]
	delete(both.Unknown, symbolic.Stop)
	for _, state := range []string{oldState, newState} { // compile both: they share the numbers of fields
		if _, err := run(state, bdd.None); err != nil {
			return bdd.None, err
		}
	}
	before, err := run(oldState, meets)
	if err != nil {
		return bdd.None, err
	}
	after, err := run(newState, meets)
	if err != nil {
		return bdd.None, err
	}
	unknown := bdd.None
	for _, result := range []*symbolic.Result{both, before, after} {
		for _, why := range slices.Sorted(maps.Keys(result.Unknown)) {
			q.miss(why)
			unknown = m.Space().Or(unknown, result.Unknown[why])
		}
		for _, text := range result.Assumed {
			q.assume(text)
		}
	}
	differing, err := q.divideWays(ctx, m, port, before, after, unknown)
	if err != nil {
		return bdd.None, err
	}
	left := m.Space().Or(differing, m.Space().Or(unknown, chosen(m.Space(), both, before, after)))
	return left, q.askBeside(ctx, m, port, m.Space().Without(begin, left), m.Space().Without(meets, left))
}

// entering returns the packets that enter by a port and open a connection.
func (q *comparing) entering(m *symbolic.Machine, port BridgePort) (bdd.Set, error) {
	begin, err := opening(m, m.Family())
	if err != nil || port.Tunnel {
		return m.Space().And(begin, m.Valid()), err
	}
	for _, f := range carriedFields() {
		none, err := m.Where(f.Name, "0")
		if err != nil {
			return bdd.None, err
		}
		begin = m.Space().And(begin, none)
	}
	return m.Space().And(begin, m.Valid()), nil
}

// way is packets of which the same differs.
type way struct {
	set     bdd.Set
	effects []string // that differ
	shows   bool     // a trace shows what differs
}

// chosen returns the packets of which a choice decides that the flows leave open.
func chosen(space *bdd.Space, results ...*symbolic.Result) bdd.Set {
	set := bdd.None
	for _, result := range results {
		for _, s := range result.Sent {
			if s.May {
				set = space.Or(set, s.Set)
			}
		}
	}
	return set
}

// divideWays adds the packets that are treated differently, by what differs, and returns all of them.
func (q *comparing) divideWays(ctx context.Context, m *symbolic.Machine, port BridgePort, before, after *symbolic.Result, unknown bdd.Set) (bdd.Set, error) {
	space := m.Space()
	all := bdd.None
	deviations := m.Compare(before, after)
	for _, d := range deviations {
		all = space.Or(all, space.Or(d.Gone, space.Or(d.Come, d.Other)))
	}
	all = space.Without(all, unknown)
	ways := []way{{set: all}}
	for _, d := range deviations {
		for _, part := range []bdd.Set{d.Gone, d.Come, d.Other} {
			if len(ways) < mostWays {
				ways = divided(space, ways, part, d)
			}
		}
	}
	for _, w := range ways {
		if w.set == bdd.None {
			continue
		}
		certain := w.shows && space.And(w.set, chosen(space, before, after)) == bdd.None
		was, is := endsOf(space, before, w.set), endsOf(space, after, w.set)
		if was == is {
			was, is = was+" in another way", is+" ("+strings.Join(w.effects, "; ")+")"
		}
		if err := q.treated(ctx, m, port, w.set, Treated{Before: was, After: is, Certain: certain}); err != nil {
			return bdd.None, err
		}
	}
	return all, m.Space().Err()
}

// divided divides ways by whether packets are in a set, in which something differs.
func divided(space *bdd.Space, ways []way, by bdd.Set, what symbolic.Deviation) (list []way) {
	for _, w := range ways {
		in := space.And(w.set, by)
		if rest := space.Without(w.set, in); rest != bdd.None {
			list = append(list, way{rest, w.effects, w.shows})
		}
		if in != bdd.None {
			list = append(list, way{in, append(slices.Clone(w.effects), what.To), w.shows || !what.Effect || strings.HasPrefix(what.To, "ct")})
		}
	}
	return list
}

// endsOf says in words where packets get.
func endsOf(space *bdd.Space, result *symbolic.Result, set bdd.Set) string {
	var ends []string
	for _, s := range result.Sent {
		if !s.Effect && space.And(s.Set, set) != bdd.None && !slices.Contains(ends, s.To) {
			ends = append(ends, s.To)
		}
	}
	if len(ends) == 0 {
		return "dropped"
	}
	return "to " + phrase.FirstNames(ends)
}

// treated adds packets that are treated differently, and asks a real switch about some.
func (q *comparing) treated(ctx context.Context, m *symbolic.Machine, port BridgePort, set bdd.Set, as Treated) error {
	list, more := divide(m, set, partsOfWay)
	q.meaning.More = q.meaning.More || more
	for _, part := range list {
		made := as
		made.From, made.Family, made.Criteria = []string{port.Name}, m.Family().String(), part.Criteria
		made.text, made.share, made.group = part.text(port.Own, q.Known), part.share, part.group
		made.Witness = q.witness(m, port, part.set)
		if made.Certain {
			if err := q.ask(ctx, made.Witness, true); err != nil {
				return err
			}
		}
		same := slices.IndexFunc(q.meaning.Packets, func(t Treated) bool {
			return t.Family == made.Family && t.text == made.text && t.Before == made.Before && t.After == made.After
		})
		if same < 0 {
			q.meaning.Packets = append(q.meaning.Packets, made)
		} else if known := &q.meaning.Packets[same]; !slices.Contains(known.From, port.Name) {
			known.From = append(known.From, port.Name)
		}
	}
	return nil
}

// witness returns a packet of a set that enters by a port.
func (q *comparing) witness(m *symbolic.Machine, port BridgePort, set bdd.Set) string {
	text := fmt.Sprintf("in_port=%d,%s", port.Number, witness(m, set, q.random))
	if strings.Contains(text, ",tcp,") || strings.Contains(text, ",tcp6,") {
		text += ",tcp_flags=syn"
	}
	return text
}

// askBeside asks the switch about packets that no difference is for: of all, and of those that meet a flow that differs.
func (q *comparing) askBeside(ctx context.Context, m *symbolic.Machine, port BridgePort, sets ...bdd.Set) error {
	for _, set := range sets {
		for range askedBeside {
			if set == bdd.None {
				break
			}
			if err := q.ask(ctx, q.witness(m, port, set), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask asks the switch about a packet that it should treat differently in both states, or not.
func (q *comparing) ask(ctx context.Context, packet string, differs bool) error {
	if q.Differs == nil || q.meaning.Asked >= mostWitnesses {
		return nil
	}
	parsed, err := flow.Parse(packet)
	if err != nil {
		return fmt.Errorf("packet %s: %w", packet, err)
	}
	got, known, err := q.Differs(ctx, parsed.Input())
	if err != nil || !known {
		return err
	}
	q.meaning.Asked++
	if got != differs {
		q.meaning.Disagree = append(q.meaning.Disagree, packet)
	}
	return nil
}

// finish sorts the sets, the largest first, and writes the verdict.
func (q *comparing) finish() {
	p := q.meaning
	q.assume("packets that open a connection, in whole frames: of TCP those with SYN alone, of ICMP echo requests")
	slices.SortStableFunc(p.Packets, func(a, b Treated) int {
		if a.group != b.group {
			return map[bool]int{true: 1, false: -1}[a.group]
		}
		return cmp.Compare(b.share, a.share)
	})
	if len(p.Packets) > mostTreated {
		p.Packets, p.More = p.Packets[:mostTreated], true
	}
	switch {
	case len(p.Disagree) > 0:
		p.Missing = append([]string{"a real switch does not agree about: " + p.Disagree[0]}, p.Missing...)
		p.Verdict = Undetermined
	case len(p.Missing) > 0:
		p.Verdict = Undetermined
	case len(p.Packets) > 0:
		p.Verdict = Differs
	default:
		p.Verdict = Same
	}
}
