package bisect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/history"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/whatif"
	"ovs-offline/pkg/ovsdb/file"
)

// search looks for neighbouring states with different verdicts.
type search struct {
	session  *whatif.Session
	question whatif.Question
	states   []*history.Event
	known    map[int]Side // by the index of the state
	// logical is what ovn-trace says about the packet of an answer. Asking it takes a quarter of the time of a verdict, and shows
	// where to look.
	logical map[logicalKey]string
	seen    map[int]bool // candidates that were looked at
	remarks []string     // about states that can't be computed
}

// logicalKey is a state, and the packet of an answer by the verdict of that: one packet for each verdict is enough.
type logicalKey struct {
	at      int
	verdict string
}

// mostProbed bounds how many candidates are looked at.
const mostProbed = 24

// all computes verdicts until each change is between two neighbours, as far as it is known that there is one.
func (s *search) all(ctx context.Context) error {
	last := len(s.states) - 1
	for _, at := range []int{last, 0} {
		if err := s.ask(ctx, at); err != nil {
			return err
		}
	}
	if err := s.halve(ctx); err != nil {
		return err
	}
	for range mostProbed {
		next := s.candidate()
		if next < 0 {
			return nil
		}
		if err := s.probe(ctx, next); err != nil {
			return err
		}
		if err := s.halve(ctx); err != nil {
			return err
		}
	}
	return nil
}

// probe computes the verdict of a candidate, if ovn-trace says something else of it than of the states around it whose
// verdicts are known.
func (s *search) probe(ctx context.Context, at int) error {
	s.seen[at] = true
	from, to := s.around(at)
	for _, known := range []int{from, to} {
		is, err := s.logicalAt(ctx, at, from)
		if err != nil {
			return err
		}
		was, err := s.logicalAt(ctx, known, from)
		if err != nil {
			return err
		}
		if is != was || is == "" {
			return s.ask(ctx, at)
		}
	}
	return nil
}

// around returns the indexes of the closest states before and after one whose verdicts are known.
func (s *search) around(at int) (from, to int) {
	to = len(s.states) - 1
	for known := range s.known {
		if known <= at {
			from = max(from, known)
		} else {
			to = min(to, known)
		}
	}
	return from, to
}

// logicalAt returns what ovn-trace says of a state, about the packet of the answer of another one.
func (s *search) logicalAt(ctx context.Context, at, of int) (text string, err error) {
	side := s.known[of]
	key := logicalKey{at, side.Verdict}
	if text, known := s.logical[key]; known {
		return text, nil
	}
	if text, err = s.session.LogicalEnds(ctx, side.Trace, s.states[at].Transaction); err == nil {
		s.logical[key] = text
	}
	return text, err
}

// ask computes the verdict of a state.
func (s *search) ask(ctx context.Context, at int) (err error) {
	if _, known := s.known[at]; known {
		return nil
	}
	event := s.states[at]
	if at < len(s.states)-1 || len(s.known) > 0 { // the session begins with the last one
		if err := s.session.PutAt(ctx, event.Transaction); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			s.known[at] = Side{Verdict: notComputed}
			s.remarks = append(s.remarks, fmt.Sprintf("the state after transaction %d can't be computed: %v", event.Transaction, err))
			return nil
		}
	}
	var side Side
	side.Verdict, side.Trace, err = s.session.Verdict(ctx, s.question, "of "+event.Time.UTC().Format(history.TimeFormat))
	if err == nil {
		s.known[at] = side
	}
	return err
}

// halve computes the verdict between any two states that have different ones, until these are neighbours: first between the
// newest ones.
func (s *search) halve(ctx context.Context) error {
	for {
		from, to := s.different()
		if to == 0 {
			return nil
		}
		next, err := s.between(ctx, from, to)
		if err != nil {
			return err
		}
		for _, at := range next {
			if err := s.ask(ctx, at); err != nil {
				return err
			}
		}
	}
}

// different returns the newest states with different verdicts that are not neighbours, and between which no verdict is known.
func (s *search) different() (from, to int) {
	asked := slices.Sorted(maps.Keys(s.known))
	for i := len(asked) - 1; i > 0; i-- {
		if from, to := asked[i-1], asked[i]; to-from > 1 && s.known[from].Verdict != s.known[to].Verdict {
			return from, to
		}
	}
	return 0, 0
}

