package flowdiff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
)

// Logical are the logical flows of an SB database, each once for each of its datapaths.
type Logical struct {
	index *file.Index
	rules *rules.Rules
	rows  map[LogicalKey]logicalRow
}

// logicalRow is the row of a logical flow.
type logicalRow struct {
	uuid    string
	written *LogicalKey // the flow with the numbers of ECMP groups, which its key lacks; else nil
}

// LogicalKey is the content of a logical flow of one datapath.
type LogicalKey struct {
	place   logicalPlace
	actions string
	nth     int // of the next hops of an ECMP group with the same actions; 0 for other flows
}

// logicalPlace is the part of a logical flow that decides which packets it matches.
type logicalPlace struct{ datapath, stage, priority, match string }

// logicalFlowOf is a logical flow of one datapath.
type logicalFlowOf struct {
	key      LogicalKey
	pipeline string
	table    int
	stage    string // its name
	uuid     string
}

// ReadLogical reads the logical flows of an SB database. nb may be nil: then no northbound rows are named.
func ReadLogical(nb, sb *file.Index) (*Logical, error) {
	flows, err := logicalFlowsOf(sb)
	if err != nil {
		return nil, err
	}
	return newLogical(nb, sb, flows), nil
}

func newLogical(nb, sb *file.Index, flows []logicalFlowOf) *Logical {
	found, numbered, groups := map[LogicalKey]logicalRow{}, []logicalFlowOf{}, ecmpGroups{}
	for _, flow := range flows {
		if strings.Contains(flow.key.place.match, ecmpRegister) || strings.Contains(flow.key.actions, ecmpRegister) {
			groups.add(flow)
			numbered = append(numbered, flow)
			continue
		}
		found[flow.key] = logicalRow{uuid: flow.uuid}
	}
	names, alike := groups.names(), map[LogicalKey]int{}
	for _, withNumbers := range numbered {
		key, isNeutral := names.neutral(withNumbers)
		if !isNeutral {
			found[key] = logicalRow{uuid: withNumbers.uuid}
			continue
		}
		alike[key]++
		key.nth = alike[key]
		found[key] = logicalRow{withNumbers.uuid, &withNumbers.key}
	}
	return &Logical{sb, rules.New(nb, sb), found}
}

// Len returns the number of logical flows.
func (l *Logical) Len() int { return len(l.rows) }

// UUID returns the UUID of the logical flow with this content, or "".
func (l *Logical) UUID(key LogicalKey) string { return l.rows[key].uuid }

// text returns a logical flow as its database has it.
func (l *Logical) text(key LogicalKey) string {
	if written := l.rows[key].written; written != nil {
		return written.String()
	}
	return key.String()
}

// String returns the logical flow in the notation of ovn-sbctl lflow-list.
func (k LogicalKey) String() string {
	stage := k.place.stage
	if pipeline, table, hasTable := strings.Cut(stage, " "); hasTable {
		stage = pipeline + " table=" + table
	}
	return fmt.Sprintf("%s, priority=%s, match=(%s), action=(%s)", stage, k.place.priority, k.place.match, k.actions)
}

// logicalFlowsOf returns the logical flows of a database, each once for each of its datapaths.
func logicalFlowsOf(index *file.Index) (flows []logicalFlowOf, err error) {
	datapaths, err := ovn.Datapaths(index)
	if err != nil {
		return nil, err
	}
	groups, err := readDatapathGroups(index)
	if err != nil {
		return nil, err
	}
	for row, err := range index.Rows(ovn.LogicalFlowTable, "logical_datapath", "logical_dp_group", "pipeline", "table_id", "priority", "match", "actions", "controller_meter", "external_ids") {
		if err != nil {
			return nil, err
		}
		flow := readLogicalFlow(row)
		for _, member := range ovn.DatapathsOf(row, func(group string) []string { return groups[group] }) {
			flow.key.place.datapath = member
			if datapath, ok := datapaths[member]; ok {
				flow.key.place.datapath = identify(datapath)
			}
			flows = append(flows, flow)
		}
	}
	return flows, nil
}

// readDatapathGroups returns the UUIDs of the datapaths of each row of Logical_DP_Group.
func readDatapathGroups(x *file.Index) (map[string][]string, error) {
	groups := map[string][]string{}
	for row, err := range x.Rows(ovn.DatapathGroupTable, "datapaths") {
		if err != nil {
			return nil, err
		}
		groups[row.UUID] = row.UUIDs("datapaths")
	}
	return groups, nil
}

