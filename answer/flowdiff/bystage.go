package flowdiff

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb/file"
)

// ReadLogicalByStage reads the logical flows of an SB database and names stages where ReadLogical has the numbers of tables, also
// in actions that name a table. It leaves out flows that have no effect: the flow of a stage that passes all other packets to
// the next stage, and flows that match a flag which no flow sets. Two databases then have the same flows even if one has more
// stages.
func ReadLogicalByStage(nb, sb *file.Index) (*Logical, error) {
	flows, err := logicalFlowsOf(sb)
	if err != nil {
		return nil, err
	}
	pipelines, set := stages{map[stageAt]string{}, map[stageAt]int{}}, flags{}
	for _, flow := range flows {
		pipelines.add(flow)
		set.add(flow.key.actions)
	}
	var effective []logicalFlowOf
	for _, flow := range flows {
		flow.key.place.stage, flow.key.actions = flow.stage, pipelines.inActions(flow)
		if !flow.isDefault() && !set.neverMatch(flow.key.place.match) {
			effective = append(effective, flow)
		}
	}
	return newLogical(nb, sb, effective), nil
}

// stages has the names of the stages of the pipelines, and the last table of each pipeline.
type stages struct {
	names map[stageAt]string
	last  map[stageAt]int // by a place without a table
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

// isDefault reports whether the flow passes the packets that no other flow of its stage matches to the next stage.
func (f *logicalFlowOf) isDefault() bool {
	return f.key.place.priority == "0" && f.key.place.match == "1" && f.key.actions == "next;"
}

// nextTable matches the action next with a table (ovn-sb(5), Logical_Flow).
var nextTable = lazyregexp.New(`\bnext\((?:pipeline=(ingress|egress),\s*)?(?:table=)?([0-9]+)\)`)

// inActions returns the actions of a flow with the name of a stage in place of each number of a table. The last stage of a
// pipeline ends its actions with "output;" where other stages have "next;": inActions writes "next;" for both.
func (s *stages) inActions(flow logicalFlowOf) string {
	at, actions := flow.at(), flow.key.actions
	if before, isOutput := strings.CutSuffix(actions, "output;"); isOutput && at.table == s.last[stageAt{kind: at.kind, pipeline: at.pipeline}] {
		actions = before + "next;"
	}
	return nextTable.ReplaceAllStringFunc(actions, func(text string) string {
		parts := nextTable.FindStringSubmatch(text)
		to := at
		if parts[1] != "" {
			to.pipeline = parts[1]
		}
		to.table = number(parts[2])
		if name, known := s.names[to]; known {
			return "next(" + name + ")"
		}
		return text
	})
}
