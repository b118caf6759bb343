package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// logical are the logical flows of a database, each once for each of its datapaths, with the
// UUID of its row.
type logical map[logicalKey]string

// logicalKey is the content of a logical flow of one datapath.
type logicalKey struct {
	place   logicalPlace
	actions string
}

// logicalPlace is the part of a logical flow that decides whether it matches.
type logicalPlace struct{ datapath, stage, priority, match string }

func readLogical(x *file.Index) (logical, error) {
	datapaths, groups := map[string]string{}, map[string][]string{}
	for row, err := range x.Rows("Datapath_Binding", "external_ids", "tunnel_key") {
		if err != nil {
			return nil, err
		}
		datapaths[row.UUID] = datapathName(row)
	}
	for row, err := range x.Rows("Logical_DP_Group", "datapaths") {
		if err != nil {
			return nil, err
		}
		groups[row.UUID] = row.UUIDs("datapaths")
	}
	found := logical{}
	for row, err := range x.Rows(logicalFlow, "logical_datapath", "logical_dp_group", "pipeline", "table_id", "priority", "match", "actions", "controller_meter") {
		if err != nil {
			return nil, err
		}
		members := row.UUIDs("logical_datapath")
		for _, group := range row.UUIDs("logical_dp_group") {
			members = append(members, groups[group]...)
		}
		table, _ := row.Int("table_id")
		priority, _ := row.Int("priority")
		key := logicalKey{logicalPlace{stage: row.String("pipeline") + " " + strconv.Itoa(table), priority: strconv.Itoa(priority), match: row.String("match")},
			row.String("actions")}
		if meter := row.String("controller_meter"); meter != "" {
			key.actions += " meter " + meter
		}
		for _, member := range members {
			key.place.datapath = cmp.Or(datapaths[member], member)
			found[key] = row.UUID
		}
	}
	return found, nil
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
	altered := map[logicalPlace]logicalKey{}
	for _, key := range onlyA {
		altered[key.place] = key
	}
	recordedNames, computedNames := rules.New(c.nb, c.sb), rules.New(c.nb, computed)
	var missing, changed, extra []logicalChange
	for _, key := range onlyB {
		entry := logicalChange{names: computedNames, index: computed, uuid: b[key], computed: key.String()}
		if old, ok := altered[key.place]; ok {
			entry.recorded = old.String()
			changed = append(changed, entry)
			delete(altered, key.place)
			continue
		}
		missing = append(missing, entry)
	}
	for _, key := range onlyA {
		if altered[key.place] == key {
			extra = append(extra, logicalChange{names: recordedNames, index: c.sb, uuid: a[key], recorded: key.String()})
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
		return cmp.Or(cmp.Compare(a.place.stage, b.place.stage), cmp.Compare(a.place.datapath, b.place.datapath), cmp.Compare(a.place.match, b.place.match), cmp.Compare(a.actions, b.actions))
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
