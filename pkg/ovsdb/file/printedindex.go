package file

import (
	"context"
	"encoding/json"
	"fmt"

	"ovs-offline/pkg/ovsdb"
)

// IndexPrinted indexes printed rows. Their types are guessed from their texts: an empty set and an empty
// optional value are the same. The index keeps a file without a name in folder, which ends with it.
func IndexPrinted(ctx context.Context, name string, tables map[string][]ovsdb.Record, folder string) (*Index, error) {
	unnamed, err := unnamedFile(folder)
	if err != nil {
		return nil, err
	}
	index := &Index{Path: name, close: func() { unnamed.Close() }}
	if err := index.fill(ctx, outputTo(unnamed), tables); err != nil {
		index.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return index, nil
}

// fill writes printed rows to a file, and indexes them.
func (x *Index) fill(ctx context.Context, out *output, tables map[string][]ovsdb.Record) error {
	type column struct {
		Type string `json:"type"`
	}
	type table struct {
		Columns map[string]column `json:"columns"`
	}
	schema := map[string]table{}
	rows := map[string]map[string]columns{}
	for name, records := range tables {
		known, found := map[string]column{}, map[string]columns{}
		for _, record := range records {
			row := columns{}
			for _, value := range record.Columns {
				if text, ok := parseUntyped(value.Text); ok {
					row[value.Column], known[value.Column] = text, column{"string"}
				}
			}
			found[record.UUID] = row
		}
		schema[name], rows[name] = table{known}, found
	}
	for _, record := range []any{map[string]any{"name": "printed", "tables": schema}, rows} {
		text, err := json.Marshal(record)
		if err != nil {
			return err
		}
		if err := out.add(text); err != nil {
			return err
		}
	}
	x.file, x.Info = out.file, Info{Form: FormPrinted}
	return x.readOutput(ctx, out, nil)
}
