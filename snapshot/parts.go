package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// OpenParts opens the rows of a database of a kind that a node has of tables of which some rows or some columns were printed: its method
// Lacks says what is not known. It returns nil where there are none.
func OpenParts(ctx context.Context, dir *workdir.Dir, kind workdir.Kind) (*file.Index, error) {
	path := dir.HostRecorded(workdir.HostParts(kind))
	tables, err := file.PrintedTables(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	manifest, err := dir.Manifest()
	if err != nil {
		return nil, err
	}
	known := manifest.Known(kind)
	if known == nil {
		return nil, fmt.Errorf("%s: the manifest does not say what is known of its tables: collect the source again", path)
	}
	index, err := file.IndexPrinted(ctx, path, tables, dir.Path())
	if err == nil {
		index.OnlyParts(known)
	}
	return index, err
}

// OpenParts opens what the nodes of a deployment know in part of the tables of its databases, where no file of them was collected.
func (d *Deployment) OpenParts(ctx context.Context) error {
	for kind, of := range map[workdir.Kind]struct{ index, parts **file.Index }{workdir.NB: {&d.NB, &d.nbParts}, workdir.SB: {&d.SB, &d.sbParts}} {
		for _, node := range d.Nodes {
			manifest, err := node.Dir.Manifest()
			if err != nil {
				return err
			}
			if *of.parts != nil || *of.index != nil && manifest.FromPrinted(kind) == nil {
				continue
			}
			if *of.parts, err = OpenParts(ctx, node.Dir, kind); err != nil {
				return err
			}
			if *of.parts != nil && *of.index != nil {
				*of.index, *of.parts = (*of.index).WithParts(*of.parts), nil
			}
		}
	}
	return nil
}

// TakeParts makes what is known in part of databases a part of these: those who read them then have to ask Lacks.
func (d *Deployment) TakeParts() {
	for index, parts := range map[**file.Index]**file.Index{&d.NB: &d.nbParts, &d.SB: &d.sbParts} {
		switch {
		case *parts == nil:
		case *index == nil:
			*index, *parts = *parts, nil
		default:
			*index, *parts = (*index).WithParts(*parts), nil
		}
	}
}

// Named returns a deployment whose databases are what is known of them, where no file of them was collected: enough to name rows, and
// for those who ask Lacks. Only the deployment itself is closed.
func (d *Deployment) Named() *Deployment {
	named := *d
	if named.NB == nil {
		named.NB = d.nbParts
	}
	if named.SB == nil {
		named.SB = d.sbParts
	}
	return &named
}
