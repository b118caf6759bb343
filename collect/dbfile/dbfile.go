// Package dbfile collects one database file into a workdir.
package dbfile

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/collect"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
)

// Collect puts a copy of the database file at path into the workdir as the
// database of kind. A database of another kind is refused with its name.
func Collect(ctx context.Context, wd *workdir.Dir, kind workdir.Kind, path string, opts collect.Options) (workdir.Collection, error) {
	var none workdir.Collection
	if err := collect.Refuse(wd, opts.Force, true, kind); err != nil {
		return none, err
	}
	staging, err := wd.Stage()
	if err != nil {
		return none, err
	}
	defer staging.Discard()
	if err := staging.Replace(kind, true); err != nil {
		return none, err
	}
	collection, err := bring(ctx, staging, kind, path)
	if err != nil {
		return none, err
	}
	if err := keepDumps(wd, kind, &collection); err != nil {
		return none, err
	}
	return collection, staging.Install(collection)
}

func wrongKind(path, name string, got, want workdir.Kind) error {
	if got == "" {
		return fmt.Errorf("%s holds the database %q, which is none of %s, %s, %s", path, name, ovsdb.OVS, ovsdb.NB, ovsdb.SB)
	}
	commands := map[workdir.Kind]string{workdir.OVS: "collect-db-ovs", workdir.NB: "collect-db-ovn-nb", workdir.SB: "collect-db-ovn-sb"}
	return fmt.Errorf("%s is the %s database (%s), not %s: use %s", path, got.Title(), name, want.Title(), commands[got])
}

// bring copies the database and judges the copy: a pipe can be read once, and a
// file may change meanwhile.
func bring(ctx context.Context, staging *workdir.Staging, kind workdir.Kind, path string) (workdir.Collection, error) {
	var none workdir.Collection
	abs, err := filepath.Abs(path)
	if err != nil {
		return none, err
	}
	in, err := open(ctx, path)
	if err != nil {
		return none, err
	}
	defer in.Close()
	file, err := staging.Copy(ctx, in, staging.Database(kind))
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	info, err := collect.Inspect(ctx, staging.Database(kind))
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	if got := collect.KindOf(info.Name); got != kind {
		return none, wrongKind(path, info.Name, got, kind)
	}
	file.Origin = abs
	file.Remarks = collect.DatabaseRemarks(info)
	return workdir.Collection{
		Kind:      kind,
		Source:    workdir.Source{Kind: "database file", Name: abs},
		Collected: time.Now().UTC().Truncate(time.Second),
		Files:     []workdir.File{file},
	}, nil
}

// open opens a file, or a pipe, which may be silent for ever.
func open(ctx context.Context, path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&os.ModeDevice != 0 {
		return nil, fmt.Errorf("%s is a device, and no database", path)
	}
	f, err := os.Open(path)
	if err != nil || info.Mode().IsRegular() {
		return f, err
	}
	return struct {
		io.Reader
		io.Closer
	}{interrupt.Pipe(ctx, f), f}, nil
}

// keepDumps carries over what an earlier collection knew of the flows: only
// the database is replaced, and what was lost of it.
func keepDumps(wd *workdir.Dir, kind workdir.Kind, c *workdir.Collection) error {
	m, err := wd.Manifest()
	if err != nil {
		return err
	}
	old := m.Collection(kind)
	if kind != workdir.OVS || old == nil {
		return nil
	}
	old.Found(kind)
	c.Bridges, c.OVSVersion, c.Host, c.Lost, c.LostDatabases = old.Bridges, old.OVSVersion, old.Host, old.Lost, old.LostDatabases
	for _, f := range old.Files {
		if filepath.Dir(f.Path) != filepath.Join("db", string(workdir.OVS)) {
			c.Files = append(c.Files, f)
		}
	}
	return nil
}
