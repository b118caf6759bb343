package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovn/rules"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/scratch"
)

// Northd is the comparison of the logical flows in the SB database with those that
// ovn-northd makes of the NB database.
type Northd struct {
	Compared int          `json:"compared"` // recorded logical flows, one for each datapath that they are for
	Same     int          `json:"same"`
	Missing  []Difference `json:"missing"`
	Extra    []Difference `json:"extra"`
	Altered  []Difference `json:"altered"`
}

// logicalFlows compares the logical flows.
func (c *comparison) logicalFlows(ctx context.Context) error {
	c.options.progress("ovn-northd computes the logical flows")
	err := c.run(ctx, scratch.Options{Northd: true, NB: c.node.wd.Database(workdir.NB)}, func(*scratch.Scratch) error {
		computed, err := file.OpenIndex(ctx, c.dir.WorkingCopy(workdir.SB))
		if err != nil {
			return err
		}
		defer computed.Close()
		c.options.progress("comparing logical flows")
		return c.compareLogical(computed)
	})
	if errors.Is(err, scratch.ErrNotReady) {
		c.report.undetermined(err.Error())
		return nil
	}
	return err
}

// logical are the logical flows of a database, each once for each of its datapaths.
type logical map[logicalKey]logicalRow

// logicalRow is the row of a logical flow.
type logicalRow struct {
	uuid    string
	written *logicalKey // the flow with the numbers of ECMP groups, which its key lacks; else nil
}

// text returns a logical flow as its database has it.
func (l logical) text(key logicalKey) string {
	if written := l[key].written; written != nil {
		return written.String()
	}
	return key.String()
}

// logicalKey is the content of a logical flow of one datapath.
type logicalKey struct {
	place   logicalPlace
	actions string
	nth     int // of the next hops of an ECMP group with the same actions; 0 for other flows
}

// logicalPlace is the part of a logical flow that decides which packets it matches.
type logicalPlace struct{ datapath, stage, priority, match string }

// logicalFlowOf is a logical flow of one datapath.
type logicalFlowOf struct {
	key      logicalKey
	pipeline string
	table    int
	uuid     string
}

func readLogical(x *file.Index) (logical, error) {
	found, numbered, groups := logical{}, []logicalFlowOf{}, ecmpGroups{}
	for flow, err := range logicalFlowsOf(x) {
		if err != nil {
			return nil, err
		}
		if strings.Contains(flow.key.place.match, ecmpRegister) || strings.Contains(flow.key.actions, ecmpRegister) {
			groups.add(flow)
			numbered = append(numbered, flow)
			continue
		}
		found[flow.key] = logicalRow{uuid: flow.uuid}
	}
	names, alike := groups.names(), map[logicalKey]int{}
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
	return found, nil
}

