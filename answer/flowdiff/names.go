package flowdiff

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
)

// Names names the entries of one state of an integration bridge.
type Names struct {
	rules        *rules.Rules
	layout       rules.Layout
	conjunctions rules.Conjunctions
}

// NewNames returns the names of the entries of a state, from the OVN databases that it was
// made from. nb may be nil: then no northbound rows are named.
func NewNames(nb, sb *file.Index, flows []openflow.Flow) (*Names, error) {
	names := &Names{rules: rules.New(nb, sb), conjunctions: rules.Conjunctions{}}
	for _, f := range flows {
		if strings.Contains(f.Text, "conj_id=") {
			names.conjunctions.Add(f.Key())
		}
	}
	var err error
	names.layout, err = names.rules.Layout(func(yield func(openflow.Key) bool) {
		for _, f := range flows {
			if !yield(f.Key()) {
				return
			}
		}
	})
	return names, err
}

// Cause is the row that entries were generated from: the northbound row if it is known, else a
// logical flow or another southbound row.
type Cause struct {
	// Words names it as its user knows it, or else as OVN does.
	Words string `json:"words"`
	// Stage is the stage of a pipeline, or what the table is for.
	Stage string `json:"stage,omitempty"`
	// Row is the table of the southbound row whose UUID begins with the cookie, and UUID its UUID;
	// "" for flows that are generated from no row.
	Row  string `json:"row,omitempty"`
	UUID string `json:"uuid,omitempty"`
	// Northbound is the table of the northbound row, with its UUID and its name; "" if it is not known.
	Northbound     string `json:"northbound,omitempty"`
	NorthboundUUID string `json:"northbound_uuid,omitempty"`
	Name           string `json:"name,omitempty"`
	// Shared is set if the flow serves several northbound rows, of which this is any one: Words names what they share.
	Shared bool `json:"-"`
	// Stale is set if no southbound row has the cookie: the row was deleted.
	Stale bool `json:"stale,omitempty"`
}

// CauseOf returns the cause of a flow, and the datapath that the flow is for, "" for a flow of no or of
// all datapaths.
func (n *Names) CauseOf(text string) (cause Cause, datapath string, err error) {
	flow := openflow.Flow{Text: text}
	decides := n.conjunctions.Decide(rules.FlowOf(flow.Key(), n.layout), flow.Actions())
	rule, found, err := n.rules.Find(decides)
	if err != nil {
		return Cause{}, "", err
	}
	foreign := decides.IsForeign(flow.Actions())
	if !found || foreign {
		if rule.Stage, err = n.rules.StageOf(decides); err != nil {
			return Cause{}, "", err
		}
		if decides.Metadata != 0 {
			datapath = n.rules.Datapath(decides.Metadata).String()
		}
		if foreign {
			return Cause{Words: rules.Foreign, Stage: rule.Stage}, datapath, nil
		}
		return Cause{Words: "a southbound row that no longer exists", Stage: rule.Stage, Stale: true}, datapath, nil
	}
	cause = Cause{Words: rule.Words, Stage: rule.Stage, Row: rule.Row, UUID: rule.UUID}
	if rule.Cause.Table != "" {
		cause.Northbound, cause.NorthboundUUID, cause.Name = rule.Cause.Table, rule.Cause.UUID, rule.Cause.Name
		cause.Shared = rule.Cause.Shared
	}
	if rule.Datapath.Name != "" {
		datapath = rule.Datapath.String()
	}
	return cause, datapath, nil
}

// Group is the changes with one cause.
type Group struct {
	Cause
	Datapaths []string // of the changes
	Stages    []string // in the order of their tables
	Changes   []Change
}

// Name groups changes by their causes: by the northbound row where it is known, else by the same
// words and stage. An entry is named as in state b, or as in a if only a
// has it; names of a state that has none of the entries may be nil.
func Name(changes []Change, a, b *Names) ([]Group, error) {
	var groups []Group
	at := map[Cause]int{}
	for _, change := range changes {
		names, text := b, change.B
		if change.B == "" {
			names, text = a, change.A
		}
		if change.Kind != KindFlow {
			text = change.User
		}
		cause, datapath := Cause{Words: "no flow that refers to it"}, ""
		if text != "" {
			var err error
			if cause, datapath, err = names.CauseOf(text); err != nil {
				return nil, err
			}
		}
		key := cause
		if key.Row, key.UUID = "", ""; key.Northbound != "" {
			key.Stage = ""
		}
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{Cause: cause})
		}
		groups[i].add(change, cause.Stage, datapath)
	}
	return groups, nil
}

// add adds a change.
func (g *Group) add(c Change, stage, datapath string) {
	g.Changes = append(g.Changes, c)
	if stage != "" && !slices.Contains(g.Stages, stage) {
		g.Stages = append(g.Stages, stage)
	}
	if datapath != "" && !slices.Contains(g.Datapaths, datapath) {
		g.Datapaths = append(g.Datapaths, datapath)
	}
}

// String names the group: "NetworkPolicy ns2/allow-db (ACL priority 1001, allow), stage
// ls_out_acl of switch worker2".
func (g *Group) String() string {
	text := g.Words
	if len(g.Stages) > 1 || len(g.Stages) == 1 && !strings.Contains(text, g.Stages[0]) {
		text += ", " + few(g.Stages, "tables")
	}
	if len(g.Datapaths) > 1 || len(g.Datapaths) == 1 && !strings.Contains(text, g.Datapaths[0]) {
		text += " of " + few(g.Datapaths, "datapaths")
	}
	return text
}

// few returns the names in a list, or their number if there are many.
func few(names []string, what string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%d %s", len(names), what)
	}
	var words []string
	for _, name := range names {
		if strings.HasPrefix(name, "ls_") || strings.HasPrefix(name, "lr_") {
			name = "stage " + name
		}
		words = append(words, name)
	}
	return strings.Join(words, ", ")
}

// Egress returns the first table of the egress pipeline, which depends on the release of
// OVN; 0 if it is not known.
func (n *Names) Egress() int { return n.layout.Egress }
