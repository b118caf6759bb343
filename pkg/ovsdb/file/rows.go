package file

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// isDiff is the member of a transaction that marks its columns as differences
// (ovsdb(5)).
const isDiff = "_is_diff"

// date is the member of a transaction with its time (ovsdb(5)).
const date = "_date"

// The parts of a schema (RFC 7047, 3.2) that can make ovsdb-server refuse rows. The
// types of libovsdb do not fit: they lack maxRows, and a malformed schema makes their
// parser panic.
type (
	tableSchema struct {
		Columns map[string]columnSchema `json:"columns"`
		MaxRows int                     `json:"maxRows"`
		Indexes [][]string              `json:"indexes"`
		Root    bool                    `json:"isRoot"`
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
		RefType  string `json:"refType"`

		Enum       json.RawMessage `json:"enum"`
		MinInteger *float64        `json:"minInteger"`
		MaxInteger *float64        `json:"maxInteger"`
	}
)

// UnmarshalJSON also reads the short form, the name of an atomic type.
func (t *columnType) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &t.Key.Type)
	}
	type long columnType
	return json.Unmarshal(text, (*long)(t))
}

// UnmarshalJSON also reads the short form, the name of an atomic type.
func (t *baseType) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, &t.Type)
	}
	type long baseType
	return json.Unmarshal(text, (*long)(t))
}

func (t columnType) isMap() bool    { return t.Value.Type != "" }
func (t columnType) required() bool { return t.Min == nil || *t.Min > 0 }
func (t columnType) refers() bool   { return t.Key.RefTable != "" || t.Value.RefTable != "" }

// holdsSeveral reports whether a column can hold more than one element. Only such a column
// has a difference in terms of elements (ovsdb_datum_apply_diff() in lib/ovsdb-data.c).
func (t columnType) holdsSeveral() bool {
	limit, isNumber := t.Max.(float64)
	return limit > 1 || !isNumber && t.Max == "unlimited"
}

// database is the content of a database, with its columns as JSON text.
type database struct {
	schema    map[string]tableSchema
	tables    map[string]map[string]columns // by name and UUID
	lost      map[string]int64              // rows that a lost record named, with its offset
	forgotten map[string]bool               // the rows in lost that a later record changed
	removed   map[string]int                // number of rows removed, by "table: reason"
	cut       map[string]int                // number of references removed, by "table.column"
	absent    int                           // number of deletions of rows that do not exist
	strict    bool                          // what ovsdb-server refuses is left out
	refused   int                           // number of tables, rows and values left out for that
	inserted  []rowID                       // by the transaction, if strict
	sets      map[rowID]map[string]*elementList
}

// rowID identifies a row.
type rowID struct{ table, uuid string }

// columns are the columns of a row in the notation of RFC 7047, 5.1.
type columns = map[string]json.RawMessage

