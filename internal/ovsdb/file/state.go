package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ovs-offline/internal/ovsdb"
)

// ChangeKind is what a transaction did to a row.
type ChangeKind string

// The kinds of changes.
const (
	Inserted ChangeKind = "inserted"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
	// Present is a row of a transaction that is the whole content of the database.
	Present ChangeKind = "present"
)

// Change is what a transaction did to one row.
type Change struct {
	Table, UUID string
	OldNames    []string // before the change, as ovsdb.Row.RecordNames returns them
	Names       []string // after it
	Kind        ChangeKind
	Columns     []ColumnChange // sorted by name
}

// ColumnChange is the change of a column, in the notation of ovs-vsctl. Old is empty for
// an inserted row, and New for a deleted one.
type ColumnChange struct {
	Column, Old, New string
	// Added and Removed are elements, or pairs of a map, of a column that can hold several;
	// Old and New are empty then.
	Added, Removed []string
}

// state is the content of a database between two transactions.
type state struct {
	file   randomAccess // nil if the rows can't be read again
	wanted Selection
	schema map[string]tableSchema
	stored map[string]map[binaryUUID]location // rows that were not changed since they were inserted
	db     *database                          // all other rows
	// isLost reports whether a record that was left out named a row.
	isLost  func(uuid string) bool
	unknown int    // number of changes of such rows that were left out
	update  string // the version of a schema that the next transaction is in
}

// location is where the columns of a row are in the file.
type location struct {
	offset int64
	length uint32
}

func newState(file randomAccess, wanted Selection) *state { return &state{file: file, wanted: wanted} }

// wants reports whether the changes of a table are wanted.
func (s *state) wants(table string) bool {
	return s.schema[table].Columns != nil && (len(s.wanted.Tables) == 0 || slices.Contains(s.wanted.Tables, table))
}

// errAfterUntil reports a transaction after the last wanted one. It was not applied.
var errAfterUntil = errors.New("after the last wanted transaction")

// begin begins an empty database.
func (s *state) begin(schema []byte) error {
	head, err := parseSchemaHead(schema)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if s.db != nil {
		s.update = head.Version
	}
	if s.db, err = newDatabase(schema); err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	s.schema, s.stored = s.db.schema, map[string]map[binaryUUID]location{}
	return nil
}

