package file

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// rebuild replaces the transactions in out with a single one that has the same result.
// It is for databases that lost a record in the middle. Later transactions build on the
// lost one, and ovsdb-server (3.1) stops for good, without an error for its clients, at
// a transaction that
//
//   - deletes a row that does not exist,
//   - leaves a strong reference to a row that does not exist,
//   - leaves two rows with the same key in an index, or more rows in a table
//     than its maximum.
//
// So rebuild applies the transactions without these checks, and then makes the rows
// consistent: rows and references that break a rule are removed, and a remark counts
// them. The lost changes stay lost. A row that the lost record named and that no
// earlier record inserted is lost as well: later changes alone would result in a row
// with few columns. lost holds these rows, with the offset in out at which the lost
// record would be.
//
// Without a lost record, rebuild leaves a database as it is, without a remark, unless
// ovsdb-server would stop in it: a record with a wrong sum may be a damaged one.
func rebuild(ctx context.Context, out *output, lost map[string]int64, isLost bool) ([]string, error) {
	db, end, err := load(ctx, out, lost, true)
	if err != nil {
		return nil, err
	}
	if err := db.reconcile(ctx); err != nil {
		return nil, err
	}
	if !isLost && len(db.removed)+len(db.cut)+db.absent+db.refused == 0 {
		return nil, nil
	}
	if err := out.cut(end); err != nil {
		return nil, err
	}
	out.schemas = []int64{0}
	if err := db.write(out, ""); err != nil {
		return nil, err
	}
	why := "because a record in the middle is lost, the database is served with only the other records; " +
		"the changes of the lost record are missing"
	if !isLost {
		why = "because a damaged record contradicts others, the database is served without what it contradicts"
	}
	return append([]string{why}, db.remarks()...), nil
}

// write writes all rows as one record, or nothing if there are none. The record has the comment, if
// there is one.
func (db *database) write(out *output, comment string) error {
	maps.DeleteFunc(db.tables, func(_ string, rows map[string]columns) bool { return len(rows) == 0 })
	if len(db.tables) == 0 {
		return nil
	}
	record := map[string]any{}
	for table, rows := range db.tables {
		record[table] = rows
	}
	if comment != "" {
		record["_comment"] = comment
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record); err != nil {
		return fmt.Errorf("%w: %w", ErrNotDatabase, err)
	}
	return out.add(body.Bytes())
}

// remarks describes what reconcile removed.
func (db *database) remarks() (remarks []string) {
	for _, reason := range slices.Sorted(maps.Keys(db.removed)) {
		remarks = append(remarks, fmt.Sprintf("%s left out of table %s", phrase.Count(db.removed[reason], "row"), reason))
	}
	for _, column := range slices.Sorted(maps.Keys(db.cut)) {
		remarks = append(remarks, fmt.Sprintf("%s to lost rows removed from %s",
			phrase.Count(db.cut[column], "reference"), column))
	}
	if db.refused > 0 {
		remarks = append(remarks, phrase.Count(db.refused, "element")+" (tables, rows or values) left out that the schema does not allow")
	}
	if db.absent > 0 {
		remarks = append(remarks, phrase.Count(db.absent, "deletion")+" of rows that no record inserts left out")
	}
	return remarks
}

// reconcile removes rows and references that ovsdb-server refuses, until none is left.
func (db *database) reconcile(ctx context.Context) error {
	const rounds = 100 // one removal can require another; real databases take three rounds
	for range rounds {
		removed, err := db.resolveAll(ctx)
		if err != nil {
			return err
		}
		if removed > 0 {
			continue // the keys of rows are final only once their references are
		}
		for table := range db.tables {
			removed += db.removeExcess(table)
		}
		if removed == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: what is left after a lost record cannot be made consistent; collect it again", ErrNotDatabase)
}

// resolveAll removes references to missing rows, and the rows that require such a
// reference. It returns the number of removed rows.
func (db *database) resolveAll(ctx context.Context) (removed int, err error) {
	for table, rows := range db.tables {
		for uuid, row := range rows {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			if !db.resolve(table, row) {
				db.remove(table, uuid, "without a row that it needs")
				removed++
			}
		}
	}
	return removed, nil
}

// resolve removes the references to missing rows from a row. It reports whether
// the schema allows the row without them.
func (db *database) resolve(table string, columns columns) bool {
	for column, schema := range db.schema[table].Columns {
		kind := schema.Type
		if !kind.refers() {
			continue
		}
		elements := parseElements(columns[column], kind.isMap())
		valid := slices.DeleteFunc(slices.Clone(elements), func(element element) bool {
			return !db.resolves(kind.Key, element.key) || kind.isMap() && !db.resolves(kind.Value, element.value)
		})
		if kind.required() && len(valid) == 0 {
			return false
		}
		if len(valid) < len(elements) {
			db.cut[table+"."+column] += len(elements) - len(valid)
			columns[column] = composeElements(valid, kind.isMap())
		}
	}
	return true
}

// resolves reports whether an atom is not a reference, or refers to a row that exists.
func (db *database) resolves(kind baseType, atom string) bool {
	table, known := db.tables[kind.RefTable]
	if !known {
		return true
	}
	var pair []string // "uuid" and the UUID (RFC 7047, 5.1)
	return json.Unmarshal([]byte(atom), &pair) == nil && len(pair) == 2 && table[pair[1]] != nil
}

func (db *database) remove(table, uuid, reason string) {
	delete(db.tables[table], uuid)
	db.removed[table+": "+reason]++
}

// removeExcess removes rows with the key of another row, and rows beyond the
// maximum of the table. It keeps the rows with the most columns. It returns the
// number of removed rows.
func (db *database) removeExcess(table string) int {
	rows, schema := db.tables[table], db.schema[table]
	before := len(rows)
	uuids := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(rows[b]), len(rows[a])), strings.Compare(a, b))
	})
	for _, index := range schema.Indexes {
		seen := map[string]bool{}
		for _, uuid := range uuids {
			row, exists := rows[uuid]
			if !exists {
				continue
			}
			var key []string
			for _, column := range index {
				key = append(key, string(row[column]))
			}
			joined := strings.Join(key, "\n")
			if seen[joined] {
				db.remove(table, uuid, "with the key of another row")
			}
			seen[joined] = true
		}
	}
	for _, uuid := range slices.Backward(uuids) {
		if schema.MaxRows > 0 && len(rows) > schema.MaxRows && rows[uuid] != nil {
			db.remove(table, uuid, "beyond the table's maximum")
		}
	}
	return before - len(rows)
}