func newDatabase(schema []byte) (*database, error) {
	var s struct {
		Tables map[string]tableSchema `json:"tables"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	db := &database{
		schema:    s.Tables,
		tables:    map[string]map[string]columns{},
		forgotten: map[string]bool{},
		removed:   map[string]int{},
		cut:       map[string]int{},
		sets:      map[rowID]map[string]*elementList{},
	}
	for name := range s.Tables {
		db.tables[name] = map[string]columns{}
	}
	return db, nil
}

// applyAll applies the remaining records of a file.
func (db *database) applyAll(scan *scanner) error {
	record, err := scan.next()
	for ; err == nil; record, err = scan.next() {
		db.apply(record.body, record.offset)
	}
	if err != io.EOF {
		return err
	}
	db.composeSets()
	return nil
}

// apply applies one transaction record (ovsdb(5), "Standalone Format"). Since OVS
// 2.15, records are marked with "_is_diff" and give columns as differences.
func (db *database) apply(body []byte, offset int64) {
	var transaction map[string]json.RawMessage
	if json.Unmarshal(body, &transaction) != nil {
		return
	}
	differs := string(transaction[isDiff]) == "true"
	for name, text := range transaction {
		var changes map[string]columns
		if _, known := db.schema[name]; db.strict && !known && !strings.HasPrefix(name, "_") {
			db.refused++
		}
		if db.tables[name] == nil || json.Unmarshal(text, &changes) != nil {
			continue
		}
		for uuid, change := range changes {
			if db.strict && !uuidText.MatchString(uuid) {
				db.refused++
				continue
			}
			db.change(rowID{name, uuid}, change, differs, offset)
		}
	}
	if db.strict {
		db.checkInserted()
	}
}

// change applies the change of one row, nil for its deletion.
func (db *database) change(id rowID, change columns, differs bool, offset int64) {
	table := db.tables[id.table]
	if db.strict {
		db.strip(id, change)
	}
	lostAt, lost := db.lost[id.uuid]
	switch old := table[id.uuid]; {
	case change == nil && old == nil && !lost:
		db.absent++
	case change == nil:
		delete(table, id.uuid)
		delete(db.sets, id)
	case old == nil && lost && offset >= lostAt:
		if !db.forgotten[id.uuid] {
			db.forgotten[id.uuid] = true
			db.removed[id.table+": changed later, but inserted in a lost record"]++
		}
	case old == nil:
		table[id.uuid] = change
		if db.strict {
			db.inserted = append(db.inserted, id)
		}
	default:
		db.modify(id, old, change, differs)
	}
}

// parseDate returns the time of a transaction, which its record has in milliseconds or, by
// older versions of ovsdb-server, in seconds (print_db_changes() in ovsdb/ovsdb-tool.c);
// zero for another text, and for a year of five digits, which has no place in JSON (RFC 3339).
func parseDate(text []byte) time.Time {
	number, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return time.Time{}
	}
	if number < math.MaxInt32 {
		number *= 1000
	}
	if at := time.UnixMilli(number); at.UTC().Year() < 9999 {
		return at
	}
	return time.Time{}
}

func (db *database) modify(id rowID, old, change columns, differs bool) {
	for column, value := range change {
		kind := db.schema[id.table].Columns[column].Type
		if differs && kind.holdsSeveral() {
			db.set(id, column, old[column], kind.isMap()).apply(value)
			continue
		}
		old[column] = value
		delete(db.sets[id], column)
	}
}

// set returns the elements of a column. They are parsed only once, when the column
// first changes: a bridge may get a thousand ports one after the other.
func (db *database) set(id rowID, column string, text json.RawMessage, isMap bool) *elementList {
	if db.sets[id] == nil {
		db.sets[id] = map[string]*elementList{}
	}
	if db.sets[id][column] == nil {
		db.sets[id][column] = newElementList(text, isMap)
	}
	return db.sets[id][column]
}

// composeSets writes the columns whose elements were parsed.
func (db *database) composeSets() {
	for id, sets := range db.sets {
		for column, list := range sets {
			db.tables[id.table][id.uuid][column] = list.text()
		}
	}
	clear(db.sets)
}

// element is an element of a set, or a pair of a map.
type element struct{ key, value string }

// parseElements returns the elements of a <value> (RFC 7047, 5.1). A missing
// value has none.
func parseElements(text json.RawMessage, isMap bool) []element {
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
	for _, raw := range members {
		var pair []json.RawMessage
		if !isMap {
			found = append(found, element{key: string(raw)})
		} else if json.Unmarshal(raw, &pair) == nil && len(pair) == 2 {
			found = append(found, element{string(pair[0]), string(pair[1])})
		}
	}
	return found
}

// composeElements reverses parseElements.
func composeElements(elements []element, isMap bool) json.RawMessage {
	texts := make([]string, len(elements))
	for i, element := range elements {
		texts[i] = element.key
		if isMap {
			texts[i] = "[" + element.key + "," + element.value + "]"
		}
	}
	tag := "set"
	if isMap {
		tag = "map"
	}
	return json.RawMessage(`["` + tag + `",[` + strings.Join(texts, ",") + `]]`)
}

// elementList is the elements of a set or map in their order.
type elementList struct {
	list  []element
	index map[string]int // in list, by key, of the elements that are not removed
	isMap bool
}

func newElementList(text json.RawMessage, isMap bool) *elementList {
	list := &elementList{list: parseElements(text, isMap), isMap: isMap, index: map[string]int{}}
	for i, element := range list.list {
		list.index[element.key] = i
	}
	return list
}

// apply applies a difference: an element in both is removed, a new one is added,
// and a key with another value gets that value.
func (l *elementList) apply(diff json.RawMessage) {
	for _, element := range parseElements(diff, l.isMap) {
		i, found := l.index[element.key]
		switch {
		case !found:
			l.index[element.key] = len(l.list)
			l.list = append(l.list, element)
		case l.list[i].value == element.value:
			l.list[i].key = "" // no JSON text is empty
			delete(l.index, element.key)
		default:
			l.list[i].value = element.value
		}
	}
}

// compact forgets removed elements once they are the larger part.
func (l *elementList) compact() {
	if len(l.list) > 2*len(l.index)+16 {
		*l = *newElementList(l.text(), l.isMap)
	}
}

func (l *elementList) text() json.RawMessage {
	return composeElements(slices.DeleteFunc(slices.Clone(l.list), func(element element) bool { return element.key == "" }), l.isMap)
}
