package names

import (
	"context"
	"maps"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// withShown returns a deployment without databases as what ovn-nbctl show and ovn-sbctl show printed on its nodes: its switches, ports and
// routers have names and addresses, which is enough to name endpoints. Without these, it is what is known in part of the databases'
// tables. Nothing else reads these rows, whose other columns are not known. done ends the use of the result.
func withShown(ctx context.Context, d *snapshot.Deployment) (with *snapshot.Deployment, done func(), err error) {
	done = func() {}
	if d.NB != nil || d.SB != nil {
		return d, done, nil
	}
	for _, node := range d.Nodes {
		if node.Dir == nil {
			continue
		}
		tables := map[string][]ovsdb.Record{}
		for _, name := range []string{workdir.HostShownNB, workdir.HostShownSB} {
			if err := readShown(tables, node.Dir, node.Dir.HostRecorded(name)); err != nil {
				return nil, done, err
			}
		}
		if len(tables["Logical_Switch"]) == 0 {
			continue
		}
		shown, err := file.IndexPrinted(ctx, "ovn-nbctl show", tables, node.Dir.Path())
		if err != nil {
			return nil, done, err
		}
		copied := *d
		copied.NB, copied.SB = shown, shown
		return &copied, func() { shown.Close() }, nil
	}
	return d.Named(), done, nil
}

// readShown adds the rows that a recorded output shows to tables.
func readShown(tables map[string][]ovsdb.Record, wd *workdir.Dir, path string) error {
	in, ok, err := wd.Collected(path)
	if err != nil || !ok {
		return err
	}
	defer in.Close()
	rows, err := ovn.Shown(in)
	maps.Copy(tables, rows)
	return err
}
