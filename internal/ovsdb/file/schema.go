package file

import (
	"encoding/json"
	"errors"
	"fmt"
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
