package flowdiff

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// ovn-northd numbers the routes and policies of a router that have several next hops, and the
// next hops of each, in the order in which it meets them, which depends on its history (see
// ecmp_groups_add and ecmp_group_update_ids in northd/en-group-ecmp-route.c). A stage writes
// the two numbers into register 8, and the flows of the next stage match them.

// ecmpRegister is the part of register 8 that has the number of a group.
const ecmpRegister = "reg8[0..15]"

// ecmpStage is a group with its number in a stage that writes it.
type ecmpStage struct {
	datapath, pipeline string
	table              int
	number             string
}

var (
	ecmpWritten = lazyregexp.New(`reg8\[0\.\.15\] = ([1-9][0-9]*); reg8\[16\.\.31\] = (select\((?:values=\()?)?([0-9, ]+)`)
	ecmpMatched = lazyregexp.New(`^reg8\[0\.\.15\] == ([1-9][0-9]*) && reg8\[16\.\.31\] == [0-9]+$`)
)

// ecmpGroups has the matches of the flows that write the numbers of each group.
type ecmpGroups map[ecmpStage][]string

// add notes the group whose number a flow writes, if it writes one.
func (g ecmpGroups) add(f logicalFlowOf) {
	if found := ecmpWritten.FindStringSubmatch(f.key.actions); found != nil {
		stage := ecmpStage{f.key.place.datapath, f.pipeline, f.table, found[1]}
		g[stage] = append(g[stage], f.key.place.match)
	}
}

// ecmpNames identifies groups by the matches of the flows that write their numbers.
type ecmpNames map[ecmpStage]string

func (g ecmpGroups) names() ecmpNames {
	names := ecmpNames{}
	for stage, matches := range g {
		slices.Sort(matches)
		names[stage] = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(matches, "\n"))))
	}
	return names
}

// neutral returns the key of a flow without the numbers of its group. It reports whether the
// flow has such numbers. The flows for the next hops of a group differ by their actions then.
func (n ecmpNames) neutral(flow logicalFlowOf) (LogicalKey, bool) {
	key := flow.key
	if at := ecmpWritten.FindStringSubmatchIndex(key.actions); at != nil {
		hops := strings.Count(key.actions[at[6]:at[7]], ",") + 1
		key.actions = fmt.Sprintf("%s%d next hops%s", key.actions[:at[0]], hops, key.actions[at[7]:])
		return key, true
	}
	if found := ecmpMatched.FindStringSubmatch(key.place.match); found != nil {
		if name, ok := n[ecmpStage{key.place.datapath, flow.pipeline, flow.table - 1, found[1]}]; ok {
			key.place.match = "next hop of " + name
			return key, true
		}
	}
	return key, false
}
