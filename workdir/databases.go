package workdir

import (
	"context"
	"fmt"
	"io"

	"ovs-offline/internal/interrupt"
	"ovs-offline/pkg/ovsdb/file"
)

// OpenDatabase works like Open: readers of database files call it.
func (d *Data) OpenDatabase(path string) (file.File, error) { return d.Open(path) }

// Index indexes a database file of the workdir as file.OpenIndex does. Where a case shares its files, the index is of all tables, and all
// readers have the same one, which stays open until the case is closed.
func (d *Data) Index(ctx context.Context, path string, tables ...string) (*file.Index, error) {
	if !d.Shares() {
		return file.OpenIndex(ctx, path, tables...)
	}
	if err := interrupt.CheckRegular(path); err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	opened, err := d.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	defer opened.Close()
	made, ok, err := opened.Once(func() (io.Closer, error) {
		index, err := file.OpenIndexOf(ctx, d.OpenDatabase, path)
		return closing{index}, err
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return file.OpenIndex(ctx, path, tables...)
	}
	return made.(closing).Shared(), nil
}

// closing is an index that its case closes.
type closing struct{ *file.Index }

// Close closes the index.
func (c closing) Close() error {
	c.Index.Close()
	return nil
}
