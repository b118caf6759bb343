package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// pair is an object before and after. One of them is nil for an object that was added or
// is gone.
type pair struct{ old, new *object }

// any returns the object after the change, or else the object before it.
func (p pair) any() *object { return cmp.Or(p.new, p.old) }

// databasePair is a database before and after.
type databasePair struct {
	old, new *database
	pairs    []pair
	newOf    map[*object]*object // by the object before
	oldOf    map[*object]*object // by the object after
}

// pairDatabases finds the rows that are one object before and after: rows with one UUID, and
// then, in a database that was made again, rows of the same owner with the same key, the
// same content or the same external_ids.
func pairDatabases(older, newer *database) *databasePair {
	both := &databasePair{old: older, new: newer, newOf: map[*object]*object{}, oldOf: map[*object]*object{}}
	for uuid, o := range older.objects {
		if n := newer.objects[uuid]; n != nil && n.table == o.table {
			both.match(o, n)
		}
	}
	for _, table := range both.tableNames() {
		if both.old.tables[table].inline == nil {
			both.matchAll(roots(older.byTable[table]), roots(newer.byTable[table]))
		}
	}
	for _, table := range both.tableNames() {
		if both.new.tables[table].inline != nil {
			continue // it is compared as what its owner holds
		}
		for _, o := range older.byTable[table] {
			if both.newOf[o] == nil {
				both.pairs = append(both.pairs, pair{old: o})
			}
		}
		for _, n := range newer.byTable[table] {
			both.pairs = append(both.pairs, pair{both.oldOf[n], n})
		}
	}
	both.shareNames()
	return both
}

func (w *databasePair) tableNames() []string {
	names := map[string]bool{}
	for name := range w.old.byTable {
		names[name] = true
	}
	for name := range w.new.byTable {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func roots(list []*object) []*object {
	return slices.DeleteFunc(slices.Clone(list), func(o *object) bool { return o.owner != nil })
}

func (w *databasePair) match(o, n *object) { w.newOf[o], w.oldOf[n] = n, o }

// matchAll matches objects of the same owner, and then their parts.
func (w *databasePair) matchAll(older, newer []*object) {
	singleton := func(o *object) string {
		if table := o.table; table == "NB_Global" || table == "Open_vSwitch" {
			return table
		}
		return ""
	}
	for _, identify := range []func(db *database, o *object) string{
		func(_ *database, o *object) string { return singleton(o) },
		func(db *database, o *object) string {
			return nonEmpty(o.table, db.keyText(o.table, o)+db.contentText(o))
		},
		func(db *database, o *object) string { return nonEmpty(o.table, db.keyText(o.table, o)) },
		func(_ *database, o *object) string { return nonEmpty(o.table, words("external_ids")(o.row)) },
	} {
		w.matchBy(older, newer, identify)
	}
	for _, o := range older {
		if n := w.newOf[o]; n != nil {
			w.matchAll(o.parts, n.parts)
		}
	}
}

func nonEmpty(table, text string) string {
	if text == "" {
		return ""
	}
	return table + " " + text
}

// matchBy matches objects that have no match yet by an identity, those with the same one in
// their order.
func (w *databasePair) matchBy(older, newer []*object, identify func(*database, *object) string) {
	free := map[string][]*object{}
	for _, n := range newer {
		if w.oldOf[n] == nil {
			if id := identify(w.new, n); id != "" {
				free[id] = append(free[id], n)
			}
		}
	}
	for _, known := range older {
		if w.newOf[known] != nil {
			continue
		}
		id := identify(w.old, known)
		if list := free[id]; id != "" && len(list) > 0 {
			w.match(known, list[0])
			free[id] = list[1:]
		}
	}
}

// contentText returns the compared columns of an object that refer to no rows.
func (db *database) contentText(object *object) string {
	var b strings.Builder
	references := object.row.References()
	for _, c := range db.columns[object.table] {
		if len(references[c.Name]) == 0 && !db.tables[object.table].ignores(c.Name) {
			b.WriteString("|" + words(c.Name)(object.row))
		}
	}
	return b.String()
}

// shareNames makes both sides refer to an object by its name after the change, so that a new
// name is a change of that object only.
func (w *databasePair) shareNames() {
	for object, newer := range w.newOf {
		if w.new.tables[newer.table].inline != nil {
			continue // it has no name, but a text
		}
		w.old.names[object.row.UUID] = w.new.names[newer.row.UUID]
	}
}
