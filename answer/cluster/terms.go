package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ovs-offline/internal/show"
)

// maxTerms bounds the list of terms.
const maxTerms = 200

// terms returns who led in the latest terms, and what was done in them.
func (g *group) terms() []Term {
	all := map[int64]*Term{}
	at := func(number int64) *Term {
		if all[number] == nil {
			all[number] = &Term{First: number, Last: number}
		}
		return all[number]
	}
	votes := map[int64]map[string]bool{}
	for _, m := range g.members {
		if m.log.Joining() {
			continue
		}
		counted := map[int64]int{}
		for i := range m.log.Entries {
			entry := &m.log.Entries[i]
			counted[entry.Term]++
			at(entry.Term).span(entry.At())
		}
		for number, n := range counted {
			at(number).Entries = max(at(number).Entries, n)
		}
		for _, leader := range m.log.Leaders {
			at(leader.Term).Leader = leader.Server
		}
		for _, vote := range m.log.Votes {
			at(vote.Term)
			if votes[vote.Term] == nil {
				votes[vote.Term] = map[string]bool{}
			}
			votes[vote.Term][vote.Server] = true
		}
	}
	for number, term := range all {
		if term.Leader == "" && term.Entries > 0 {
			if voted := slices.Collect(maps.Keys(votes[number])); len(voted) == 1 {
				term.Leader, term.Inferred = voted[0], true
			} else {
				term.Unknown = number > 1 || !term.Begin.IsZero() // ovsdb-tool makes the first entry of a cluster
			}
		}
	}
	return joined(slices.SortedFunc(maps.Values(all), func(a, b *Term) int { return cmp.Compare(a.First, b.First) }))
}

func (t *Term) span(at time.Time) {
	if at.IsZero() {
		return
	}
	if t.Begin.IsZero() || at.Before(t.Begin) {
		t.Begin = at
	}
	if at.After(t.End) {
		t.End = at
	}
}

// joined joins terms without a leader in a row, and returns the latest terms.
func joined(all []*Term) []Term {
	list := []Term{}
	for _, term := range all {
		last := len(list) - 1
		if last >= 0 && term.isVain() && list[last].isVain() {
			list[last].Last = term.Last
			continue
		}
		list = append(list, *term)
	}
	return list[max(0, len(list)-maxTerms):]
}

// isVain reports whether no server was elected in a term.
func (t *Term) isVain() bool { return t.Leader == "" && t.Entries == 0 }

const (
	// bouncingTerms is how many leaders in an hour are too many.
	bouncingTerms = 10
	bouncingTime  = time.Hour
)

// bouncing finds leaders that changed too often.
func (g *group) bouncing(terms []Term) []*Problem {
	var led []Term
	for _, term := range terms {
		if !term.isVain() && !term.Begin.IsZero() {
			led = append(led, term)
		}
	}
	most, from := 0, 0
	for first, term := range led {
		n := 0
		for _, later := range led[first:] {
			if later.Begin.Sub(term.Begin) <= bouncingTime {
				n++
			}
		}
		if n > most {
			most, from = n, first
		}
	}
	if most < bouncingTerms {
		return nil
	}
	window := led[from : from+most]
	changes := map[string]bool{}
	for _, term := range window {
		changes[term.Leader] = true
	}
	timer := g.newest.log.TimerAt(g.newest.log.Last())
	p := &Problem{Kind: Bouncing, Severity: Warning, At: window[most-1].Begin, Servers: slices.Sorted(maps.Keys(changes)),
		What:    fmt.Sprintf("the cluster elected a leader %d times in %v: an election timer of %d ms is too short for its load, or servers can't reach each other", most, window[most-1].Begin.Sub(window[0].Begin).Round(time.Second), timer),
		Follows: "each election stops all changes for as long as it takes, and clients that want the leader connect again"}
	for _, term := range window[:min(len(window), 5)] {
		p.Evidence = append(p.Evidence, fmt.Sprintf("term %d: %s, from %s", term.First, g.leaderOf(term), show.Time(term.Begin)))
	}
	p.Repair = g.plan().appctl(g.speaker(""), fmt.Sprintf("cluster/change-election-timer %s %d", g.database, min(2*timer, maxTimer)), "each call can double the timer at most; call it again up to some 10000 ms").steps
	if timer >= maxTimer {
		p.Repair = nil
	}
	return []*Problem{p}
}

// maxTimer is the largest election timer that is proposed, in milliseconds.
const maxTimer = 60000

func (g *group) leaderOf(term Term) string {
	switch {
	case term.isVain():
		return "no server was elected"
	case term.Unknown, term.Leader == "":
		return "a leader that no file names"
	}
	return g.name(term.Leader)
}

// differing finds members that have all committed entries, and whose election timers or schemas differ.
func (g *group) differing() (problems []*Problem) {
	timers, schemas := map[int64][]string{}, map[string][]string{}
	for _, m := range g.voters() {
		if m.log.Last() < g.upTo {
			continue
		}
		timer, version := m.log.TimerAt(g.upTo), m.log.VersionAt(g.upTo)
		timers[timer] = append(timers[timer], m.server())
		if version != "" {
			schemas[version] = append(schemas[version], m.server())
		}
	}
	if len(timers) > 1 {
		p := &Problem{Kind: Timers, Severity: Warning, What: "members have different election timers", Follows: "the one with the shorter timer asks for elections while the leader still counts as alive"}
		for _, timer := range slices.Sorted(maps.Keys(timers)) {
			p.Evidence = append(p.Evidence, fmt.Sprintf("%d ms: %s", timer, g.names(timers[timer])))
		}
		p.Repair = g.plan().appctl(g.speaker(""), fmt.Sprintf("cluster/change-election-timer %s %d", g.database, 2*g.newest.log.TimerAt(g.newest.log.Last())), "writes one timer into the log of all members").steps
		problems = append(problems, p)
	}
	if len(schemas) > 1 {
		p := &Problem{Kind: Schemas, Severity: Warning, What: "members have different versions of the schema", Follows: "clients see other tables and columns on each server"}
		for _, version := range slices.Sorted(maps.Keys(schemas)) {
			p.Evidence = append(p.Evidence, fmt.Sprintf("%s: %s", version, g.names(schemas[version])))
		}
		problems = append(problems, p)
	}
	return problems
}
