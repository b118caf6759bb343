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
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
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
	// Before and After are what becomes of them, by the ends that differ: "to NAME", "not to NAME", "dropped" if they get nowhere.
	Before string `json:"before"`
	After  string `json:"after"`
	// Effects are the other effects that differ, as the texts of actions.
	Effects []string `json:"effects,omitempty"`
	// Certain reports that all of them are treated differently, in a way that a trace shows. For others, that depends on a choice that the flows leave
	// open, or shows in what other packets meet.
	Certain bool `json:"certain"`
	// Witness is one of them, as trace --flow takes it.
	Witness string `json:"witness"`

	text  string // the criteria in words
	share float64
	group bool
}

// Change is two states of a bridge that are to be compared. Judge fills all others but Limit.
type Change struct {
	Older, Newer flowdiff.State
	Ports        []BridgePort
	Known        func(address string) string // what is known of an address; nil for nothing
	Limit        time.Duration               // that the comparison may take
	Trace        Trace                       // nil asks no real switch
	NotAsked     string                      // why Trace is nil

	assumed []string
}

// comparing is a comparison of two states of a bridge.
type comparing struct {
	Change
	states  *states
	lines   []flowdiff.Line // that only one state has
	meaning *Meaning
	random  *rand.Rand
}

const (
	mostTreated   = 10 // sets of packets that are listed
	mostWays      = 100
	partsOfWay    = 40
	mostWitnesses = 200
	shareOfPort   = 8 // of the time that one port may take
	askedBeside   = 3 // packets of each port that are asked although nothing should differ
)

// Meaning computes what the difference does.
func (c Change) Meaning(ctx context.Context) (*Meaning, error) {
	q := c.start()
	if len(q.lines) == 0 {
		q.meaning.Verdict = Same
		return q.meaning, nil
	}
	if len(q.Ports) == 0 {
		q.miss("the ports of the bridge are not known")
	}
	limited, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	for _, family := range []symbolic.Family{symbolic.IPv4, symbolic.IPv6, symbolic.ARP} {
		if err := q.judgeFamily(limited, family); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
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
		return nil // no packet of the family meets what differs
	}
	var m *symbolic.Machine
	var late []string
	for _, port := range q.Ports {
		const large = 4_000_000 // nodes
		if m == nil || m.Space().Size() > large {
			var err error
			if m, err = symbolic.New(family, q.states, carriedFields()...); err != nil {
				return err
			}
		}
		limited, cancel := context.WithTimeout(ctx, q.Limit/shareOfPort)
		_, err := q.judgePort(limited, m, port)
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			late = append(late, port.Name)
		case errors.Is(err, bdd.ErrTooLarge):
			q.miss(fmt.Sprintf("%s packets from %s: %v", family, port.Name, err))
			m = nil
		case err != nil:
			return err
		}
	}
	if len(late) > 0 {
		q.miss(fmt.Sprintf("%s packets from %s were not judged in time (%v)", family, phrase.FirstNames(late), q.Limit))
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

// judgePort compares where both states send the packets of a port, and returns the packets that they may treat differently.
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
	begin, err := followed(m, m.Family(), symbolic.Tracking{})
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
	set               bdd.Set
	gone, come, other []string // ends: see symbolic.Deviation
	effects           []string // that differ
	shows             bool     // a trace shows what differs
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
		shows := !d.Effect || strings.HasPrefix(d.To, "ct")
		for i, part := range []bdd.Set{d.Gone, d.Come, d.Other} {
			if len(ways) < mostWays {
				ways = divided(space, ways, part, func(w *way) {
					list := []*[]string{&w.gone, &w.come, &w.other}[i]
					if d.Effect {
						list = &w.effects
					}
					*list = append(slices.Clone(*list), d.To)
					w.shows = w.shows || shows
				})
			}
		}
	}
	for _, result := range []*symbolic.Result{before, after} { // tell those that are dropped from others
		ways = divided(space, ways, arriving(space, result), func(*way) {})
	}
	for _, w := range ways {
		if w.set == bdd.None {
			continue
		}
		certain := w.shows && space.And(w.set, chosen(space, before, after)) == bdd.None
		as := Treated{Certain: certain, Effects: w.effects}
		as.Before = becomes(w.gone, w.come, w.other, space.And(w.set, arriving(space, before)) == bdd.None)
		as.After = becomes(w.come, w.gone, w.other, space.And(w.set, arriving(space, after)) == bdd.None)
		if err := q.treated(ctx, m, port, w.set, as); err != nil {
			return bdd.None, err
		}
	}
	return all, m.Space().Err()
}