// readLogicalFlow returns the logical flow of a row, without a datapath.
func readLogicalFlow(row ovsdb.Row) logicalFlowOf {
	flow := logicalFlowOf{pipeline: row.String("pipeline"), stage: row.Map("external_ids")["stage-name"], uuid: row.UUID}
	flow.table, _ = row.Int("table_id")
	priority, _ := row.Int("priority")
	flow.key = LogicalKey{
		place:   logicalPlace{stage: flow.pipeline + " " + strconv.Itoa(flow.table), priority: strconv.Itoa(priority), match: row.String("match")},
		actions: row.String("actions"),
	}
	if meter := row.String("controller_meter"); meter != "" {
		flow.key.actions += " meter " + meter
	}
	return flow
}

// identify returns what a datapath has in common with its copy in another database: ovn-northd
// gives a datapath that it adds another UUID and perhaps another tunnel key.
func identify(datapath ovn.Datapath) string {
	return cmp.Or(datapath.Northbound, datapath.Name, strconv.FormatUint(datapath.Key, 10))
}

// LogicalChange is a logical flow that only one of two databases has, or that differs between them.
type LogicalChange struct {
	A, B string     // the flow in the databases, "" if one does not have it
	Key  LogicalKey // in the database that has it, in b if both have it

	of   *Logical // the database that names it
	uuid string
}

// LogicalDiff lists the differences between the logical flows of two databases.
type LogicalDiff struct {
	OnlyA, OnlyB, Changed []LogicalChange
	Same                  int
}

// CompareLogical compares the logical flows of two databases.
func CompareLogical(a, b *Logical) (diff LogicalDiff) {
	onlyA, onlyB := lacking(a, b), lacking(b, a)
	diff.Same = len(a.rows) - len(onlyA)
	inPlace := map[logicalPlace][]LogicalKey{}
	for _, key := range onlyA {
		inPlace[key.place] = append(inPlace[key.place], key)
	}
	for _, key := range onlyB {
		change := LogicalChange{B: b.text(key), Key: key, of: b, uuid: b.rows[key].uuid}
		if old := inPlace[key.place]; len(old) > 0 {
			change.A = a.text(old[0])
			inPlace[key.place] = old[1:]
			diff.Changed = append(diff.Changed, change)
			continue
		}
		diff.OnlyB = append(diff.OnlyB, change)
	}
	for _, key := range onlyA {
		if left := inPlace[key.place]; len(left) > 0 && left[0] == key {
			inPlace[key.place] = left[1:]
			diff.OnlyA = append(diff.OnlyA, LogicalChange{A: a.text(key), Key: key, of: a, uuid: a.rows[key].uuid})
		}
	}
	return diff
}

// lacking returns the logical flows that other does not have, in order.
func lacking(all, other *Logical) []LogicalKey {
	return slices.SortedFunc(func(yield func(LogicalKey) bool) {
		for key := range maps.Keys(all.rows) {
			if other.UUID(key) == "" && !yield(key) {
				return
			}
		}
	}, func(a, b LogicalKey) int {
		return cmp.Or(cmp.Compare(a.place.stage, b.place.stage), cmp.Compare(a.place.datapath, b.place.datapath), cmp.Compare(a.place.match, b.place.match), cmp.Compare(a.actions, b.actions), cmp.Compare(a.nth, b.nth))
	})
}

// NameLogical groups changes of logical flows by their causes; entry describes each change.
func NameLogical[E Entry](changes []LogicalChange, entry func(LogicalChange) E) ([]Difference[E], error) {
	list := []Difference[E]{}
	at := map[string]int{}
	for _, change := range changes {
		row, _, err := change.of.index.Row(ovn.LogicalFlowTable, change.uuid)
		if err != nil {
			return nil, err
		}
		rule, err := change.of.rules.LogicalFlow(row)
		if err != nil {
			return nil, err
		}
		i, known := at[rule.Words]
		if !known {
			i = len(list)
			at[rule.Words] = i
			list = append(list, Difference[E]{Cause: Cause{Words: rule.Words, Stage: rule.Stage, Row: rule.Row, UUID: rule.UUID,
				Northbound: rule.Cause.Table, NorthboundUUID: rule.Cause.UUID, Name: rule.Cause.Name}})
		}
		list[i].addLogical(rule, entry(change))
	}
	for i := range list {
		d := &list[i]
		d.What = (&Group{Cause: d.Cause, Stages: d.Stages, Datapaths: d.Datapaths}).String()
	}
	return list, nil
}

func (d *Difference[E]) addLogical(rule rules.Rule, entry E) {
	d.Count++
	if rule.Stage != "" && !slices.Contains(d.Stages, rule.Stage) {
		d.Stages = append(d.Stages, rule.Stage)
	}
	if name := rule.Datapath.String(); rule.Datapath.Name != "" && !slices.Contains(d.Datapaths, name) {
		d.Datapaths = append(d.Datapaths, name)
	}
	d.Entries = append(d.Entries, entry)
}
