package compare

import (
	"maps"
	"slices"

	"ovs-offline/pkg/ovsdb"
)

// columnsOf returns the values in which an object differs before and after.
func (w *databasePair) columnsOf(pair pair) []Column {
	var found []Column
	for _, name := range w.columnNames(pair.new.table) {
		if w.new.tables[pair.new.table].ignores(name) || w.isParts(pair.new.table, name) || name == "tag" && pair.hasLocalTag() {
			continue
		}
		before := w.old.without(w.old.elements(pair.old, name), pair.old, name, w.newOf)
		after := w.new.without(w.new.elements(pair.new, name), pair.new, name, w.oldOf)
		found = append(found, w.differences(pair.new.table, name, before, after)...)
	}
	for _, name := range slices.Sorted(maps.Keys(union(pair.old.state, pair.new.state))) {
		if before, after := pair.old.state[name], pair.new.state[name]; before != after {
			found = append(found, Column{Name: name, Old: before, New: after})
		}
	}
	if old, now := pair.old.owner, pair.new.owner; old != nil && now != nil && w.newOf[old] != now {
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

func union(before, after map[string]string) map[string]string {
	all := maps.Clone(after)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, before)
	return all
}

// columnNames returns the names of the columns that a table has on one side or on both.
func (w *databasePair) columnNames(table string) []string {
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

// isParts reports whether a column refers to parts of its row that are objects: they are compared
// themselves.
func (w *databasePair) isParts(table, column string) bool {
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
func (db *database) elements(object *object, column string) []ovsdb.Element {
	optional := false
	for _, c := range db.columnsNamed(object.table, column) {
		optional = c.Optional
	}
	found := db.names.Elements(object.row, column)
	if !optional && len(found) == 1 && found[0].Key == "" && slices.Contains([]string{"", "0", "false"}, found[0].Value) {
		return nil
	}
	return found
}

// without leaves out the references to objects that only this side has: each of these is a
// finding of its own.
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
func (w *databasePair) differences(table, column string, before, after []ovsdb.Element) []Column {
	if slices.Equal(before, after) {
		return nil
	}
	if len(before) > 0 && before[0].Key != "" || len(after) > 0 && after[0].Key != "" {
		return w.mapDifferences(table, column, before, after)
	}
	if len(before) <= 1 && len(after) <= 1 {
		return []Column{{Name: column, Old: firstValue(before), New: firstValue(after)}}
	}
	return []Column{{Name: column, Removed: missing(before, after), Added: missing(after, before)}}
}

func firstValue(list []ovsdb.Element) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Value
}

func (w *databasePair) mapDifferences(table, column string, before, after []ovsdb.Element) []Column {
	old, now, keys := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, e := range before {
		old[e.Key], keys[e.Key] = e.Value, true
	}
	for _, e := range after {
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
