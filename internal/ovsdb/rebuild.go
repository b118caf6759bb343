package ovsdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// rebuild replaces the transactions in out by a single one that holds what they
// add up to. It is for databases that lost a record in the middle. The later
// transactions build on the lost one, and ovsdb-server (3.1, as tried) stops
// for good, without a word to its clients, at one that
//
//   - deletes a row that does not exist,
//   - leaves a strong reference to a row that does not exist,
//   - leaves two rows with the same key in an index, or more rows in a table
//     than it may have.
//
// So the rows are added up here, leniently, and then made consistent: what
// cannot stand is taken out and told. The lost changes stay lost: so does a row
// that the lost text named and that no record before it brought, of which later
// changes would make a row of few columns. lost gives those rows, with the
// offset in out at which the lost record would stand.
func rebuild(ctx context.Context, out *output, lost map[string]int64) ([]string, error) {
	db, end, err := addUp(ctx, out, lost)
	if err != nil {
		return nil, err
	}
	if err := db.reconcile(ctx); err != nil {
		return nil, err
	}
	if err := out.cut(end); err != nil {
		return nil, err
	}
	out.starts = []int64{0}
	if body := db.transaction(); body != nil {
		if err := out.add(body); err != nil {
			return nil, err
		}
	}
	return db.remarks(), nil
}

func (db *database) applyAll(ctx context.Context, scan *scanner) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := scan.next()
		if err == io.EOF {
			db.settle()
			return nil
		}
		if err != nil {
			return err
		}
		body := r.body
		if picked, ok := scan.onward.(*picker); ok && r.passed {
			body = picked.take()
		}
		db.apply(body, r.offset)
	}
}

// isDiff is the member of a transaction that says that its columns are
// differences (ovsdb(5)).
const isDiff = "_is_diff"

// The parts of a schema (RFC 7047, 3.2) that say what ovsdb-server refuses.
type (
	tableSchema struct {
		Columns map[string]columnSchema `json:"columns"`
		MaxRows int                     `json:"maxRows"`
		Indexes [][]string              `json:"indexes"`
	}
	columnSchema struct {
		Type      columnType `json:"type"`
		Ephemeral bool       `json:"ephemeral"`
	}
	columnType struct {
		Key   baseType `json:"key"`
		Value baseType `json:"value"`
		Min   *int     `json:"min"`
		Max   any      `json:"max"` // a number or "unlimited"
	}
	baseType struct {
		Type     string `json:"type"`
		RefTable string `json:"refTable"`
	}
)

// UnmarshalJSON also takes the short form: the name of an atomic type.
func (t *columnType) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &t.Key.Type)
	}
	type plain columnType
	return json.Unmarshal(text, (*plain)(t))
}

// UnmarshalJSON also takes the short form: the name of an atomic type.
func (t *baseType) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &t.Type)
	}
	type plain baseType
	return json.Unmarshal(text, (*plain)(t))
}

func (t columnType) isMap() bool    { return t.Value.Type != "" }
func (t columnType) required() bool { return t.Min == nil || *t.Min > 0 }

// several tells whether a column holds more than one element. Only then is a
// difference one of elements (ovsdb_datum_apply_diff() in lib/ovsdb-data.c).
func (t columnType) several() bool {
	switch most := t.Max.(type) {
	case float64:
		return most > 1
	default:
		return most == "unlimited"
	}
}

// database is the content of a database, kept as the JSON text of its columns.
type database struct {
	schema map[string]tableSchema
	tables map[string]map[string]columns
	lost   map[string]int64 // rows that a lost record named, and its place
	told   map[string]bool  // those of them that a later record changed
	gone   map[string]int   // rows taken out, by "table: reason"
	cut    map[string]int   // references taken out, by "table.column"
	sets   map[place]map[string]*members
}

type columns map[string]json.RawMessage

