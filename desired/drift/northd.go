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

	"ovs-offline/desired/flowdiff"
	"ovs-offline/desired/scratch"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/rules"
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

// KindLogicalFlow is the kind of an entry that is a logical flow.
const KindLogicalFlow = "logical flow"

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

// logicalRow is where a logical flow is from.
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

// logicalPlace is the part of a logical flow that decides whether it matches.
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
	for f, err := range logicalFlowsOf(x) {
		if err != nil {
			return nil, err
		}
		if strings.Contains(f.key.place.match, ecmpRegister) || strings.Contains(f.key.actions, ecmpRegister) {
			groups.add(f)
			numbered = append(numbered, f)
			continue
		}
		found[f.key] = logicalRow{uuid: f.uuid}
	}
	names, alike := groups.names(), map[logicalKey]int{}
	for _, f := range numbered {
		key, isNeutral := names.neutral(f)
		if !isNeutral {
			found[key] = logicalRow{uuid: f.uuid}
			continue
		}
		alike[key]++
		key.nth = alike[key]
		found[key] = logicalRow{f.uuid, &f.key}
	}
	return found, nil
}

// logicalFlowsOf yields the logical flows of a database, each once for each of its datapaths.
func logicalFlowsOf(x *file.Index) iter.Seq2[logicalFlowOf, error] {
	return func(yield func(logicalFlowOf, error) bool) {
		datapaths, groups, err := readDatapaths(x)
		if err != nil {
			yield(logicalFlowOf{}, err)
			return
		}
		for row, err := range x.Rows(logicalFlow, "logical_datapath", "logical_dp_group", "pipeline", "table_id", "priority", "match", "actions", "controller_meter") {
			if err != nil {
				yield(logicalFlowOf{}, err)
				return
			}
			members := row.UUIDs("logical_datapath")
			for _, group := range row.UUIDs("logical_dp_group") {
				members = append(members, groups[group]...)
			}
			f := readLogicalFlow(row)
			for _, member := range members {
				f.key.place.datapath = cmp.Or(datapaths[member], member)
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}

// readDatapaths returns the names of datapaths, and the members of groups of them, by UUID.
func readDatapaths(x *file.Index) (names map[string]string, groups map[string][]string, err error) {
	names, groups = map[string]string{}, map[string][]string{}
	for row, err := range x.Rows("Datapath_Binding", "external_ids", "tunnel_key") {
		if err != nil {
			return nil, nil, err
		}
		names[row.UUID] = datapathName(row)
	}
	for row, err := range x.Rows("Logical_DP_Group", "datapaths") {
		if err != nil {
			return nil, nil, err
		}
		groups[row.UUID] = row.UUIDs("datapaths")
	}
	return names, groups, nil
}

// readLogicalFlow returns the logical flow of a row, without a datapath.
func readLogicalFlow(row ovsdb.Row) logicalFlowOf {
	f := logicalFlowOf{pipeline: row.String("pipeline"), uuid: row.UUID}
	f.table, _ = row.Int("table_id")
	priority, _ := row.Int("priority")
	f.key = logicalKey{
		place:   logicalPlace{stage: f.pipeline + " " + strconv.Itoa(f.table), priority: strconv.Itoa(priority), match: row.String("match")},
		actions: row.String("actions"),
	}
	if meter := row.String("controller_meter"); meter != "" {
		f.key.actions += " meter " + meter
	}
	return f
}

// datapathName identifies a datapath in the copies of a database: ovn-northd gives a
// datapath that it adds another UUID and perhaps another tunnel key.
func datapathName(row ovsdb.Row) string {
	ids := row.Map("external_ids")
	key, _ := row.Int("tunnel_key")
	return cmp.Or(ids["logical-switch"], ids["logical-router"], ids["name"], strconv.Itoa(key))
}

// compareLogical compares the recorded logical flows with the computed ones.
func (c *comparison) compareLogical(computed *file.Index) error {
	a, err := readLogical(c.sb)
	if err != nil {
		return err
	}
	b, err := readLogical(computed)
	if err != nil {
		return err
	}
	result := &Northd{Compared: len(a), Missing: []Difference{}, Extra: []Difference{}, Altered: []Difference{}}
	c.report.Northd = result
	onlyA, onlyB := lacking(a, b), lacking(b, a)
	result.Same = len(a) - len(onlyA)
	altered := map[logicalPlace][]logicalKey{}
	for _, key := range onlyA {
		altered[key.place] = append(altered[key.place], key)
	}
	recordedNames, computedNames := rules.New(c.nb, c.sb), rules.New(c.nb, computed)
	var missing, changed, extra []logicalChange
	for _, key := range onlyB {
		entry := logicalChange{names: computedNames, index: computed, uuid: b[key].uuid, computed: b.text(key)}
		if old := altered[key.place]; len(old) > 0 {
			entry.recorded = a.text(old[0])
			altered[key.place] = old[1:]
			changed = append(changed, entry)
			continue
		}
		missing = append(missing, entry)
	}
	for _, key := range onlyA {
		if left := altered[key.place]; len(left) > 0 && left[0] == key {
			altered[key.place] = left[1:]
			extra = append(extra, logicalChange{names: recordedNames, index: c.sb, uuid: a[key].uuid, recorded: a.text(key)})
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
		d := &list[i]
		d.Count++
		if rule.Stage != "" && !slices.Contains(d.Stages, rule.Stage) {
			d.Stages = append(d.Stages, rule.Stage)
		}
		if name := rule.Datapath.String(); rule.Datapath.Name != "" && !slices.Contains(d.Datapaths, name) {
			d.Datapaths = append(d.Datapaths, name)
		}
		d.Entries = append(d.Entries, Entry{Kind: KindLogicalFlow, Recorded: change.recorded, Computed: change.computed})
	}
	for i := range list {
		d := &list[i]
		d.What = (&flowdiff.Group{Cause: d.Cause, Stages: d.Stages, Datapaths: d.Datapaths}).String()
	}
	return list, nil
}
