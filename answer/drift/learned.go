package drift

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
)

// place is a table, and the cookie of the flows that an action adds to it.
type place struct {
	table  int
	cookie uint64
}

// learnedPlaces returns the places to which actions learn of flows add flows.
func learnedPlaces(flows []openflow.Flow) map[place]bool {
	places := map[place]bool{}
	for _, f := range flows {
		for text, found := f.Actions(), true; found; {
			var arguments string
			if _, arguments, text, found = openflow.CutLearn(text); !found {
				break
			}
			if key, err := openflow.LearnedBy(arguments); err == nil {
				places[place{key.Table, key.Cookie}] = true
			}
		}
	}
	return places
}

// withoutLearned removes from changes the flows that the switch itself has added by the
// action learn, and returns what was removed.
func withoutLearned(bridge string, extra []flowdiff.Change, states ...flowdiff.State) ([]flowdiff.Change, []LeftOut) {
	places := map[place]bool{}
	for _, s := range states {
		maps.Copy(places, learnedPlaces(s.Flows))
	}
	found := map[int]int{}
	extra = slices.DeleteFunc(extra, func(change flowdiff.Change) bool {
		if change.Kind != flowdiff.KindFlow {
			return false
		}
		key := openflow.Flow{Text: change.A}.Key()
		learned := places[place{key.Table, key.Cookie}]
		if learned {
			found[key.Table]++
		}
		return learned
	})
	var left []LeftOut
	for _, table := range slices.SortedFunc(maps.Keys(found), cmp.Compare[int]) {
		left = append(left, LeftOut{Bridge: bridge, Table: table, Flows: found[table], Why: "added by the action learn of other flows, not by ovn-controller"})
	}
	return extra, left
}

// String returns a sentence.
func (l LeftOut) String() string {
	where := "bridge " + l.Bridge
	if l.Table > 0 {
		where += fmt.Sprintf(", table %d", l.Table)
	}
	return fmt.Sprintf("%s: %s: %s", where, phrase.Count(l.Flows, "flow"), l.Why)
}
