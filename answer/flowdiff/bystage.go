package flowdiff

import (
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb/file"
)

// ReadLogicalByStage reads the logical flows of an SB database as ReadLogical does, but with the names of stages in the place of
// the numbers of tables, also where actions name one, and without flows that do nothing: those of each stage that only go on to the next
// one, and those that match a flag which no flow sets. So two databases have flows in common although the pipelines of one have
// more stages.
func ReadLogicalByStage(nb, sb *file.Index) (*Logical, error) {
	stages, flags := stages{map[stageAt]string{}, map[stageAt]int{}}, flags{}
	for flow, err := range logicalFlowsOf(sb) {
		if err != nil {
			return nil, err
		}
		stages.add(flow)
		flags.add(flow.key.actions)
	}
	return readLogical(nb, sb, func(yield func(logicalFlowOf, error) bool) {
		for flow, err := range logicalFlowsOf(sb) {
			if err == nil {
				flow.key.place.stage, flow.key.actions = flow.stage, stages.inActions(flow)
				if flow.onlyGoesOn() || flags.neverMatch(flow.key.place.match) {
					continue
				}
			}
			if !yield(flow, err) {
				return
			}
		}
	})
}

// stages are the stages of the pipelines.
type stages struct {
	names map[stageAt]string
	last  map[stageAt]int // the last table, by a place without a table
}

// stageAt is a table of a pipeline of a kind of datapath: switches and routers have different stages.
type stageAt struct {
	kind, pipeline string
	table          int
}

func (f *logicalFlowOf) at() stageAt {
	kind, _, _ := strings.Cut(f.stage, "_")
	return stageAt{kind, f.pipeline, f.table}
}

func (s *stages) add(flow logicalFlowOf) {
	at := flow.at()
	s.names[at] = flow.stage
	pipeline := stageAt{kind: at.kind, pipeline: at.pipeline}
	s.last[pipeline] = max(s.last[pipeline], at.table)
}

// onlyGoesOn reports whether the flow takes what no other flow of its stage matches to the next stage.
func (f *logicalFlowOf) onlyGoesOn() bool {
	return f.key.place.priority == "0" && f.key.place.match == "1" && f.key.actions == "next;"
}

// nextTable matches the action next with a table (ovn-sb(5), Logical_Flow).
var nextTable = regexp.MustCompile(`\bnext\((?:pipeline=(ingress|egress),\s*)?(?:table=)?([0-9]+)\)`)

// inActions returns the actions of a flow with the names of the stages to which they go. In the last stage of a pipeline, a flow
// goes on with "output;" where it would with "next;" in another one.
func (s *stages) inActions(flow logicalFlowOf) string {
	at, actions := flow.at(), flow.key.actions
	if before, goesOn := strings.CutSuffix(actions, "output;"); goesOn && at.table == s.last[stageAt{kind: at.kind, pipeline: at.pipeline}] {
		actions = before + "next;"
	}
	return nextTable.ReplaceAllStringFunc(actions, func(text string) string {
		parts := nextTable.FindStringSubmatch(text)
		to := at
		if parts[1] != "" {
			to.pipeline = parts[1]
		}
		var err error
		to.table, err = strconv.Atoi(parts[2])
		if name, known := s.names[to]; err == nil && known {
			return "next(" + name + ")"
		}
		return text
	})
}
