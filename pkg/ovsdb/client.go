package ovsdb

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	rfc "github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// Client reads and changes one database of a running ovsdb-server. It follows
// the schema that the server reports, so it works with every version of it.
type Client struct {
	conn   client.Client
	schema rfc.DatabaseSchema

	mu      sync.Mutex
	changed map[string][]string // columns, by table
}

// Connect connects to the server that listens on a unix socket. The address of
// a unix socket holds at most 107 bytes (sun_path, unix(7)), so Connect reaches
// the socket through the descriptor of its directory.
func Connect(ctx context.Context, socket, database string) (*Client, error) {
	defer timed(ctx, "connect to database", "socket", socket, "database", database)()
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
	return &Client{conn: conn, schema: conn.Schema(), changed: map[string][]string{}}, nil
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// Tables returns the names of the tables of the database, sorted.
func (c *Client) Tables() []string { return slices.Sorted(maps.Keys(c.schema.Tables)) }

// HasColumn reports whether the server's schema, which depends on its version, has a
// column.
func (c *Client) HasColumn(table, column string) bool {
	schema := c.schema.Table(table)
	return schema != nil && schema.Column(column) != nil
}

// Ephemeral reports whether a column is ephemeral (RFC 7047, 3.2): daemons write
// it while they run, as statistics, and no database file holds it.
func (c *Client) Ephemeral(table, column string) bool {
	return c.HasColumn(table, column) && c.schema.Table(table).Column(column).Ephemeral()
}

// Select returns all rows of a table with the named columns, or with all columns if
// none is named. Tables and columns that the schema lacks are left out.
func (c *Client) Select(ctx context.Context, table string, columns ...string) ([]Row, error) {
	if c.schema.Table(table) == nil {
		return nil, nil
	}
	var known []string // empty means all
	if len(columns) > 0 {
		lacks := func(column string) bool { return !c.HasColumn(table, column) }
		known = append(slices.DeleteFunc(slices.Clone(columns), lacks), "_uuid")
	}
	defer timed(ctx, "read database table", "table", table)()
	results, err := c.transact(ctx, rfc.Operation{Op: "select", Table: table, Columns: known})
	if err != nil {
		return nil, fmt.Errorf("reading table %s: %w", table, err)
	}
	var rows []Row
	for _, result := range results {
		for _, row := range result.Rows {
			id, _ := row["_uuid"].(rfc.UUID)
			rows = append(rows, Row{UUID: id.GoUUID, columns: row})
		}
	}
	return rows, nil
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
	defer timed(ctx, "change database", "operations", len(ops))()
	if _, err := c.transact(ctx, ops...); err != nil {
		return fmt.Errorf("changing the working copy: %w", err)
	}
	c.noteColumns(ops)
	return nil
}

// noteColumns adds the columns that operations update to the columns that Changed returns.
func (c *Client) noteColumns(ops []rfc.Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range ops {
		for column := range op.Row {
			if op.Op == "update" && !slices.Contains(c.changed[op.Table], column) {
				c.changed[op.Table] = append(c.changed[op.Table], column)
			}
		}
	}
}

// Changed returns the columns that Transact updated, by table, sorted.
func (c *Client) Changed() map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sorted := map[string][]string{}
	for table, columns := range c.changed {
		sorted[table] = slices.Sorted(slices.Values(columns))
	}
	return sorted
}

// transact returns the results of operations, or the first error among them.
func (c *Client) transact(ctx context.Context, ops ...rfc.Operation) ([]rfc.OperationResult, error) {
	results, err := c.conn.Transact(ctx, ops...)
	for _, result := range results {
		if result.Error != "" {
			return nil, fmt.Errorf("%s: %s", result.Error, result.Details)
		}
	}
	return results, err
}
