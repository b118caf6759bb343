package history

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Sources returns the databases of some kinds in a set: the OVS database of each node, and the
// newest copy of each OVN database. remarks are sentences about what only
// other copies have.
func Sources(ctx context.Context, selected *snapshot.Snapshot, kinds ...workdir.Kind) (sources []Source, remarks []string, err error) {
	add := func(name string, k workdir.Kind, wd *workdir.Dir, nodes ...*workdir.Dir) error {
		source, err := Of(name, k, wd, nodes...)
		sources = append(sources, source)
		return err
	}
	if slices.Contains(kinds, workdir.OVS) {
		for _, node := range selected.Nodes() {
			wd, err := node.Workdir()
			if err != nil {
				return nil, nil, err
			}
			name := node.Name
			if selected.Alone() {
				name = ""
			}
			if err := add(name, workdir.OVS, wd, wd); err != nil {
				return nil, nil, err
			}
		}
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k workdir.Kind) bool { return k == workdir.OVS })
	if len(kinds) == 0 {
		return sources, nil, nil
	}
	newest, remarks, err := selected.Newest(ctx, kinds...)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range newest {
		if err := add(c.Name, c.Kind, c.Dir, c.Nodes...); err != nil {
			return nil, nil, err
		}
	}
	return sources, remarks, nil
}

// Of returns the database of a kind in a workdir, with the logs of its clients on nodes. Its file is
// "" if none was collected. node is its name in a set.
func Of(node string, k workdir.Kind, wd *workdir.Dir, nodes ...*workdir.Dir) (source Source, err error) {
	source = Source{Node: node, Title: k.Title(), Schema: k.Schema(), File: wd.Database(k), Open: wd.OpenDatabase}
	if _, err := os.Stat(source.File); errors.Is(err, fs.ErrNotExist) {
		source.File = ""
	} else if err != nil {
		return source, err
	}
	for _, n := range nodes {
		logs, err := n.ClientLogs()
		if err != nil {
			return source, err
		}
		source.Logs = append(source.Logs, logs...)
	}
	return source, nil
}
