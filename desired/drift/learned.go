package drift

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/internal/openflow"
)

// learnAction matches the action learn, and learnTable and learnCookie what it says of the
// flow that it adds (ovs-actions(7)).
var (
	learnAction = regexp.MustCompile(`\blearn\((?:[^()]|\([^()]*\))*\)`)
	learnTable  = regexp.MustCompile(`[(,]table=([0-9]+)`)
	learnCookie = regexp.MustCompile(`[(,]cookie=(0x[0-9a-f]+)`)
)

// place is a table, and the cookie of the flows that an action adds to it.
type place struct{ table, cookie string }

// learnedPlaces returns where the actions of flows add flows.
func learnedPlaces(flows []openflow.Flow) map[place]bool {
	places := map[place]bool{}
	for _, f := range flows {
		if !strings.Contains(f.Text, "learn(") {
			continue
		}
		for _, action := range learnAction.FindAllString(f.Actions(), -1) {
			p := place{table: "1"}
			if m := learnTable.FindStringSubmatch(action); m != nil {
				p.table = m[1]
			}
			if m := learnCookie.FindStringSubmatch(action); m != nil {
				p.cookie = m[1]
			}
			places[p] = true
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
	extra = slices.DeleteFunc(extra, func(c flowdiff.Change) bool {
		if c.Kind != flowdiff.KindFlow {
			return false
		}
		cookie, criteria := openflow.Flow{Text: c.A}.Identity()
		table, _, _ := strings.Cut(criteria, "|")
		learned := places[place{table, cookie}]
		if n, err := strconv.Atoi(table); learned && err == nil {
			found[n]++
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
	return fmt.Sprintf("%s: %s: %s", where, count(l.Flows, "flow"), l.Why)
}

// count returns a number with a word: "1 flow", "2 flows".
func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
