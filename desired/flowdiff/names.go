package flowdiff

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/trace/rules"
)

// Names names the entries of one state of an integration bridge.
type Names struct {
	rules  *rules.Rules
	layout rules.Layout
	// conjunctive are the flows that match on a conjunction. The flows of its clauses have no
	// cookie if they are made from logical flows.
	conjunctive map[id]string
}

// NewNames returns the names of the entries of a state, from the OVN databases that it was
// made from. nb may be nil: then no northbound rows are named.
func NewNames(nb, sb *file.Index, flows []openflow.Flow) (*Names, error) {
	n := &Names{rules: rules.New(nb, sb), conjunctive: map[id]string{}}
	for _, f := range flows {
		if _, criteria := f.Identity(); strings.Contains(criteria, "conj_id=") {
			for _, at := range references(criteria) {
				n.conjunctive[at] = f.Text
			}
		}
	}
	var err error
	n.layout, err = n.rules.Layout(parsed(flows))
	return n, err
}

// parsed yields the flows that can be parsed.
func parsed(flows []openflow.Flow) iter.Seq[rules.Flow] {
	return func(yield func(rules.Flow) bool) {
		for _, f := range flows {
			if p, err := rules.ParseFlow(f.Text); err == nil && !yield(p) {
				return
			}
		}
	}
}

// Cause is what entries were made from: a northbound row, or else a logical flow or another
// southbound row.
type Cause struct {
	// Words names it as its user knows it, or else as OVN does.
	Words string `json:"words"`
	// Stage is the stage of a pipeline, or what the table is for.
	Stage string `json:"stage,omitempty"`
	// Row is the table of the southbound row whose UUID begins with the cookie, and UUID that
	// of the row; "" for flows that are made from no row.
	Row  string `json:"row,omitempty"`
	UUID string `json:"uuid,omitempty"`
	// Northbound is the table of the northbound row, with its UUID and its name; "" if the row
	// names none.
	Northbound     string `json:"northbound,omitempty"`
	NorthboundUUID string `json:"northbound_uuid,omitempty"`
	Name           string `json:"name,omitempty"`
	// Stale is set if no southbound row has the cookie: the row was deleted.
	Stale bool `json:"stale,omitempty"`
}

// Of returns what a flow was made from, and the datapath that it is for, "" for one of no or
// of all datapaths.
func (n *Names) Of(text string) (c Cause, datapath string, err error) {
	f, err := rules.ParseFlow(n.deciding(text))
	if err != nil {
		return Cause{}, "", err
	}
	f.Layout = n.layout
	rule, found, err := n.rules.Find(f)
	if err != nil {
		return Cause{}, "", err
	}
	foreign := f.IsForeign(openflow.Flow{Text: text}.Actions())
	if !found || foreign {
		if rule.Stage, err = n.rules.StageOf(f); err != nil {
			return Cause{}, "", err
		}
		if f.Metadata != 0 {
			datapath = n.rules.Datapath(f.Metadata).String()
		}
		if foreign {
			return Cause{Words: rules.Foreign, Stage: rule.Stage}, datapath, nil
		}
		return Cause{Words: "a southbound row that no longer exists", Stage: rule.Stage, Stale: true}, datapath, nil
	}
	c = Cause{Words: rule.Words, Stage: rule.Stage, Row: rule.Row, UUID: rule.UUID}
	if rule.Cause.Table != "" {
		c.Northbound, c.NorthboundUUID, c.Name = rule.Cause.Table, rule.Cause.UUID, rule.Cause.Name
	}
	if rule.Datapath.Name != "" {
		datapath = rule.Datapath.String()
	}
	return c, datapath, nil
}

// deciding returns the flow that the flow of a clause without a cookie is for, or the flow
// itself.
func (n *Names) deciding(text string) string {
	f := openflow.Flow{Text: text}
	cookie, _ := f.Identity()
	if actions := f.Actions(); cookie == "" && strings.HasPrefix(actions, "conjunction(") {
		for _, at := range references(actions) {
			if decides := n.conjunctive[at]; decides != "" {
				return decides
			}
		}
	}
	return text
}

// Group is the changes with one cause.
type Group struct {
	Cause
	Datapaths []string // that they are for
	Stages    []string // in the order of their tables
	Changes   []Change
}

// Name groups changes by their causes: those of the northbound row where there is one, else
// those of the same words and stage. An entry is named as in state b, or as in a if only a
// has it; names of a state that has none of the entries may be nil.
func Name(changes []Change, a, b *Names) ([]Group, error) {
	var groups []Group
	at := map[Cause]int{}
	for _, c := range changes {
		names, text := b, c.B
		if c.B == "" {
			names, text = a, c.A
		}
		if c.Kind != KindFlow {
			text = c.User
		}
		cause, datapath := Cause{Words: "no flow that refers to it"}, ""
		if text != "" {
			var err error
			if cause, datapath, err = names.Of(text); err != nil {
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
		groups[i].add(c, cause.Stage, datapath)
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
