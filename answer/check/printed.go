package check

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// openPrinted opens the printed tables of the databases of which no file was collected.
func openPrinted(ctx context.Context, deployments []*snapshot.Deployment) error {
	for _, d := range deployments {
		for i := range d.Nodes {
			if err := openSwitch(ctx, &d.Nodes[i]); err != nil {
				return err
			}
		}
		for kind, to := range map[workdir.Kind]**file.Index{workdir.NB: &d.NB, workdir.SB: &d.SB} {
			for _, n := range d.Nodes {
				if err := openTables(ctx, n.Dir, kind, to); err != nil {
					return err
				}
			}
		}
		d.TakeParts()
	}
	return nil
}

// openSwitch opens the printed tables of the OVS database of a node.
func openSwitch(ctx context.Context, n *snapshot.Member) (err error) {
	if n.OVS != nil {
		return nil
	}
	lists := map[string]string{}
	for _, table := range workdir.ListedTables() {
		lists[table] = n.Dir.Recorded(workdir.RecordedList(table))
	}
	tables, ok, err := file.ReadPrinted(n.Dir.Recorded(workdir.RecordedDatabaseDump), lists)
	if err == nil && ok {
		n.OVS, err = file.IndexPrinted(ctx, "the printed tables of the OVS database of "+n.Name, tables, n.Dir.Path())
	}
	return err
}

// openTables opens the printed tables of an OVN database, unless it is open, and notes which tables these are.
func openTables(ctx context.Context, wd *workdir.Dir, kind workdir.Kind, to **file.Index) error {
	path := wd.PrintedDatabase(kind)
	manifest, err := wd.Manifest()
	if err != nil || *to != nil && manifest.FromPrinted(kind) == nil {
		return err
	}
	tables, err := file.PrintedTables(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && *to == nil {
		*to, err = file.IndexPrinted(ctx, path, tables, wd.Path())
	}
	// Of which tables the end of a file has all rows is not known.
	if _, tail := os.Stat(wd.DatabaseTail(kind)); err == nil && tail != nil {
		(*to).OnlyWhole(append(slices.Collect(maps.Keys(tables)), ovn.LogicalFlowTable, ovn.DatapathGroupTable)) // a start computes the last two
	}
	return err
}
