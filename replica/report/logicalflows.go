package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// LogicalFlows counts the logical flows of the OVN SB database, and those that the
// replica's ovn-trace can't parse and leaves out. They are checked unless ovn-trace is of
// the release series that wrote the database.
type LogicalFlows struct {
	Total    int `json:"total"`
	Unparsed int `json:"unparsed"`
	// OnNode reports whether the node's own OVN, which is not newer, can't parse them
	// either: they have no effect there.
	OnNode  bool    `json:"unparsed_on_node,omitempty"`
	Stages  []Stage `json:"stages,omitempty"`
	Problem string  `json:"problem,omitempty"` // the reason why the flows could not be counted
}

// Stage is a stage of OVN's logical pipelines in which flows can't be parsed.
type Stage struct {
	Pipeline string `json:"pipeline"` // "ingress" or "egress"
	Table    int    `json:"table"`
	Name     string `json:"stage,omitempty"` // "lr_in_arp_resolve"; "" if the database does not name it
	Flows    int    `json:"flows"`
	Reason   string `json:"reason,omitempty"` // the one that ovn-trace gives for one of them
}

// Lossy reports whether ovn-trace may answer otherwise than the node's OVN would.
func (l *LogicalFlows) Lossy() bool {
	return l != nil && (l.Problem != "" || l.Unparsed > 0 && !l.OnNode)
}

// Add counts a flow of a stage that can't be parsed.
func (l *LogicalFlows) Add(s Stage, reason string) {
	const maxStages = 200 // OVN has about a hundred
	const maxReason = 500 // bytes; ovn-trace can repeat a part of the flow
	l.Unparsed++
	at := slices.IndexFunc(l.Stages, func(stage Stage) bool {
		return stage.Pipeline == s.Pipeline && stage.Table == s.Table && stage.Name == s.Name
	})
	if at < 0 {
		if at = len(l.Stages); at == maxStages {
			return
		}
		l.Stages = append(l.Stages, s)
	}
	l.Stages[at].Flows++
	// The smallest reason, so that it does not depend on the order of the flows.
	if reason = phrase.Shorten(reason, maxReason); l.Stages[at].Reason == "" || reason < l.Stages[at].Reason {
		l.Stages[at].Reason = reason
	}
}

// Sort sorts the stages in the order in which a packet passes them.
func (l *LogicalFlows) Sort() {
	slices.SortFunc(l.Stages, func(a, b Stage) int {
		return cmp.Or(-cmp.Compare(a.Pipeline, b.Pipeline), a.Table-b.Table, cmp.Compare(a.Name, b.Name))
	})
}

// TraceWarning returns the warning for the user of ovn-trace about its answers on the
// database, "" for nothing.
func (r *Report) TraceWarning(database string) string {
	flows, tracer := r.LogicalFlows, strings.TrimSpace("ovn-trace "+r.Running.OVN)
	switch {
	case !flows.Lossy():
		return ""
	case flows.Problem != "":
		return fmt.Sprintf("an answer of ovn-trace may be wrong: it is not known which logical flows of %s %s can parse: %s", database, tracer, flows.Problem)
	}
	return fmt.Sprintf("an answer of ovn-trace may be wrong: %s has %d logical flows that %s can't parse, in %s", database, flows.Unparsed, tracer, flows.stageNames())
}

// stageNames returns the names of the first stages, and the number of the others.
func (l *LogicalFlows) stageNames() string {
	const maxNames, maxName = 6, 64 // bytes of a name
	var names []string
	for _, stage := range l.Stages {
		name := phrase.Shorten(cmp.Or(stage.Name, fmt.Sprintf("%s table %d", stage.Pipeline, stage.Table)), maxName)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := strings.Join(names[:min(maxNames, len(names))], ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
