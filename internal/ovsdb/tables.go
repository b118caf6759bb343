package ovsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Printed reads what was printed of the OVS database's tables: dump is the
// output of `ovsdb-client -f list dump`, lists those of `ovs-vsctl list TABLE`
// for the tables that it lacks. Files that aren't there are passed over. ok is
// false where the tables that make a switch are not among them.
func Printed(dump string, lists map[string]string) (tables map[string][]Record, ok bool, err error) {
	tables, err = printed(dump, "")
	if err != nil {
		return nil, false, err
	}
	for table, path := range lists {
		if len(tables[table]) > 0 {
			continue
		}
		more, err := printed(path, table)
		if err != nil {
			return nil, false, err
		}
		if len(more[table]) > 0 {
			tables[table] = more[table]
		}
	}
	ok = true
	for _, table := range []string{OVS, "Bridge", "Port", "Interface"} {
		ok = ok && len(tables[table]) > 0
	}
	return tables, ok, nil
}

func printed(path, first string) (map[string][]Record, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string][]Record{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tables, err := Tables(f, first)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tables, nil
}

// FromTables writes a standalone database file of the schema in a file, with
// the rows that were printed. Columns that don't last (statistics and the like)
// and those that the schema lacks are left out. The remarks name what else was.
func FromTables(ctx context.Context, schema string, tables map[string][]Record, dst string) ([]string, error) {
	text, err := os.ReadFile(schema)
	if err != nil {
		return nil, err
	}
	db, err := newDatabase(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", schema, err)
	}
	remarks := db.fill(tables)
	if err := db.reconcile(ctx); err != nil {
		return nil, err
	}
	out, err := newOutput(dst)
	if err != nil {
		return nil, err
	}
	installed := false
	defer func() { out.discard(installed) }()
	if err := out.start(oneLine(text)); err != nil {
		return nil, err
	}
	if body := db.transaction(); body != nil {
		if err := out.add(body); err != nil {
			return nil, err
		}
	}
	if err := out.install(dst); err != nil {
		return nil, err
	}
	installed = true
	return append(remarks, db.remarks()[1:]...), nil // the first is about lost records
}

func oneLine(text []byte) []byte {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return text
	}
	line, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return line
}

// fill adds the rows that were printed.
func (db *database) fill(tables map[string][]Record) (remarks []string) {
	unknown := map[string]bool{}
	for table, records := range tables {
		schema, known := db.schema[table]
		if !known {
			continue
		}
		for _, r := range records {
			row := columns{}
			for _, v := range r.Columns {
				column, known := schema.Columns[v.Column]
				if column.Ephemeral || strings.HasPrefix(v.Column, "_") {
					continue
				}
				value, ok := parseValue(v.Text, column.Type)
				if known && ok {
					row[v.Column] = value
				} else {
					unknown[table+"."+v.Column] = true
				}
			}
			db.tables[table][r.UUID] = row
		}
	}
	if len(unknown) > 0 {
		remarks = append(remarks, "columns that the installed schema doesn't know, or values that can't be read: "+
			strings.Join(slices.Sorted(maps.Keys(unknown)), ", "))
	}
	return remarks
}

// parseValue reads a value as ovs-vsctl prints it (ovsdb_datum_to_string() in
// lib/ovsdb-data.c): an atom, a set in brackets, a map in braces.
func parseValue(text string, kind columnType) (json.RawMessage, bool) {
	open, shut := "[", "]"
	if kind.isMap() {
		open, shut = "{", "}"
	}
	inner, isSet := strings.CutPrefix(text, open)
	if !isSet {
		if kind.isMap() {
			return nil, false
		}
		atom, rest, ok := parseAtom(text, kind.Key)
		return atom, ok && rest == ""
	}
	inner, ok := strings.CutSuffix(inner, shut)
	if !ok {
		return nil, false
	}
	var members []element
	for inner != "" {
		var e element
		key, rest, ok := parseAtom(inner, kind.Key)
		if !ok {
			return nil, false
		}
		e.key = string(key)
		if kind.isMap() {
			value, after, ok := parseAtom(strings.TrimPrefix(rest, "="), kind.Value)
			if !ok || !strings.HasPrefix(rest, "=") {
				return nil, false
			}
			e.value, rest = string(value), after
		}
		members = append(members, e)
		if inner = strings.TrimPrefix(rest, ", "); inner == rest && rest != "" {
			return nil, false
		}
	}
	return compose(members, kind.isMap()), true
}

// parseAtom reads one atom: quoted as in JSON, or up to the next sign of a set or map.
func parseAtom(text string, kind baseType) (atom json.RawMessage, rest string, ok bool) {
	word := ""
	if strings.HasPrefix(text, `"`) {
		end := closingQuote(text)
		if end < 0 || json.Unmarshal([]byte(text[:end]), &word) != nil {
			return nil, "", false
		}
		rest = text[end:]
	} else {
		end := strings.IndexAny(text, ",=]}")
		if end < 0 {
			end = len(text)
		}
		word, rest = text[:end], text[end:]
	}
	var value any = word
	switch kind.Type {
	case "string":
	case "uuid":
		value = []string{"uuid", word}
		if !uuidText.MatchString(word) {
			return nil, "", false
		}
	default: // integer, real, boolean
		if !json.Valid([]byte(word)) {
			return nil, "", false
		}
		value = json.RawMessage(word)
	}
	raw, err := json.Marshal(value)
	return raw, rest, err == nil
}

func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