// logicalFlowsOf yields the logical flows of a database, each once for each of its datapaths.
func logicalFlowsOf(index *file.Index) iter.Seq2[logicalFlowOf, error] {
	return func(yield func(logicalFlowOf, error) bool) {
		datapaths, err := ovn.Datapaths(index)
		if err != nil {
			yield(logicalFlowOf{}, err)
			return
		}
		groups, err := readDatapathGroups(index)
		if err != nil {
			yield(logicalFlowOf{}, err)
			return
		}
		for row, err := range index.Rows(logicalFlow, "logical_datapath", "logical_dp_group", "pipeline", "table_id", "priority", "match", "actions", "controller_meter") {
			if err != nil {
				yield(logicalFlowOf{}, err)
				return
			}
			flow := readLogicalFlow(row)
			for _, member := range ovn.DatapathsOf(row, func(group string) []string { return groups[group] }) {
				flow.key.place.datapath = member
				if datapath, ok := datapaths[member]; ok {
					flow.key.place.datapath = identify(datapath)
				}
				if !yield(flow, nil) {
					return
				}
			}
		}
	}
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
	flow := logicalFlowOf{pipeline: row.String("pipeline"), uuid: row.UUID}
	flow.table, _ = row.Int("table_id")
	priority, _ := row.Int("priority")
	flow.key = logicalKey{
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

// compareLogical compares the recorded logical flows with the computed ones.
func (c *comparison) compareLogical(computed *file.Index) error {
	recorded, err := readLogical(c.sb)
	if err != nil {
		return err
	}
	expected, err := readLogical(computed)
	if err != nil {
		return err
	}
	result := &Northd{Compared: len(recorded), Missing: []Difference{}, Extra: []Difference{}, Altered: []Difference{}}
	c.report.Northd = result
	onlyA, onlyB := lacking(recorded, expected), lacking(expected, recorded)
	result.Same = len(recorded) - len(onlyA)
	altered := map[logicalPlace][]logicalKey{}
	for _, key := range onlyA {
		altered[key.place] = append(altered[key.place], key)
	}
	recordedNames, computedNames := rules.New(c.nb, c.sb), rules.New(c.nb, computed)
	var missing, changed, extra []logicalChange
	for _, key := range onlyB {
		entry := logicalChange{names: computedNames, index: computed, uuid: expected[key].uuid, computed: expected.text(key), key: key}
		if old := altered[key.place]; len(old) > 0 {
			entry.recorded = recorded.text(old[0])
			altered[key.place] = old[1:]
			changed = append(changed, entry)
			continue
		}
		missing = append(missing, entry)
	}
	for _, key := range onlyA {
		if left := altered[key.place]; len(left) > 0 && left[0] == key {
			altered[key.place] = left[1:]
			extra = append(extra, logicalChange{names: recordedNames, index: c.sb, uuid: recorded[key].uuid, recorded: recorded.text(key)})
		}
	}
	if result.Missing, err = nameLogical(missing); err != nil {
		return err
	}
	if result.Extra, err = nameLogical(extra); err != nil {
		return err
	}
	if result.Altered, err = nameLogical(changed); err != nil {
		return err
	}
	if len(onlyA)+len(onlyB) > 0 {
		c.report.Verdict = Found
	}
	return nil
}

// lacking returns the logical flows that other does not have, in order.
func lacking(all, other logical) []logicalKey {
	return slices.SortedFunc(func(yield func(logicalKey) bool) {
		for key := range maps.Keys(all) {
			if _, ok := other[key]; !ok && !yield(key) {
				return
			}
		}
	}, func(a, b logicalKey) int {
		return cmp.Or(cmp.Compare(a.place.stage, b.place.stage), cmp.Compare(a.place.datapath, b.place.datapath), cmp.Compare(a.place.match, b.place.match), cmp.Compare(a.actions, b.actions), cmp.Compare(a.nth, b.nth))
	})
}

// String returns the logical flow in the notation of ovn-sbctl lflow-list.
func (k logicalKey) String() string {
	pipeline, table, _ := strings.Cut(k.place.stage, " ")
	return fmt.Sprintf("%s table=%s, priority=%s, match=(%s), action=(%s)", pipeline, table, k.place.priority, k.place.match, k.actions)
}

// logicalChange is a logical flow that differs, with the database that has its row.
type logicalChange struct {
	names              *rules.Rules
	index              *file.Index
	uuid               string
	recorded, computed string
	key                logicalKey // of the computed one
}

// nameLogical groups logical flows by their causes.
func nameLogical(changes []logicalChange) ([]Difference, error) {
	list := []Difference{}
	at := map[string]int{}
	for _, change := range changes {
		row, _, err := change.index.Row(logicalFlow, change.uuid)
		if err != nil {
			return nil, err
		}
		rule, err := change.names.LogicalFlow(row)
		if err != nil {
			return nil, err
		}
		i, known := at[rule.Words]
		if !known {
			i = len(list)
			at[rule.Words] = i
			list = append(list, Difference{Cause: flowdiff.Cause{Words: rule.Words, Stage: rule.Stage, Row: rule.Row, UUID: rule.UUID,
				Northbound: rule.Cause.Table, NorthboundUUID: rule.Cause.UUID, Name: rule.Cause.Name}})
		}
		difference := &list[i]
		difference.Count++
		if rule.Stage != "" && !slices.Contains(difference.Stages, rule.Stage) {
			difference.Stages = append(difference.Stages, rule.Stage)
		}
		if name := rule.Datapath.String(); rule.Datapath.Name != "" && !slices.Contains(difference.Datapaths, name) {
			difference.Datapaths = append(difference.Datapaths, name)
		}
		difference.Entries = append(difference.Entries, Entry{Kind: flowdiff.KindLogicalFlow, Recorded: change.recorded, Computed: change.computed, logical: change.key})
	}
	for i := range list {
		d := &list[i]
		d.What = (&flowdiff.Group{Cause: d.Cause, Stages: d.Stages, Datapaths: d.Datapaths}).String()
	}
	return list, nil
}
