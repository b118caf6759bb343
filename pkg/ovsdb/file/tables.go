package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
)

// ReadPrinted reads printed tables of the OVS database: dump is the path of the
// output of `ovsdb-client -f list dump`, and lists the paths of those of
// `ovs-vsctl list TABLE`, by table, for tables that dump lacks. Missing files are
// skipped. ok is false if a table that every switch needs is missing.
func ReadPrinted(dump string, lists map[string]string) (tables map[string][]ovsdb.Record, ok bool, err error) {
	tables, err = readTables(dump, "")
	if err != nil {
		return nil, false, err
	}
	for table, path := range lists {
		if len(tables[table]) > 0 {
			continue
		}
		listed, err := readTables(path, table)
		if err != nil {
			return nil, false, err
		}
		tables[table] = listed[table]
	}
	missing := func(table string) bool { return len(tables[table]) == 0 }
	return tables, !slices.ContainsFunc([]string{"Open_vSwitch", "Bridge", "Port", "Interface"}, missing), nil
}

func readTables(path, first string) (map[string][]ovsdb.Record, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return map[string][]ovsdb.Record{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tables, err := ovsdb.Tables(file, first)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tables, nil
}

// FromTables writes a standalone database file of printed rows, with the given
// schema. It leaves out ephemeral columns (statistics and the
// like) and columns that the schema lacks. The remarks name the latter, and rows
// and references that were removed.
func FromTables(ctx context.Context, schema Schema, tables map[string][]ovsdb.Record, dst string) ([]string, error) {
	db, err := newDatabase(schema.text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", schema.path, err)
	}
	remarks := db.fill(tables)
	if err := db.reconcile(ctx); err != nil {
		return nil, err
	}
	var line bytes.Buffer // a record's text has one line
	if err := json.Compact(&line, schema.text); err != nil {
		return nil, fmt.Errorf("%s: %w", schema.path, err)
	}
	err = writeFile(dst, func(out *output) error {
		if err := out.addSchema(line.Bytes()); err != nil {
			return err
		}
		return db.write(out, "created from rows without a history")
	})
	return append(remarks, db.remarks()...), err
}

// fill adds printed rows.
func (db *database) fill(tables map[string][]ovsdb.Record) (remarks []string) {
	skipped := map[string]bool{}
	for spelled, records := range tables {
		table, known := db.tableNamed(spelled)
		if !known {
			continue
		}
		schema := db.schema[table]
		for _, record := range records {
			row := columns{}
			for _, v := range record.Columns {
				column, known := schema.Columns[v.Column]
				if column.Ephemeral || strings.HasPrefix(v.Column, "_") {
					continue
				}
				value, ok := parseValue(v.Text, column.Type)
				if known && ok {
					row[v.Column] = value
				} else {
					skipped[table+"."+v.Column] = true
				}
			}
			db.tables[table][record.UUID] = row
		}
	}
	if len(skipped) > 0 {
		remarks = append(remarks, "columns that the installed schema lacks, or whose values cannot be read: "+
			strings.Join(slices.Sorted(maps.Keys(skipped)), ", "))
	}
	return remarks
}

// tableNamed returns the table that a name of any case and with dashes means, as ovs-vsctl
// reads it.
func (db *database) tableNamed(spelled string) (table string, known bool) {
	if _, known := db.schema[spelled]; known {
		return spelled, true
	}
	for table := range db.schema {
		if strings.EqualFold(table, strings.ReplaceAll(spelled, "-", "_")) {
			return table, true
		}
	}
	return "", false
}

// PrintedMap reads a map of strings as ovs-vsctl prints it, nil for another text.
func PrintedMap(text string) map[string]string {
	word := baseType{Type: "string"}
	value, ok := parseValue(text, columnType{Key: word, Value: word})
	if !ok {
		return nil
	}
	return ovsdb.ParseRow("", columns{"map": value}).Map("map")
}

// parseValue reads a value as ovs-vsctl prints it (ovsdb_datum_to_string() in
// lib/ovsdb-data.c): an atom, a set in brackets, or a map in braces.
func parseValue(text string, kind columnType) (json.RawMessage, bool) {
	left, right := "[", "]"
	if kind.isMap() {
		left, right = "{", "}"
	}
	inner, several := strings.CutPrefix(text, left)
	if !several {
		if kind.isMap() {
			return nil, false
		}
		atom, rest, ok := parseAtom(text, kind.Key)
		return atom, ok && rest == ""
	}
	inner, ok := strings.CutSuffix(inner, right)
	if !ok {
		return nil, false
	}
	var elements []element
	for inner != "" {
		key, rest, ok := parseAtom(inner, kind.Key)
		if !ok {
			return nil, false
		}
		element := element{key: string(key)}
		if kind.isMap() {
			value, after, ok := parseAtom(strings.TrimPrefix(rest, "="), kind.Value)
			if !ok || !strings.HasPrefix(rest, "=") {
				return nil, false
			}
			element.value, rest = string(value), after
		}
		elements = append(elements, element)
		if inner = strings.TrimPrefix(rest, ", "); inner == rest && rest != "" {
			return nil, false
		}
	}
	return composeElements(elements, kind.isMap()), true
}

// parseAtom reads one atom: a JSON string, or a word up to the next punctuation
// of a set or map.
func parseAtom(text string, kind baseType) (atom json.RawMessage, rest string, ok bool) {
	word := ""
	if strings.HasPrefix(text, `"`) {
		decoder := json.NewDecoder(strings.NewReader(text))
		if decoder.Decode(&word) != nil {
			return nil, "", false
		}
		rest = text[decoder.InputOffset():]
		if kind.Type == guessed {
			kind.Type = "string"
		}
	} else {
		end := strings.IndexAny(text, ",=]}")
		if end < 0 {
			end = len(text)
		}
		word, rest = text[:end], text[end:]
		if kind.Type == guessed {
			kind.Type = typeOf(word)
		}
	}
	var value any = word
	switch kind.Type {
	case "string":
	case "uuid":
		value = []string{"uuid", word}
		if !ovsdb.IsUUID(word) {
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

// Readable reports whether a text is a value as ovs-vsctl prints it, of any type.
func Readable(text string) bool {
	_, ok := parseUntyped(text)
	return ok
}