func newDatabase(schema []byte) (*database, error) {
	var s struct {
		Tables map[string]tableSchema `json:"tables"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	db := &database{
		schema: s.Tables,
		tables: map[string]map[string]columns{},
		told:   map[string]bool{},
		gone:   map[string]int{},
		cut:    map[string]int{},
		sets:   map[place]map[string]*members{},
	}
	for name := range s.Tables {
		db.tables[name] = map[string]columns{}
	}
	return db, nil
}

// apply adds one transaction record up (ovsdb(5), "Standalone Format"; with
// "_is_diff", written since 2.15, columns are given as differences).
func (db *database) apply(body []byte, offset int64) {
	var txn map[string]member
	if json.Unmarshal(body, &txn) != nil {
		return
	}
	differs := txn[isDiff].isTrue
	forgotten := func(uuid string) bool {
		place, named := db.lost[uuid]
		return named && offset >= place
	}
	for name, m := range txn {
		table, known := db.tables[name]
		if !known {
			continue
		}
		for uuid, change := range m.rows {
			switch old := table[uuid]; {
			case change == nil:
				delete(table, uuid)
				delete(db.sets, place{name, uuid})
			case old == nil && forgotten(uuid):
				db.forget(name, uuid)
			case old == nil:
				table[uuid] = change
			default:
				db.modify(place{name, uuid}, old, change, differs)
			}
		}
	}
}

// member is one of a transaction: the changed rows of a table, or what is said
// of the transaction.
type member struct {
	rows   map[string]columns
	isTrue bool
}

// UnmarshalJSON takes anything: what is no row changes none.
func (m *member) UnmarshalJSON(text []byte) error {
	m.isTrue = string(text) == "true"
	if text[0] == '{' && json.Unmarshal(text, &m.rows) != nil {
		m.rows = nil
	}
	return nil
}

// forget counts a row whose insertion is lost, once.
func (db *database) forget(table, uuid string) {
	if !db.told[uuid] {
		db.told[uuid] = true
		db.gone[table+": changed later, but inserted in a lost record"]++
	}
}

func (db *database) modify(row place, old, change columns, differs bool) {
	for column, value := range change {
		kind := db.schema[row.table].Columns[column].Type
		if differs && kind.several() {
			db.set(row, column, old[column], kind.isMap()).apply(value)
			continue
		}
		old[column] = value
		delete(db.sets[row], column)
	}
}

// set is a column of several elements, taken apart when it first changes: a
// bridge may get a thousand ports, one after the other.
func (db *database) set(row place, column string, text json.RawMessage, isMap bool) *members {
	if db.sets[row] == nil {
		db.sets[row] = map[string]*members{}
	}
	if db.sets[row][column] == nil {
		db.sets[row][column] = newMembers(text, isMap)
	}
	return db.sets[row][column]
}

// settle writes the columns that were taken apart.
func (db *database) settle() {
	for row, sets := range db.sets {
		for column, m := range sets {
			db.tables[row.table][row.uuid][column] = m.text()
		}
	}
	clear(db.sets)
}

// element is one member of a set, or one pair of a map.
type element struct{ key, value string }

// elements takes a <value> (RFC 7047, 5.1) apart. An absent one is empty.
func elements(text json.RawMessage, isMap bool) []element {
	var tag string
	var members []json.RawMessage
	parts := []json.RawMessage{}
	if json.Unmarshal(text, &parts) != nil || len(parts) != 2 || json.Unmarshal(parts[0], &tag) != nil ||
		tag == "uuid" || json.Unmarshal(parts[1], &members) != nil {
		if len(text) == 0 {
			return nil
		}
		return []element{{key: string(text)}}
	}
	found := make([]element, 0, len(members))
	for _, member := range members {
		var pair []json.RawMessage
		if !isMap {
			found = append(found, element{key: string(member)})
		} else if json.Unmarshal(member, &pair) == nil && len(pair) == 2 {
			found = append(found, element{string(pair[0]), string(pair[1])})
		}
	}
	return found
}

// compose is the opposite of elements.
func compose(members []element, isMap bool) json.RawMessage {
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = m.key
		if isMap {
			texts[i] = "[" + m.key + "," + m.value + "]"
		}
	}
	tag := "set"
	if isMap {
		tag = "map"
	}
	return json.RawMessage(`["` + tag + `",[` + strings.Join(texts, ",") + `]]`)
}

// members are the elements of a set or map, in their order.
type members struct {
	list  []element
	place map[string]int // in list, of those that are there
	isMap bool
}

func newMembers(text json.RawMessage, isMap bool) *members {
	m := &members{list: elements(text, isMap), isMap: isMap, place: map[string]int{}}
	for i, one := range m.list {
		m.place[one.key] = i
	}
	return m
}

// apply changes them by a difference: an element that is in both goes, one that
// is new comes, and a key with another value takes that value.
func (m *members) apply(diff json.RawMessage) {
	for _, d := range elements(diff, m.isMap) {
		i, there := m.place[d.key]
		switch {
		case !there:
			m.place[d.key] = len(m.list)
			m.list = append(m.list, d)
		case m.list[i].value == d.value:
			m.list[i].key = "" // no JSON text is empty
			delete(m.place, d.key)
		default:
			m.list[i].value = d.value
		}
	}
}

func (m *members) text() json.RawMessage {
	return compose(slices.DeleteFunc(slices.Clone(m.list), func(e element) bool { return e.key == "" }), m.isMap)
}

// place is where a row is.
type place struct{ table, uuid string }

// reconcile takes out what ovsdb-server would refuse, until nothing is left.
func (db *database) reconcile(ctx context.Context) error {
	var pending []place
	for table, rows := range db.tables {
		for uuid := range rows {
			pending = append(pending, place{table, uuid})
		}
	}
	var refer referrers
	const rounds = 100 // a reference that was taken out can make a row like another: real ones take two
	for range rounds {
		for len(pending) > 0 {
			removed, err := db.resolveAll(ctx, pending)
			if err != nil {
				return err
			}
			pending = refer.to(db, removed)
		}
		var removed []place
		for _, table := range slices.Sorted(maps.Keys(db.tables)) {
			removed = append(removed, db.thin(table)...)
		}
		if len(removed) == 0 {
			return nil
		}
		pending = refer.to(db, removed)
	}
	return fmt.Errorf("%w: what is left after a lost record can't be made consistent; collect it again", ErrNotDatabase)
}

// resolveAll takes references to absent rows out of some rows, and removes those
// that can't stand without them, which it returns.
func (db *database) resolveAll(ctx context.Context, rows []place) (removed []place, err error) {
	for _, p := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if r := db.tables[p.table][p.uuid]; r != nil && !db.resolve(p.table, r) {
			db.remove(p.table, p.uuid, "without a row that it needs")
			removed = append(removed, p)
		}
	}
	return removed, nil
}

// referrers are the rows that refer to a row, by its UUID. They are looked for
// once, when the first row is removed.
type referrers struct{ byTarget map[string][]place }

func (r *referrers) to(db *database, removed []place) []place {
	if len(removed) > 0 && r.byTarget == nil {
		r.byTarget = map[string][]place{}
		for table, rows := range db.tables {
			for uuid, row := range rows {
				for _, target := range db.targets(table, row) {
					r.byTarget[target] = append(r.byTarget[target], place{table, uuid})
				}
			}
		}
	}
	var rows []place
	for _, p := range removed {
		rows = append(rows, r.byTarget[p.uuid]...)
	}
	return rows
}

// targets are the UUIDs that a row refers to.
func (db *database) targets(table string, r columns) []string {
	var list []string
	for column, schema := range db.schema[table].Columns {
		kind := schema.Type
		if kind.Key.RefTable == "" && kind.Value.RefTable == "" {
			continue
		}
		for _, m := range elements(r[column], kind.isMap()) {
			for _, atom := range []string{m.key, m.value} {
				if uuid, ok := uuidOf(atom); ok {
					list = append(list, uuid)
				}
			}
		}
	}
	return list
}

// uuidOf reads a UUID as RFC 7047, 5.1, writes it.
func uuidOf(atom string) (uuid string, ok bool) {
	var pair []string
	if json.Unmarshal([]byte(atom), &pair) != nil || len(pair) != 2 {
		return "", false
	}
	return pair[1], true
}

func (db *database) remove(table, uuid, why string) {
	delete(db.tables[table], uuid)
	db.gone[table+": "+why]++
}

// resolve takes the references to absent rows out of a row. It reports whether
// the row can stand without them.
func (db *database) resolve(table string, r columns) bool {
	for column, schema := range db.schema[table].Columns {
		kind := schema.Type
		if kind.Key.RefTable == "" && kind.Value.RefTable == "" {
			continue
		}
		members := elements(r[column], kind.isMap())
		kept := slices.DeleteFunc(slices.Clone(members), func(m element) bool {
			return !db.refers(kind.Key, m.key) || kind.isMap() && !db.refers(kind.Value, m.value)
		})
		if kind.required() && len(kept) == 0 {
			return false
		}
		if len(kept) < len(members) {
			db.cut[table+"."+column] += len(members) - len(kept)
			r[column] = compose(kept, kind.isMap())
		}
	}
	return true
}

// refers tells whether an atom points to a row that is there, or to none.
func (db *database) refers(kind baseType, atom string) bool {
	table, known := db.tables[kind.RefTable]
	if !known {
		return true
	}
	uuid, ok := uuidOf(atom)
	return ok && table[uuid] != nil
}

// thin removes rows that double another one's index or exceed the table's
// size: first those with the fewest columns, which are likely to be later
// changes to a row whose insertion was lost. It returns what it removed.
func (db *database) thin(table string) (removed []place) {
	rows := db.tables[table]
	schema := db.schema[table]
	remove := func(uuid, why string) {
		db.remove(table, uuid, why)
		removed = append(removed, place{table, uuid})
	}
	uuids := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(rows[b]), len(rows[a])), strings.Compare(a, b))
	})
	for _, index := range schema.Indexes {
		seen := map[string]bool{}
		for _, uuid := range uuids {
			r, there := rows[uuid]
			if !there {
				continue
			}
			key := indexKey(r, index)
			if seen[key] {
				remove(uuid, "with the key of another row")
			}
			seen[key] = true
		}
	}
	left := 0
	for _, uuid := range uuids {
		if _, there := rows[uuid]; !there {
			continue
		}
		if left++; schema.MaxRows > 0 && left > schema.MaxRows {
			remove(uuid, "more than the table may hold")
		}
	}
	return removed
}

func indexKey(r columns, index []string) string {
	var key []string
	for _, column := range index {
		key = append(key, string(r[column]))
	}
	return strings.Join(key, "\n")
}

// transaction writes all rows as one record, or nil when there are none.
func (db *database) transaction() []byte {
	content := map[string]map[string]columns{}
	for name, rows := range db.tables {
		if len(rows) > 0 {
			content[name] = rows
		}
	}
	if len(content) == 0 {
		return nil
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(content) != nil {
		return nil
	}
	return body.Bytes()
}

func (db *database) remarks() []string {
	said := []string{"because a record in the middle is lost, the database is served as the sum of the others; " +
		"what changed in the lost one is missing"}
	for _, where := range slices.Sorted(maps.Keys(db.gone)) {
		said = append(said, fmt.Sprintf("%s left out of table %s", count(db.gone[where], "row", "rows"), where))
	}
	for _, where := range slices.Sorted(maps.Keys(db.cut)) {
		said = append(said, fmt.Sprintf("%s to lost rows taken out of %s",
			count(db.cut[where], "reference", "references"), where))
	}
	return said
}
