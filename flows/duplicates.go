package flows

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/trace/rules"
)

// Duplicate is a set of rows with the same match at the same priority in the same place.
// Only one of them can decide about a packet.
type Duplicate struct {
	Where    string       `json:"where"` // the port group, the switch or the stage
	Priority int          `json:"priority"`
	Match    string       `json:"match"`
	Rows     []Duplicated `json:"rows"`
}

// Duplicated is a row of a Duplicate.
type Duplicated struct {
	Table string `json:"table"`
	UUID  string `json:"uuid"`
	Name  string `json:"name"`
}

// duplicates returns the ACLs, and the logical flows, that are in the databases of the
// nodes twice. A database that several nodes have is read once.
func duplicates(ctx context.Context, sources []Source, limit int) ([]Duplicate, error) {
	found := []Duplicate{}
	seen := map[string]bool{} // the first row of each duplicate
	for _, s := range sources {
		n := &Node{dir: s.Dir}
		nb, sb, _, err := n.openDatabases(ctx)
		if err == nil && sb != nil {
			r := rules.New(nb, sb)
			err = finder{ctx, r, nb, sb}.find(func(d Duplicate) {
				if id := d.Rows[0].UUID; !seen[id] && (limit == 0 || len(found) < limit) {
					seen[id] = true
					found = append(found, d)
				}
			})
		}
		n.Close()
		if err != nil {
			return nil, nodeError(s.Name, err)
		}
	}
	return found, nil
}

// finder finds duplicates in the databases of a node.
type finder struct {
	ctx    context.Context
	rules  *rules.Rules
	nb, sb *file.Index
}

func (f finder) find(use func(Duplicate)) error {
	if f.nb != nil {
		if err := f.acls(use); err != nil {
			return err
		}
	}
	return f.logicalFlows(use)
}

// acls finds ACLs of one port group or switch.
func (f finder) acls(use func(Duplicate)) error {
	places := map[string][]string{}
	for _, table := range []string{"Port_Group", "Logical_Switch"} {
		for row, err := range f.nb.Rows(table, "name", "acls") {
			if err != nil {
				return err
			}
			for _, id := range row.UUIDs("acls") {
				places[id] = append(places[id], strings.ToLower(strings.ReplaceAll(table, "_", " "))+" "+row.String("name"))
			}
		}
	}
	type key struct {
		place, direction, match string
		priority, tier          int
	}
	all := map[key][]string{}
	for row, err := range f.nb.Rows("ACL", "direction", "priority", "match", "tier") {
		if err != nil {
			return err
		}
		for _, place := range places[row.UUID] {
			priority, _ := row.Int("priority")
			tier, _ := row.Int("tier")
			k := key{place, row.String("direction"), row.String("match"), priority, tier}
			all[k] = append(all[k], row.UUID)
		}
	}
	var found []Duplicate
	for k, ids := range all {
		if len(ids) < 2 {
			continue
		}
		d := Duplicate{Where: k.place + ", " + k.direction, Priority: k.priority, Match: k.match}
		for _, id := range ids {
			name, err := f.rules.NB("ACL", id)
			if err != nil {
				return err
			}
			d.Rows = append(d.Rows, Duplicated{"ACL", id, name})
		}
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b Duplicate) int {
		return cmp.Or(strings.Compare(a.Where, b.Where), b.Priority-a.Priority, strings.Compare(a.Match, b.Match))
	})
	for _, d := range found {
		use(d)
	}
	return nil
}

// hashed is a logical flow by the hash of its stage, priority and match.
type hashed struct {
	sum uint64
	row int32
}

// logicalFlows finds logical flows of one datapath. It keeps 12 bytes of each, and reads
// again those with the same hash.
func (f finder) logicalFlows(use func(Duplicate)) error {
	var list []hashed
	var ids []string
	seed := maphash.MakeSeed()
	var h maphash.Hash
	h.SetSeed(seed)
	for row, err := range f.sb.Rows("Logical_Flow", "pipeline", "table_id", "priority", "match") {
		if err != nil || f.ctx.Err() != nil {
			return cmp.Or(f.ctx.Err(), err)
		}
		h.Reset()
		_, _ = h.WriteString(rowKey(row)) // it returns no error
		list = append(list, hashed{h.Sum64(), int32(len(ids))})
		ids = append(ids, row.UUID)
	}
	slices.SortFunc(list, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.row, b.row)) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].sum == list[0].sum {
			n++
		}
		if n > 1 {
			if err := f.compare(list[:n], ids, use); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

func rowKey(row ovsdb.Row) string {
	table, _ := row.Int("table_id")
	priority, _ := row.Int("priority")
	return fmt.Sprintf("%s|%d|%d|%s|", row.String("pipeline"), table, priority, row.String("match"))
}

// compare reports the rows with one hash that share a datapath.
func (f finder) compare(same []hashed, ids []string, use func(Duplicate)) error {
	at := map[string][]Duplicated{} // by key and datapath
	details := map[string]Duplicate{}
	var order []string
	for _, one := range same {
		row, ok, err := f.sb.Row("Logical_Flow", ids[one.row])
		if err != nil || !ok {
			return err
		}
		datapaths, err := f.datapathsOf(row)
		if err != nil {
			return err
		}
		priority, _ := row.Int("priority")
		stage := row.Map("external_ids")["stage-name"]
		for _, id := range datapaths {
			key := rowKey(row) + id
			if at[key] == nil {
				order = append(order, key)
				details[key] = Duplicate{Where: "stage " + stage, Priority: priority, Match: row.String("match")}
			}
			at[key] = append(at[key], Duplicated{"Logical_Flow", row.UUID, "logical flow: " + row.String("actions")})
		}
	}
	reported := map[string]bool{}
	for _, key := range order {
		rows := at[key]
		if len(rows) < 2 || reported[rows[0].UUID] {
			continue // another datapath of the same rows
		}
		reported[rows[0].UUID] = true
		d := details[key]
		d.Rows = rows
		use(d)
	}
	return nil
}

func (f finder) datapathsOf(row ovsdb.Row) ([]string, error) {
	ids := row.UUIDs("logical_datapath")
	for _, group := range row.UUIDs("logical_dp_group") {
		g, _, err := f.sb.Row("Logical_DP_Group", group, "datapaths")
		if err != nil {
			return nil, err
		}
		ids = append(ids, g.UUIDs("datapaths")...)
	}
	return ids, nil
}