// divided divides ways by whether packets are in a set, in which something differs that note adds.
func divided(space *bdd.Space, ways []way, by bdd.Set, note func(w *way)) (list []way) {
	for _, w := range ways {
		in := space.And(w.set, by)
		rest := w
		if rest.set = space.Without(w.set, in); rest.set != bdd.None {
			list = append(list, rest)
		}
		if w.set = in; in != bdd.None {
			note(&w)
			list = append(list, w)
		}
	}
	return list
}

// arriving returns the packets that get to an end.
func arriving(space *bdd.Space, result *symbolic.Result) bdd.Set {
	set := bdd.None
	for _, s := range result.Sent {
		if !s.Effect {
			set = space.Or(set, s.Set)
		}
	}
	return set
}

// becomes says in words what becomes of packets in one state: to which ends they get only there, only in the other state, and in both in other forms.
func becomes(here, there, other []string, dropped bool) string {
	switch {
	case dropped:
		return "dropped"
	case len(here) > 0:
		return "to " + phrase.FirstNames(here)
	case len(there) > 0:
		return "not to " + phrase.FirstNames(there)
	case len(other) > 0:
		return "to " + phrase.FirstNames(other) + " with other headers"
	}
	return "the same ends"
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
	if q.Trace == nil || q.meaning.Asked >= mostWitnesses {
		return nil
	}
	parsed, err := flow.Parse(packet)
	if err != nil {
		return fmt.Errorf("packet %s: %w", packet, err)
	}
	var did [2][]string
	for i := range did {
		printed, err := q.Trace(ctx, i == 1, parsed.Input())
		if err == nil {
			did[i], err = treatments(printed)
		}
		if err != nil {
			return fmt.Errorf("packet %s: %w", packet, err)
		}
	}
	q.meaning.Asked++
	if slices.Equal(did[0], did[1]) == differs {
		q.meaning.Disagree = append(q.meaning.Disagree, packet)
	}
	return nil
}

// rank returns where a set belongs in a list: those whose ends differ come first, and those in frames to a group last.
func (t Treated) rank() (rank int) {
	if t.Before == t.After {
		rank += 2
	}
	if t.group {
		rank++
	}
	return rank
}

// finish sorts the sets, the largest first, and writes the verdict.
func (q *comparing) finish() {
	p := q.meaning
	if q.NotAsked != "" {
		q.assume("that the tables do what they say, since no real switch could be asked: " + q.NotAsked)
	}
	for _, text := range q.assumed {
		q.assume(text)
	}
	q.assume("copies of a packet at one port count as one")
	q.assume("packets that open a connection, in whole frames: of TCP those with SYN alone, of ICMP echo requests")
	slices.SortStableFunc(p.Packets, func(a, b Treated) int {
		return cmp.Or(a.rank()-b.rank(), cmp.Compare(b.share, a.share))
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

// Print prints the meaning for people, with a word for what becomes of packets in the second state.
func (p *Meaning) Print(page *show.Page, indent, second string) {
	switch {
	case len(p.Packets) == 0 && p.Verdict == Undetermined:
		page.Text("%smeaning: UNDETERMINED: %s\n", indent, terminal.Escape(p.Missing[0]))
	case len(p.Packets) == 0:
		page.Text("%smeaning: no packet behaves differently\n", indent)
	}
	const most = 5
	for _, t := range p.Packets[:min(most, len(p.Packets))] {
		text := fmt.Sprintf("from %s, %s, %s: %s; %s: %s", phrase.FirstNames(t.From), t.Family, t.text, t.Before, second, t.After)
		if len(t.Effects) > 0 && t.Before == t.After {
			text += ", with another effect: " + phrase.Shorten(t.Effects[0], 60)
		}
		page.Text("%smeaning: %s\n", indent, terminal.Escape(text))
	}
	if p.More || len(p.Packets) > most {
		page.Text("%s  and smaller sets\n", indent)
	}
	for _, text := range p.Missing {
		page.Text("%s  not judged: %s\n", indent, terminal.Escape(text))
	}
	if p.Asked > 0 {
		page.Text("%s  proof: %s asked of a real switch in both states: %d disagree\n", indent, phrase.Count(p.Asked, "packet"), len(p.Disagree))
	}
	for _, text := range p.Assumed {
		page.Text("%s  assumed: %s\n", indent, terminal.Escape(text))
	}
}
