package raft

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/pkg/ovsdb/file"
)

// Contradiction is a place where the files of members contradict each other.
type Contradiction struct {
	What  string // in the words of a sentence without its names
	Index int64  // of the entry in question, 0 for none
	Term  int64
	A, B  *Member
}

// Contradictions returns what in the files of members of one cluster contradicts Raft's rules, as
// ovsdb-tool check-cluster finds it (Figure 3.2 of Ongaro's thesis): two leaders of a term, a leader
// without a committed entry, and entries of one index and term that differ.
func Contradictions(ctx context.Context, members []*Member) (found []Contradiction, err error) {
	found = append(twoLeaders(members), incompleteLeaders(members)...)
	for i, a := range members {
		for _, b := range members[i+1:] {
			differing, err := different(ctx, a, b)
			if err != nil {
				return nil, err
			}
			if differing != nil {
				found = append(found, *differing)
			}
		}
	}
	return found, nil
}

func twoLeaders(members []*Member) (found []Contradiction) {
	type claim struct {
		server string
		by     *Member
	}
	leaders := map[int64]claim{}
	for _, m := range members {
		for _, leader := range m.Leaders {
			before, known := leaders[leader.Term]
			if known && before.server != leader.Server {
				found = append(found, Contradiction{What: fmt.Sprintf("term %d has two leaders", leader.Term), Term: leader.Term, A: before.by, B: m})
			}
			if !known {
				leaders[leader.Term] = claim{leader.Server, m}
			}
		}
	}
	return found
}

// incompleteLeaders finds leaders that lacked an entry that was committed in an earlier term.
func incompleteLeaders(members []*Member) (found []Contradiction) {
	for _, m := range members {
		for term, end := range m.elected {
			for _, other := range members {
				for earlier, index := range other.commits {
					if earlier < term && index >= end {
						found = append(found, Contradiction{What: fmt.Sprintf("the leader of term %d had entries up to %d, and entry %d was committed in term %d", term, end-1, index, earlier), Index: index, Term: term, A: m, B: other})
						return found
					}
				}
			}
		}
	}
	return found
}

// different returns the first index whose entries have to be equal in two logs, and are not; nil if
// there is none. Entries have to be equal up to the last index at which both have the same term, and
// up to the last one that both know to be committed.
func different(ctx context.Context, a, b *Member) (first *Contradiction, err error) {
	equal := false
	for index := min(a.Last(), b.Last()); index >= max(a.First(), b.First()); index-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, other := a.At(index), b.At(index)
		equal = equal || one.Term == other.Term || index <= min(a.Committed, b.Committed)
		if !equal {
			continue
		}
		same, err := a.same(index, one, b, other)
		if err != nil {
			return nil, err
		}
		if !same {
			first = &Contradiction{What: fmt.Sprintf("entries from %d on differ", index), Index: index, Term: one.Term, A: a, B: b}
		}
	}
	return first, nil
}

// same reports whether entries of two members are equal. What is too large to compare counts as equal
// if its UUID is.
func (m *Member) same(index int64, one *Entry, b *Member, other *Entry) (bool, error) {
	if one.Term != other.Term || one.ID != other.ID || !maps.Equal(m.changeAt(index), b.changeAt(index)) {
		return false, nil
	}
	same, known, err := file.SameData(m.Path, one.Data, b.Path, other.Data)
	return same || !known, err
}

// changeAt returns the servers that the entry with an index sets, nil if it sets none.
func (m *Member) changeAt(index int64) map[string]string {
	i, found := slices.BinarySearchFunc(m.Changes, index, func(change Change, index int64) int { return cmp.Compare(change.Index, index) })
	if !found {
		return nil
	}
	return m.Changes[i].Servers
}

// Conflict returns the first index at which two logs have entries of different terms, so that one of
// them has to go; 0 if there is none.
func Conflict(a, b *Member) int64 {
	for index := max(a.First(), b.First()); index <= min(a.Last(), b.Last()); index++ {
		if a.At(index).Term != b.At(index).Term {
			return index
		}
	}
	return 0
}
