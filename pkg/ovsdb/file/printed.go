package file

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/pkg/ovsdb"
)

// FormPrinted is the form of a text with printed tables, which has no types: the output of
// `ovsdb-client -f list dump`.
const FormPrinted Form = "printed tables"

// InspectPrinted describes the text of printed tables at path. The database has the schema of that
// name, whose version is not known.
func InspectPrinted(ctx context.Context, path, schema string) (Info, error) {
	content, err := PrintedContent(ctx, path)
	info := Info{Name: schema, Form: FormPrinted}
	if err != nil {
		return info, err
	}
	for _, rows := range content.rows {
		info.Records += len(rows)
	}
	for _, row := range slices.Concat(content.Rows("NB_Global"), content.Rows("SB_Global")) {
		info.Program = row.Map("options")["northd_internal_version"]
	}
	return info, nil
}

// PrintedContent reads the text of printed tables at path. Without a schema, an empty set and an empty
// optional value are the same.
func PrintedContent(ctx context.Context, path string) (*Content, error) {
	tables, err := PrintedTables(ctx, path)
	if err != nil {
		return nil, err
	}
	content := &Content{Info: Info{Form: FormPrinted}, rows: map[string][]ovsdb.Row{}}
	for table, records := range tables {
		for _, record := range records {
			row := columns{}
			for _, value := range record.Columns {
				if text, ok := parseUntyped(value.Text); ok {
					row[value.Column] = text
				}
			}
			content.rows[table] = append(content.rows[table], ovsdb.ParseRow(record.UUID, row))
		}
		slices.SortFunc(content.rows[table], func(a, b ovsdb.Row) int { return strings.Compare(a.UUID, b.UUID) })
	}
	return content, nil
}

// PrintedTables reads the text of printed tables at path, by table.
func PrintedTables(ctx context.Context, path string) (map[string][]ovsdb.Record, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	tables, err := ovsdb.Tables(interrupt.Reader(ctx, in), "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tables, nil
}

// guessed stands for the type of an atom that is not known, and that its text suggests: strings that
// look like another type are printed in quotes.
const guessed = "guessed"

// parseUntyped reads a value of a column whose type is not known, as ovs-vsctl prints it.
func parseUntyped(text string) (json.RawMessage, bool) {
	kind := columnType{Key: baseType{Type: guessed}}
	if strings.HasPrefix(text, "{") {
		kind.Value = kind.Key
	}
	return parseValue(text, kind)
}

// typeOf returns the type of an atom by its text.
func typeOf(word string) string {
	switch {
	case ovsdb.IsUUID(word):
		return "uuid"
	case json.Valid([]byte(word)):
		return "integer" // or real, or boolean
	}
	return "string"
}
