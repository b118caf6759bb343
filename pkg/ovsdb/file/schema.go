package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// SchemaHead is the head of a database schema (RFC 7047, 3.2).
type SchemaHead struct {
	Name    string `json:"name"`    // of the database: "Open_vSwitch"
	Version string `json:"version"` // "8.3.1"; "" if the schema gives none
}

// Schema is the schema in a file that is installed where ovsdb-tool runs: on this host
// or in an image.
type Schema struct {
	SchemaHead
	path string
	text []byte
}

// ParseSchema returns the schema in the text of the file at path.
func ParseSchema(path string, text []byte) (Schema, error) {
	head, err := parseSchemaHead(text)
	if err != nil {
		return Schema{}, fmt.Errorf("the installed schema %s: %w", path, err)
	}
	return Schema{head, path, text}, nil
}

// Path returns the path of the file where ovsdb-tool runs.
func (s Schema) Path() string { return s.path }

// parseSchemaHead reads the head of a schema's text.
func parseSchemaHead(text []byte) (SchemaHead, error) {
	var schema struct {
		SchemaHead
		Tables map[string]json.RawMessage `json:"tables"`
	}
	err := json.Unmarshal(text, &schema)
	if err == nil && schema.Tables == nil {
		err = errors.New("it is not a schema: it has no tables")
	}
	return schema.SchemaHead, err
}

// Tables returns the names of the tables that the database file src begins with, sorted.
func Tables(ctx context.Context, src string) ([]string, error) {
	log, err := OpenLog(ctx, nil, src, Selection{})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := log.read(); err != nil {
		return nil, err
	}
	if log.queue.committedEntries() == 0 {
		return nil, fmt.Errorf("%s: %w: record 1", src, ErrSchema)
	}
	if _, err := log.state.apply(log.queue.take()); err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return slices.Sorted(maps.Keys(log.state.schema)), nil
}