// between returns which states between two to compute: the two neighbours between which ovn-trace says something else, as halving
// finds them; if it says the same of both ends, the one in the middle.
func (s *search) between(ctx context.Context, from, to int) ([]int, error) {
	of := from
	if s.known[of].Trace == nil {
		of = to
	}
	middle := []int{(from + to) / 2}
	first, err := s.logicalAt(ctx, from, of)
	if err != nil {
		return nil, err
	}
	last, err := s.logicalAt(ctx, to, of)
	if err != nil || first == last {
		return middle, err
	}
	for to-from > 1 {
		half := (from + to) / 2
		text, err := s.logicalAt(ctx, half, of)
		if err != nil {
			return nil, err
		}
		if text == last {
			to = half
		} else {
			from = half
		}
	}
	return []int{to, from}, nil
}

// logicalOnly returns the number of states that only ovn-trace was asked about.
func (s *search) logicalOnly() int {
	told := map[int]bool{}
	for key := range s.logical {
		if _, known := s.known[key.at]; !known {
			told[key.at] = true
		}
	}
	return len(told)
}

// changed returns the indexes of the states at which the verdict changes, the newest first.
func (s *search) changed() (list []int) {
	for at, side := range s.known {
		if before, known := s.known[at-1]; known && before.Verdict != side.Verdict {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// changes returns the changes that were found, the newest first.
func (s *search) changes() (list []Change) {
	for _, at := range s.changed() {
		list = append(list, Change{s.known[at-1], s.known[at], s.states[at]})
	}
	return list
}

// candidate returns the newest state whose verdict is not known, and whose transaction changes what one of those changed that
// changed the verdict, or what an answer names; -1 for none.
func (s *search) candidate() int {
	wanted := map[string]bool{}
	for _, at := range s.changed() {
		for _, key := range keysOf(s.states[at]) {
			wanted[key] = true
		}
	}
	for _, side := range s.known {
		for _, key := range namedBy(side.Trace) {
			wanted[key] = true
		}
	}
	for at := len(s.states) - 2; at > 0; at-- {
		if _, known := s.known[at]; !known && !s.seen[at] && slices.ContainsFunc(keysOf(s.states[at]), func(key string) bool { return wanted[key] }) {
			return at
		}
	}
	return -1
}

// namedBy returns the names of the ports on the way of a packet, and the UUID of the ACL that drops it.
func namedBy(traced *answer.Answer) (list []string) {
	if traced == nil {
		return nil
	}
	if traced.Drop != nil && traced.Drop.ACL != nil {
		list = append(list, traced.Drop.ACL.UUID)
	}
	for _, hop := range traced.Path {
		for _, end := range append(hop.Ends, answer.End{Location: hop.Location}) {
			for _, name := range []string{end.LogicalPort, end.Endpoint} {
				if name != "" {
					list = append(list, name)
				}
			}
		}
	}
	return list
}

// keysOf returns what a transaction changes, without the counters of OVN's own programs: the UUIDs of rows that it adds or
// deletes, columns of others as UUID.COLUMN, and the names of ports. A row that lists others changes with each of
// them; of a smaller one, each change has its UUID, too.
func keysOf(event *history.Event) (keys []string) {
	for _, row := range event.Rows {
		if row.Change != file.Modified {
			keys = append(keys, row.UUID)
		}
		before := len(keys)
		for column := range row.Columns {
			if row.Change == file.Modified && !(row.Table == "NB_Global" && isCounter(column)) {
				keys = append(keys, row.UUID+"."+column)
			}
		}
		if len(keys) > before && !slices.Contains(listing(), row.Table) {
			keys = append(keys, row.UUID)
		}
		if row.Table == "Logical_Switch_Port" {
			keys = append(keys, row.Name)
		}
	}
	return keys
}

// listing are the tables of the NB database whose rows list others.
func listing() []string {
	return []string{"NB_Global", "Logical_Switch", "Logical_Router", "Port_Group", "Address_Set", "Load_Balancer_Group"}
}

// isCounter reports whether ovn-nbctl and ovn-northd count in a column of NB_Global how far changes were carried out
// (ovn-nb(5)).
func isCounter(column string) bool {
	return strings.HasSuffix(column, "_cfg") || strings.HasSuffix(column, "_cfg_timestamp")
}
