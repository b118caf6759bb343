package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// SchemaHead is the head of a database schema (RFC 7047, 3.2).
type SchemaHead struct {
	Name    string `json:"name"`    // of the database: "Open_vSwitch"
	Version string `json:"version"` // "8.3.1"; "" if the schema gives none
}

// ReadSchemaHead reads the head of a schema file of this host, as
// `ovsdb-tool schema-name` and `schema-version` print it.
func ReadSchemaHead(path string) (head SchemaHead, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		head, err = parseSchemaHead(text)
	}
	if err != nil {
		return SchemaHead{}, fmt.Errorf("the installed schema %s: %w", path, err)
	}
	return head, nil
}

// AskSchemaHead reads the head of a schema that only ovsdb-tool can access, for example
// in a container's image.
func AskSchemaHead(ctx context.Context, tool Tool, path string) (SchemaHead, error) {
	name, err := tool(ctx, "ovsdb-tool", "schema-name", path)
	var version []byte
	if err == nil {
		version, err = tool(ctx, "ovsdb-tool", "schema-version", path)
	}
	if err != nil {
		return SchemaHead{}, fmt.Errorf("the installed schema %s: %w", path, err)
	}
	return SchemaHead{strings.TrimSpace(string(name)), strings.TrimSpace(string(version))}, nil
}

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
