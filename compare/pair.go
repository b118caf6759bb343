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

// any returns the object after the change, or that before it.
func (p pair) any() *object { return cmp.Or(p.new, p.old) }

// world is a database before and after.
type world struct {
	old, new *database
	pairs    []pair
	newOf    map[*object]*object // by the object before
	oldOf    map[*object]*object // by the object after
}

// newWorld finds the rows that are one object before and after: rows with one UUID, and
// then, in a database that was made anew, rows of the same owner with the same key, the
// same content or the same external_ids.
func newWorld(older, newer *database) *world {
	w := &world{old: older, new: newer, newOf: map[*object]*object{}, oldOf: map[*object]*object{}}
	for uuid, o := range older.objects {
		if n := newer.objects[uuid]; n != nil && n.table == o.table {
			w.match(o, n)
		}
	}
	for _, table := range w.tableNames() {
		if w.old.tables[table].inline == nil {
			w.matchAll(roots(older.byTable[table]), roots(newer.byTable[table]))
		}
	}
	for _, table := range w.tableNames() {
		if w.new.tables[table].inline != nil {
			continue // it is compared as what its owner holds
		}
		for _, o := range older.byTable[table] {
			if w.newOf[o] == nil {
				w.pairs = append(w.pairs, pair{old: o})
			}
		}
		for _, n := range newer.byTable[table] {
			w.pairs = append(w.pairs, pair{w.oldOf[n], n})
		}
	}
	w.shareNames()
	return w
}

func (w *world) tableNames() []string {
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

func (w *world) match(o, n *object) { w.newOf[o], w.oldOf[n] = n, o }

// matchAll matches objects of the same owner, and then their parts.
func (w *world) matchAll(older, newer []*object) {
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
func (w *world) matchBy(older, newer []*object, identify func(*database, *object) string) {
	free := map[string][]*object{}
	for _, n := range newer {
		if w.oldOf[n] == nil {
			if id := identify(w.new, n); id != "" {
				free[id] = append(free[id], n)
			}
		}
	}
	for _, o := range older {
		if w.newOf[o] != nil {
			continue
		}
		id := identify(w.old, o)
		if list := free[id]; id != "" && len(list) > 0 {
			w.match(o, list[0])
			free[id] = list[1:]
		}
	}
}

// contentText returns the compared columns of an object that refer to no rows.
func (db *database) contentText(o *object) string {
	var b strings.Builder
	references := o.row.References()
	for _, c := range db.columns[o.table] {
		if len(references[c.Name]) == 0 && !db.tables[o.table].ignores(c.Name) {
			b.WriteString("|" + words(c.Name)(o.row))
		}
	}
	return b.String()
}

// shareNames makes both sides refer to an object by one name, that after the change, so
// that a new name is a change of that object only.
func (w *world) shareNames() {
	for o, n := range w.newOf {
		if w.new.tables[n.table].inline != nil {
			continue // it has no name, but a text
		}
		w.old.names[o.row.UUID] = w.new.names[n.row.UUID]
	}
}
