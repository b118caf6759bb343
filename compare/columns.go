package compare

import (
	"maps"
	"slices"

	"ovs-offline/internal/ovsdb"
)

// columnsOf returns the values in which an object differs before and after.
func (w *world) columnsOf(p pair) []Column {
	var found []Column
	for _, name := range w.columnNames(p.new.table) {
		if w.new.tables[p.new.table].ignores(name) || w.isParts(p.new.table, name) || name == "tag" && p.hasLocalTag() {
			continue
		}
		a, b := w.old.elements(p.old, name), w.new.elements(p.new, name)
		a, b = w.old.without(a, p.old, name, w.newOf), w.new.without(b, p.new, name, w.oldOf)
		found = append(found, w.differences(p.new.table, name, a, b)...)
	}
	for _, name := range slices.Sorted(maps.Keys(union(p.old.state, p.new.state))) {
		if a, b := p.old.state[name], p.new.state[name]; a != b {
			found = append(found, Column{Name: name, Old: a, New: b})
		}
	}
	if old, now := p.old.owner, p.new.owner; old != nil && now != nil && w.newOf[old] != now {
		found = append(found, Column{Name: "of", Old: old.name, New: now.name})
	}
	return found
}

// hasLocalTag reports whether the VLAN tag of a port is one that neutron's agent chose for
// its network, and that is valid on its node only.
func (p pair) hasLocalTag() bool {
	const network = "net_uuid"
	return p.new.table == "Port" && p.old.row.Map("other_config")[network] != "" && p.new.row.Map("other_config")[network] != ""
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, a)
	return all
}

// columnNames returns the names of the columns that a table has on one side or on both.
func (w *world) columnNames(table string) []string {
	names := map[string]bool{}
	for _, db := range []*database{w.old, w.new} {
		for _, c := range db.columns[table] {
			if !c.Ephemeral {
				names[c.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// isParts reports whether a column refers to rows that are objects of their own, and parts
// of its row: these are compared themselves.
func (w *world) isParts(table, column string) bool {
	for _, db := range []*database{w.old, w.new} {
		for _, c := range db.columnsNamed(table, column) {
			if c.Owns != "" && db.tables[c.Owns].inline == nil {
				return true
			}
		}
	}
	return false
}

// elements returns what a column of an object holds, without what the column holds by
// default.
func (db *database) elements(o *object, column string) []ovsdb.Element {
	optional := false
	for _, c := range db.columnsNamed(o.table, column) {
		optional = c.Optional
	}
	found := db.names.Elements(o.row, column)
	if !optional && len(found) == 1 && found[0].Key == "" && slices.Contains([]string{"", "0", "false"}, found[0].Value) {
		return nil
	}
	return found
}

// without leaves out the references to objects that only this side has: that these were
// added or are gone is a finding of its own.
func (db *database) without(list []ovsdb.Element, o *object, column string, matched map[*object]*object) []ovsdb.Element {
	alone := map[string]bool{}
	for _, id := range o.row.References()[column] {
		if other := db.objects[id]; other != nil && matched[other] == nil && db.tables[other.table].inline == nil {
			alone[db.names[id]] = true
		}
	}
	if len(alone) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(e ovsdb.Element) bool { return alone[e.Value] })
}

// differences compares the elements of a column.
func (w *world) differences(table, column string, a, b []ovsdb.Element) []Column {
	if slices.Equal(a, b) {
		return nil
	}
	if len(a) > 0 && a[0].Key != "" || len(b) > 0 && b[0].Key != "" {
		return w.mapDifferences(table, column, a, b)
	}
	if len(a) <= 1 && len(b) <= 1 {
		return []Column{{Name: column, Old: single(a), New: single(b)}}
	}
	return []Column{{Name: column, Removed: missing(a, b), Added: missing(b, a)}}
}

func single(list []ovsdb.Element) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Value
}

func (w *world) mapDifferences(table, column string, a, b []ovsdb.Element) []Column {
	old, now, keys := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, e := range a {
		old[e.Key], keys[e.Key] = e.Value, true
	}
	for _, e := range b {
		now[e.Key], keys[e.Key] = e.Value, true
	}
	var found []Column
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name := column + ":" + key
		if old[key] != now[key] && !w.new.tables[table].ignores(name) {
			found = append(found, Column{Name: name, Old: old[key], New: now[key]})
		}
	}
	return found
}

// missing returns the values in a list that another lacks.
func missing(list, other []ovsdb.Element) []string {
	has := map[string]bool{}
	for _, e := range other {
		has[e.Value] = true
	}
	var only []string
	for _, e := range list {
		if !has[e.Value] {
			only = append(only, e.Value)
		}
	}
	return only
}
