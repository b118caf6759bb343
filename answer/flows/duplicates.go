package flows

import (
	"cmp"
	"context"
	"hash/maphash"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
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
// nodes twice.
func (t *Top) duplicates(ctx context.Context) ([]Duplicate, error) {
	found := []Duplicate{}
	seen := map[string]bool{} // the first row of each duplicate
	for i, source := range t.sources {
		node, done, err := t.databases(ctx, i)
		if err != nil {
			return nil, nodeError(source.Name, err)
		}
		if node.sb != nil {
			err = finder{ctx, rules.New(node.nb, node.sb), node.nb, node.sb}.find(func(d Duplicate) {
				if id := d.Rows[0].UUID; !seen[id] && (t.limit == 0 || len(found) < t.limit) {
					seen[id] = true
					found = append(found, d)
				}
			})
		}
		done()
		if err != nil {
			return nil, nodeError(source.Name, err)
		}
	}
	return found, nil
}

// databases opens the databases of a source, but not its flows.
func (t *Top) databases(ctx context.Context, source int) (node *Node, done func(), err error) {
	if source == len(t.sources)-1 {
		return t.open(ctx, source)
	}
	node = &Node{dir: t.sources[source].Dir}
	if err = node.openDatabases(ctx); err != nil {
		node.Close()
	}
	return node, node.Close, err
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
	add := func(place string, acls []string) {
		for _, id := range acls {
			places[id] = append(places[id], place)
		}
	}
	if err := cmp.Or(f.nb.Each("Port_Group", func(row ovsdb.Row) { add("port group "+row.String("name"), row.UUIDs("acls")) }, "name", "acls"),
		ovn.EachSwitch(f.nb, func(s *ovn.Switch) { add("logical switch "+s.Name, s.ACLs) })); err != nil {
		return err
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
	for same, ids := range all {
		if len(ids) < 2 {
			continue
		}
		duplicate := Duplicate{Where: same.place + ", " + same.direction, Priority: same.priority, Match: same.match}
		for _, id := range ids {
			name, err := f.rules.DescribeNorthbound("ACL", id)
			if err != nil {
				return err
			}
			duplicate.Rows = append(duplicate.Rows, Duplicated{"ACL", id, name})
		}
		found = append(found, duplicate)
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
	sum  uint64
	uuid string
}

// logicalFlows finds logical flows of one datapath. It keeps the hashes of all, and reads
// again those with the same one.
func (f finder) logicalFlows(use func(Duplicate)) error {
	seed := maphash.MakeSeed()
	parts := f.sb.Parts("Logical_Flow", runtime.NumCPU(), "pipeline", "table_id", "priority", "match")
	lists := make([][]hashed, len(parts))
	var group errgroup.Group
	for i, rows := range parts {
		group.Go(func() (err error) {
			lists[i], err = f.hash(rows, seed)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	list := slices.Concat(lists...)
	slices.SortFunc(list, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.sum, b.sum), strings.Compare(a.uuid, b.uuid)) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].sum == list[0].sum {
			n++
		}
		if n > 1 {
			if err := f.compare(list[:n], use); err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

// hash returns the hashes of logical flows.
func (f finder) hash(rows iter.Seq2[ovsdb.Row, error], seed maphash.Seed) (list []hashed, err error) {
	var sum maphash.Hash
	sum.SetSeed(seed)
	for row, err := range rows {
		if err != nil || f.ctx.Err() != nil {
			return nil, cmp.Or(f.ctx.Err(), err)
		}
		sum.Reset()
		maphash.WriteComparable(&sum, keyOf(row))
		list = append(list, hashed{sum.Sum64(), row.UUID})
	}
	return list, nil
}

// rowKey identifies a logical flow within its datapath.
type rowKey struct {
	pipeline, match string
	table, priority int
}

func keyOf(row ovsdb.Row) rowKey {
	key := rowKey{pipeline: row.String("pipeline"), match: row.String("match")}
	key.table, _ = row.Int("table_id")
	key.priority, _ = row.Int("priority")
	return key
}

// compare reports the rows with one hash that share a datapath.
func (f finder) compare(same []hashed, use func(Duplicate)) error {
	type place struct {
		rowKey
		datapath string
	}
	at := map[place][]Duplicated{}
	stages := map[place]string{}
	var order []place
	for _, hashed := range same {
		row, ok, err := f.sb.Row("Logical_Flow", hashed.uuid)
		if err != nil || !ok {
			return err
		}
		for _, id := range f.rules.DatapathsOf(row) {
			here := place{keyOf(row), id}
			if at[here] == nil {
				order = append(order, here)
				stages[here] = row.Value("external_ids", "stage-name")
			}
			at[here] = append(at[here], Duplicated{"Logical_Flow", row.UUID, "logical flow: " + row.String("actions")})
		}
	}
	reported := map[string]bool{}
	for _, here := range order {
		rows := at[here]
		if len(rows) < 2 || reported[rows[0].UUID] {
			continue // another datapath of the same rows
		}
		reported[rows[0].UUID] = true
		use(Duplicate{Where: "stage " + stages[here], Priority: here.priority, Match: here.match, Rows: rows})
	}
	return nil
}