// apply applies an entry, and describes it; nil for a schema and an empty snapshot.
func (s *state) apply(e loggedEntry) (*Transaction, error) {
	if e.schema != nil {
		return nil, s.begin(e.schema)
	}
	var own struct {
		Date    json.RawMessage `json:"_date"`
		Comment string          `json:"_comment"`
	}
	_ = json.Unmarshal(e.body, &own) // a member of another type is left out
	if e.base && own.Date == nil {
		return nil, nil // a new cluster begins with an empty database
	}
	t := &Transaction{Number: e.number, Comment: own.Comment, Schema: s.update}
	t.Base = e.base || s.update != "" || e.first && compacted.MatchString(own.Comment)
	s.update, s.db.changed = "", time.Time{}
	s.db.noteDate(own.Date)
	t.Time = s.db.changed
	if !s.wanted.Until.IsZero() && t.Time.After(s.wanted.Until) {
		return nil, errAfterUntil
	}
	finder := e.rows
	if finder == nil {
		finder = newRowFinder(e.offset, s.wants)
		_, _ = finder.Write(e.body) // it returns no error
	}
	for _, table := range slices.Sorted(maps.Keys(finder.found)) {
		for _, c := range finder.found[table] {
			t.Rows++
			if err := s.change(t, e, table, c, finder.diff); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// change applies the change of one row, and appends it to the transaction if it is wanted.
func (s *state) change(t *Transaction, e loggedEntry, table string, c change, diff bool) error {
	place := location{c.offset, c.length}
	id := rowID{table, c.row.String()}
	_, isStored := s.stored[table][c.row]
	isNew := !isStored && s.db.tables[table][id.uuid] == nil
	inFile := e.offset > 0 || e.rows != nil
	if isNew && s.isLost(id.uuid) {
		s.unknown++
		return nil
	}
	if isNew && inFile && t.Base && !s.wanted.Base {
		s.store(table, c.row, place)
		return nil
	}
	var text []byte
	if e.rows == nil {
		text = e.body[c.offset-e.offset:][:c.length]
	} else {
		var err error
		if text, err = s.read(place); err != nil {
			return err
		}
	}
	columns, ok := columnsOf(text, nil)
	if !ok {
		return nil
	}
	described := Change{Table: table, UUID: id.uuid}
	var err error
	switch {
	case columns == nil:
		err = s.delete(id, c.row, &described)
	case isNew:
		s.insert(id, columns, &described)
		if inFile {
			s.store(table, c.row, place)
		} else {
			s.db.tables[table][id.uuid], _ = columnsOf(bytes.Clone(text), nil)
		}
	default:
		copied, _ := columnsOf(bytes.Clone(text), nil)
		err = s.modify(id, c.row, copied, diff, &described)
	}
	if t.Base && described.Kind == Inserted {
		described.Kind = Present
	}
	if err == nil && described.Kind != "" && (s.wanted.Accept == nil || s.wanted.Accept(&described)) {
		t.Changes = append(t.Changes, described)
	}
	return err
}

func (s *state) store(table string, row binaryUUID, place location) {
	if s.stored[table] == nil {
		s.stored[table] = map[binaryUUID]location{}
	}
	s.stored[table][row] = place
}

func (s *state) read(at location) ([]byte, error) {
	text, err := readSpan(s.file, span{at.offset, int64(at.length)})
	if err != nil {
		return nil, fmt.Errorf("reading a row at offset %d: %w", at.offset, err)
	}
	return text, nil
}

// load makes the columns of a row available in s.db.
func (s *state) load(id rowID, row binaryUUID) error {
	place, isStored := s.stored[id.table][row]
	if !isStored {
		return nil
	}
	text, err := s.read(place)
	if err != nil {
		return err
	}
	delete(s.stored[id.table], row)
	if columns, ok := columnsOf(text, nil); ok && columns != nil {
		s.db.tables[id.table][id.uuid] = columns
	}
	return nil
}

func (s *state) insert(id rowID, columns columns, described *Change) {
	described.Kind = Inserted
	described.Names = ovsdb.ParseRow(id.uuid, columns).RecordNames(id.table)
	described.Columns = s.list(id, columns, func(c *ColumnChange, text string) { c.New = text })
}

func (s *state) delete(id rowID, row binaryUUID, described *Change) error {
	if err := s.load(id, row); err != nil {
		return err
	}
	old := s.db.tables[id.table][id.uuid]
	if old == nil {
		return nil // its insertion was in a record that is lost
	}
	for column := range s.db.sets[id] {
		old[column] = s.db.column(id, column)
	}
	described.Kind = Deleted
	described.OldNames = ovsdb.ParseRow(id.uuid, old).RecordNames(id.table)
	described.Columns = s.list(id, old, func(c *ColumnChange, text string) { c.Old = text })
	s.db.change(id, nil, false, 0)
	return nil
}

// list returns the columns of a row that differ from their defaults.
func (s *state) list(id rowID, columns columns, set func(c *ColumnChange, text string)) []ColumnChange {
	var list []ColumnChange
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		c := ColumnChange{Column: column}
		set(&c, printValue(columns[column], s.schema[id.table].Columns[column].Type))
		list = append(list, c)
	}
	return list
}

func (s *state) modify(id rowID, row binaryUUID, change columns, diff bool, described *Change) error {
	if err := s.load(id, row); err != nil {
		return err
	}
	described.Kind = Modified
	described.OldNames = s.names(id)
	for _, column := range slices.Sorted(maps.Keys(change)) {
		kind := s.schema[id.table].Columns[column].Type
		c := ColumnChange{Column: column}
		if kind.several() {
			list := s.db.set(id, column, s.db.tables[id.table][id.uuid][column], kind.isMap())
			delta := change[column]
			if !diff {
				delta = list.difference(change[column])
			}
			c.Added, c.Removed = list.describe(delta)
			list.apply(delta)
			list.compact()
			s.db.tables[id.table][id.uuid][column] = nil // its text is in s.db.sets
		} else {
			c.Old = printValue(s.db.column(id, column), kind)
			c.New = printValue(change[column], kind)
			s.db.modify(id, s.db.tables[id.table][id.uuid], columns{column: change[column]}, diff)
		}
		described.Columns = append(described.Columns, c)
	}
	described.Names = s.names(id)
	return nil
}

// names returns the names of a row in s.db.
func (s *state) names(id rowID) []string {
	found := columns{}
	for _, column := range ovsdb.NamingColumns() {
		if text := s.db.column(id, column); text != nil {
			found[column] = text
		}
	}
	return ovsdb.ParseRow(id.uuid, found).RecordNames(id.table)
}

// column returns the present value of a column, nil for its default.
func (db *database) column(id rowID, column string) json.RawMessage {
	if list := db.sets[id][column]; list != nil {
		return list.text()
	}
	return db.tables[id.table][id.uuid][column]
}

// difference returns what makes the given value of the present one.
func (l *elementList) difference(value json.RawMessage) json.RawMessage {
	var delta []element
	wanted := newElementList(value, l.isMap)
	for _, e := range wanted.list {
		if i, found := l.index[e.key]; !found || l.list[i].value != e.value {
			delta = append(delta, e)
		}
	}
	for _, e := range l.list {
		if _, stays := wanted.index[e.key]; e.key != "" && !stays {
			delta = append(delta, e)
		}
	}
	return composeElements(delta, l.isMap)
}

// describe prints the elements that a difference adds and removes.
func (l *elementList) describe(delta json.RawMessage) (added, removed []string) {
	for _, d := range parseElements(delta, l.isMap) {
		i, found := l.index[d.key]
		if found {
			removed = append(removed, l.list[i].print(l.isMap))
		}
		if !found || l.list[i].value != d.value {
			added = append(added, d.print(l.isMap))
		}
	}
	return added, removed
}

// rows yields the present rows.
func (s *state) rows(yield func(*Change) error) error {
	for _, table := range slices.Sorted(maps.Keys(s.schema)) {
		if !s.wants(table) {
			continue
		}
		uuids := slices.Collect(maps.Keys(s.db.tables[table]))
		for row := range s.stored[table] {
			uuids = append(uuids, row.String())
		}
		slices.Sort(uuids)
		for _, uuid := range uuids {
			c, err := s.present(rowID{table, uuid})
			if err != nil {
				return err
			}
			if s.wanted.Accept != nil && !s.wanted.Accept(c) {
				continue
			}
			if err := yield(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// present describes a present row.
func (s *state) present(id rowID) (*Change, error) {
	found := columns{}
	row, _ := parseUUID([]byte(id.uuid)) // it was made from one
	if place, isStored := s.stored[id.table][row]; isStored {
		text, err := s.read(place)
		if err != nil {
			return nil, err
		}
		found, _ = columnsOf(text, nil)
	}
	for column := range s.db.tables[id.table][id.uuid] {
		found[column] = s.db.column(id, column)
	}
	c := &Change{Table: id.table, UUID: id.uuid, Kind: Present, Names: ovsdb.ParseRow(id.uuid, found).RecordNames(id.table)}
	c.Columns = s.list(id, found, func(c *ColumnChange, text string) { c.New = text })
	return c, nil
}
