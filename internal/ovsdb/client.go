package ovsdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"

	"ovs-offline/internal/logging"
)

// Client talks to a running ovsdb-server about one database, guided by the
// schema that the server tells: any version of it will do.
type Client struct {
	conn   client.Client
	schema rfc.DatabaseSchema
}

// Connect connects to the server on a unix socket. Go's dialer takes no path
// beyond 107 bytes (sun_path), so the socket is reached through its directory's
// descriptor.
func Connect(ctx context.Context, socket, database string) (*Client, error) {
	defer logging.Timed(ctx, "connect to database", "socket", socket, "database", database)()
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", socket, err)
	}
	defer dir.Close()
	dbModel, err := model.NewClientDBModel(database, map[string]model.Model{})
	if err != nil {
		return nil, err
	}
	silent := logr.Discard()
	short := fmt.Sprintf("unix:/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket))
	conn, err := client.NewOVSDBClient(dbModel, client.WithEndpoint(short), client.WithLogger(&silent))
	if err != nil {
		return nil, err
	}
	if err := conn.Connect(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", socket, err)
	}
	return &Client{conn: conn, schema: conn.Schema()}, nil
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// HasColumn tells whether the database's schema knows a column: older and
// newer ones differ.
func (c *Client) HasColumn(table, column string) bool {
	t := c.schema.Table(table)
	return t != nil && t.Column(column) != nil
}

// Row is a row of a table. Its accessors return zero values for columns that
// the schema doesn't know.
type Row struct {
	UUID    string
	columns rfc.Row
}

// Select returns all rows of a table with the columns asked for, as far as
// the schema knows them.
func (c *Client) Select(ctx context.Context, table string, columns ...string) ([]Row, error) {
	if c.schema.Table(table) == nil {
		return nil, nil
	}
	known := []string{"_uuid"}
	for _, column := range columns {
		if c.HasColumn(table, column) {
			known = append(known, column)
		}
	}
	defer logging.Timed(ctx, "read database table", "table", table)()
	results, err := c.conn.Transact(ctx, rfc.Operation{Op: "select", Table: table, Columns: known})
	if err != nil {
		return nil, fmt.Errorf("reading table %s: %w", table, err)
	}
	if len(results) != 1 || results[0].Error != "" {
		return nil, fmt.Errorf("reading table %s: %s", table, describe(results))
	}
	rows := make([]Row, 0, len(results[0].Rows))
	for _, r := range results[0].Rows {
		id, _ := r["_uuid"].(rfc.UUID)
		rows = append(rows, Row{UUID: id.GoUUID, columns: r})
	}
	return rows, nil
}

func describe(results []rfc.OperationResult) string {
	for _, r := range results {
		if r.Error != "" {
			return r.Error + ": " + r.Details
		}
	}
	return fmt.Sprintf("%d results", len(results))
}

// String returns a column that holds one string, "" if it holds none.
func (r Row) String(column string) string {
	switch v := r.columns[column].(type) {
	case string:
		return v
	case rfc.OvsSet:
		if len(v.GoSet) == 1 {
			s, _ := v.GoSet[0].(string)
			return s
		}
	}
	return ""
}

// Int returns a column that holds one integer; ok is false if it holds none.
func (r Row) Int(column string) (n int, ok bool) {
	value := r.columns[column]
	if set, isSet := value.(rfc.OvsSet); isSet && len(set.GoSet) == 1 {
		value = set.GoSet[0]
	}
	switch v := value.(type) {
	case float64:
		return int(v), true
	case int:
		return v, true
	}
	return 0, false
}

// Bool returns a column that holds one boolean.
func (r Row) Bool(column string) bool {
	value := r.columns[column]
	if set, isSet := value.(rfc.OvsSet); isSet && len(set.GoSet) == 1 {
		value = set.GoSet[0]
	}
	b, _ := value.(bool)
	return b
}

// Bools returns a column that is a set of booleans: none where an optional one
// is not set.
func (r Row) Bools(column string) []bool {
	return collectSet(r.columns[column], func(v any) (bool, bool) { b, ok := v.(bool); return b, ok })
}

// Map returns a column that maps strings to strings.
func (r Row) Map(column string) map[string]string {
	out := map[string]string{}
	if m, ok := r.columns[column].(rfc.OvsMap); ok {
		for k, v := range m.GoMap {
			key, _ := k.(string)
			value, _ := v.(string)
			out[key] = value
		}
	}
	return out
}

// Strings returns a column that is a set of strings.
func (r Row) Strings(column string) []string {
	return collectSet(r.columns[column], func(v any) (string, bool) { s, ok := v.(string); return s, ok })
}

// UUIDs returns a column that refers to rows.
func (r Row) UUIDs(column string) []string {
	return collectSet(r.columns[column], func(v any) (string, bool) {
		id, ok := v.(rfc.UUID)
		return id.GoUUID, ok
	})
}

func collectSet[T any](value any, take func(any) (T, bool)) []T {
	set, ok := value.(rfc.OvsSet)
	if !ok {
		set.GoSet = []any{value}
	}
	var out []T
	for _, v := range set.GoSet {
		if s, ok := take(v); ok {
			out = append(out, s)
		}
	}
	return out
}

// Change is one operation of a transaction.
type Change struct{ op rfc.Operation }

// Columns are new values of columns: string, int, bool, []string,
// map[string]string, Ref, []Ref, or nil for the empty set.
type Columns map[string]any

// Ref refers to a row by its UUID, or by the name that Insert gave it.
type Ref struct {
	UUID string
	Name string
}

// Update sets columns of one row.
func Update(table, uuid string, columns Columns) Change {
	return Change{rfc.Operation{Op: "update", Table: table, Where: where(uuid), Row: row(columns)}}
}

// Await waits, for a number of milliseconds at the most, until a column of a row
// has a value; a transaction with it fails when that time is over.
func Await(table, uuid, column string, value any, milliseconds int) Change {
	return Change{rfc.Operation{Op: "wait", Table: table, Where: where(uuid), Columns: []string{column},
		Until: "==", Rows: []rfc.Row{{column: wire(value)}}, Timeout: &milliseconds}}
}

// Insert adds a row; name is how other operations of the transaction refer to it.
func Insert(table, name string, columns Columns) Change {
	return Change{rfc.Operation{Op: "insert", Table: table, UUIDName: name, Row: row(columns)}}
}

func where(uuid string) []rfc.Condition {
	return []rfc.Condition{rfc.NewCondition("_uuid", rfc.ConditionEqual, rfc.UUID{GoUUID: uuid})}
}

func row(columns Columns) rfc.Row {
	out := rfc.Row{}
	for name, value := range columns {
		out[name] = wire(value)
	}
	return out
}

// wire turns a value into what RFC 7047 section 5.1 sends.
func wire(value any) any {
	switch v := value.(type) {
	case nil:
		return rfc.OvsSet{GoSet: []any{}}
	case []string:
		set := rfc.OvsSet{GoSet: make([]any, 0, len(v))}
		for _, s := range v {
			set.GoSet = append(set.GoSet, s)
		}
		return set
	case map[string]string:
		m := rfc.OvsMap{GoMap: map[any]any{}}
		for k, s := range v {
			m.GoMap[k] = s
		}
		return m
	case Ref:
		return v.wire()
	case []Ref:
		set := rfc.OvsSet{GoSet: make([]any, 0, len(v))}
		for _, r := range v {
			set.GoSet = append(set.GoSet, r.wire())
		}
		return set
	default:
		return v
	}
}

func (r Ref) wire() rfc.UUID {
	if r.Name != "" {
		return rfc.UUID{GoUUID: r.Name}
	}
	return rfc.UUID{GoUUID: r.UUID}
}

// Transact makes all changes in one transaction, or none of them.
func (c *Client) Transact(ctx context.Context, changes ...Change) error {
	if len(changes) == 0 {
		return nil
	}
	ops := make([]rfc.Operation, 0, len(changes))
	for _, change := range changes {
		ops = append(ops, change.op)
	}
	defer logging.Timed(ctx, "change database", "operations", len(ops))()
	results, err := c.conn.Transact(ctx, ops...)
	if err != nil {
		return fmt.Errorf("changing the working copy: %w", err)
	}
	for _, r := range results {
		if r.Error != "" {
			return fmt.Errorf("changing the working copy: %w", errors.New(r.Error+": "+r.Details))
		}
	}
	return nil
}

// Ephemeral tells whether a column is one that no database file keeps (RFC 7047
// section 3.2): what a running daemon says of itself, as statistics.
func (c *Client) Ephemeral(table, column string) bool {
	if !c.HasColumn(table, column) {
		return false
	}
	return c.schema.Table(table).Column(column).Ephemeral()
}
