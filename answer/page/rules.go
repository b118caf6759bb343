package page

import (
	"strings"

	"ovs-offline/answer/flows"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// ruleIndex collects the rules of the flows of all nodes.
type ruleIndex struct {
	at   map[string]int // by UUID
	list []*Rule
}

func newRuleIndex() *ruleIndex { return &ruleIndex{at: map[string]int{}, list: []*Rule{}} }

// add counts a flow of a node for its rule, and returns the index of the rule: -1 for a flow that is made from
// no row, or from a logical flow alone.
func (x *ruleIndex) add(node int, f *flows.Flow) int {
	if f.UUID == "" || f.Row == "Logical_Flow" {
		return -1
	}
	i, known := x.at[f.UUID]
	if !known {
		i = len(x.list)
		x.at[f.UUID] = i
		x.list = append(x.list, &Rule{UUID: f.UUID, Table: f.Row, Name: f.For, Flows: map[int]int{}})
	}
	x.list[i].Flows[node]++
	if f.Packets != nil {
		x.list[i].Packets += *f.Packets
	}
	return i
}

// maxValue bounds a column of a rule, in bytes.
const maxValue = 2000

// read reads the rows of the rules.
func (x *ruleIndex) read(deployments []*snapshot.Deployment) error {
	for _, rule := range x.list {
		for _, d := range deployments {
			if err := rule.read(d.NB, d.SB); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the columns of a rule from the database that has its row.
func (r *Rule) read(databases ...*file.Index) error {
	for _, db := range databases {
		if db == nil || r.Columns != nil {
			continue
		}
		row, ok, err := db.Row(r.Table, r.UUID)
		if err != nil {
			return err
		}
		if ok {
			r.Columns = columnsOf(row)
		}
	}
	return nil
}

func columnsOf(row ovsdb.Row) (list []Column) {
	for _, name := range row.Columns() {
		var texts []string
		for _, element := range (ovsdb.Names{}).Elements(row, name) {
			text := element.Value
			if element.Key != "" {
				text = element.Key + "=" + text
			}
			texts = append(texts, text)
		}
		if value := strings.Join(texts, ", "); value != "" {
			list = append(list, Column{name, phrase.Shorten(value, maxValue)})
		}
	}
	return list
}
