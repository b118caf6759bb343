package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/pkg/ovsdb"
)

// ChangeKind is the kind of a change of a row.
type ChangeKind string

// The kinds of changes.
const (
	Inserted ChangeKind = "inserted"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
	// Present is a row of a transaction that is the whole content of the database.
	Present ChangeKind = "present"
)

// Change is the change that a transaction made to one row.
type Change struct {
	Table, UUID string
	OldNames    []string // before the change, as Selection.Names returns them
	Names       []string // after it
	Kind        ChangeKind
	Columns     []ColumnChange // sorted by name
	Old         ovsdb.Row      // a deleted row as it was
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

// isWanted reports whether the changes of a table are wanted.
func (s *state) isWanted(table string) bool {
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
func (s *state) apply(entry loggedEntry) (*Transaction, error) {
	if entry.schema != nil {
		return nil, s.begin(entry.schema)
	}
	var own struct {
		Date    json.RawMessage `json:"_date"`
		Comment string          `json:"_comment"`
	}
	_ = json.Unmarshal(entry.body, &own) // a member of another type is left out
	if entry.base && own.Date == nil {
		return nil, nil // a new cluster begins with an empty database
	}
	transaction := &Transaction{Number: entry.number, Comment: own.Comment, Schema: s.update}
	transaction.Base = entry.base || s.update != "" || entry.first && compacted.MatchString(own.Comment)
	s.update, transaction.Time = "", parseDate(own.Date)
	if !s.wanted.Until.IsZero() && transaction.Time.After(s.wanted.Until) {
		return nil, errAfterUntil
	}
	finder := entry.rows
	if finder == nil {
		finder = newRowFinder(entry.offset, s.isWanted)
		_, _ = finder.Write(entry.body) // it returns no error
	}
	for _, table := range slices.Sorted(maps.Keys(finder.found)) {
		for _, change := range finder.found[table] {
			transaction.Rows++
			if err := s.change(transaction, entry, table, change, finder.diff); err != nil {
				return nil, err
			}
		}
	}
	return transaction, nil
}

// change applies the change of one row, and appends it to the transaction if it is wanted.
func (s *state) change(transaction *Transaction, entry loggedEntry, change string, c rowChange, diff bool) error {
	place := location{c.offset, c.length}
	id := rowID{change, c.row.String()}
	_, isStored := s.stored[change][c.row]
	isNew := !isStored && s.db.tables[change][id.uuid] == nil
	inFile := entry.offset > 0 || entry.rows != nil
	if isNew && s.isLost(id.uuid) {
		s.unknown++
		return nil
	}
	if isNew && inFile && transaction.Base && !s.wanted.Base {
		s.store(change, c.row, place)
		return nil
	}
	var text []byte
	if entry.rows == nil {
		text = entry.body[c.offset-entry.offset:][:c.length]
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
	described := Change{Table: change, UUID: id.uuid}
	var err error
	switch {
	case columns == nil:
		err = s.delete(id, c.row, &described)
	case isNew:
		s.insert(id, columns, &described)
		if inFile {
			s.store(change, c.row, place)
		} else {
			s.db.tables[change][id.uuid], _ = columnsOf(bytes.Clone(text), nil)
		}
	default:
		copied, _ := columnsOf(bytes.Clone(text), nil)
		err = s.modify(id, c.row, copied, diff, &described)
	}
	if transaction.Base && described.Kind == Inserted {
		described.Kind = Present
	}
	if err == nil && described.Kind != "" && (s.wanted.Accept == nil || s.wanted.Accept(&described)) {
		transaction.Changes = append(transaction.Changes, described)
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
	described.Names = s.namesIn(id, columns)
	described.Columns = s.list(id, columns, func(change *ColumnChange, text string) { change.New = text })
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
	described.Kind, described.Old = Deleted, ovsdb.ParseRow(id.uuid, old)
	described.OldNames = s.namesIn(id, old)
	described.Columns = s.list(id, old, func(change *ColumnChange, text string) { change.Old = text })
	s.db.change(id, nil, false, 0)
	return nil
}

// list returns the columns of a row that differ from their defaults, if they are wanted.
func (s *state) list(id rowID, columns columns, set func(change *ColumnChange, text string)) []ColumnChange {
	var list []ColumnChange
	if s.wanted.Brief {
		return nil
	}
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		change := ColumnChange{Column: column}
		set(&change, printValue(columns[column], s.schema[id.table].Columns[column].Type))
		list = append(list, change)
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
		if kind.holdsSeveral() {
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
	for _, column := range s.wanted.NamedBy {
		if text := s.db.column(id, column); text != nil {
			found[column] = text
		}
	}
	return s.namesIn(id, found)
}

// namesIn returns the names of a row with some columns.
func (s *state) namesIn(id rowID, found columns) []string {
	if s.wanted.Names == nil {
		return nil
	}
	return s.wanted.Names(id.table, ovsdb.ParseRow(id.uuid, found))
}

// column returns the present value of a column, nil for its default.
func (db *database) column(id rowID, column string) json.RawMessage {
	if list := db.sets[id][column]; list != nil {
		return list.text()
	}
	return db.tables[id.table][id.uuid][column]
}

// difference returns the difference from the present value to the given one.
func (l *elementList) difference(value json.RawMessage) json.RawMessage {
	var delta []element
	wanted := newElementList(value, l.isMap)
	for _, element := range wanted.list {
		if i, found := l.index[element.key]; !found || l.list[i].value != element.value {
			delta = append(delta, element)
		}
	}
	for _, element := range l.list {
		if _, stays := wanted.index[element.key]; element.key != "" && !stays {
			delta = append(delta, element)
		}
	}
	return composeElements(delta, l.isMap)
}

// describe prints the elements that a difference adds and removes.
func (l *elementList) describe(delta json.RawMessage) (added, removed []string) {
	for _, element := range parseElements(delta, l.isMap) {
		i, found := l.index[element.key]
		if found {
			removed = append(removed, l.list[i].print(l.isMap))
		}
		if !found || l.list[i].value != element.value {
			added = append(added, element.print(l.isMap))
		}
	}
	return added, removed
}

// rows yields the present rows.
func (s *state) rows(yield func(*Change) error) error {
	for _, table := range slices.Sorted(maps.Keys(s.schema)) {
		if !s.isWanted(table) {
			continue
		}
		uuids := slices.Collect(maps.Keys(s.db.tables[table]))
		for row := range s.stored[table] {
			uuids = append(uuids, row.String())
		}
		slices.Sort(uuids)
		for _, uuid := range uuids {
			change, err := s.present(rowID{table, uuid})
			if err != nil {
				return err
			}
			if s.wanted.Accept != nil && !s.wanted.Accept(change) {
				continue
			}
			if err := yield(change); err != nil {
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
	change := &Change{Table: id.table, UUID: id.uuid, Kind: Present, Names: s.namesIn(id, found)}
	change.Columns = s.list(id, found, func(change *ColumnChange, text string) { change.New = text })
	return change, nil
}
