package trace

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/set"
)

// OpenSet opens a session on all nodes of a set. Names are taken from the newest copies of
// its databases.
func OpenSet(ctx context.Context, s *set.Set, o Options) (*Session, error) {
	nodes, zones, remarks, err := OfSet(ctx, s)
	if err != nil {
		return nil, err
	}
	session, err := Open(ctx, nodes, zones, o)
	if err != nil {
		return nil, err
	}
	session.remarks = remarks
	return session, nil
}

// OpenWorkdir opens a session on one node.
func OpenWorkdir(ctx context.Context, wd *workdir.Dir, o Options) (*Session, error) {
	nodes, zones := OfWorkdir(wd)
	return Open(ctx, nodes, zones, o)
}

// CompleteSet returns names of endpoints that begin with a text, for a shell. No replica
// needs to run.
func CompleteSet(ctx context.Context, s *set.Set, text string) ([]string, error) {
	nodes, zones, _, err := OfSet(ctx, s)
	if err != nil {
		return nil, err
	}
	return complete(ctx, nodes, zones, text)
}

// CompleteWorkdir works like CompleteSet for one node.
func CompleteWorkdir(ctx context.Context, wd *workdir.Dir, text string) ([]string, error) {
	nodes, zones := OfWorkdir(wd)
	return complete(ctx, nodes, zones, text)
}

func complete(ctx context.Context, nodes []Node, wanted []Zone, text string) ([]string, error) {
	const most = 1000
	zones, found, err := openZones(ctx, nodes, wanted)
	for _, z := range zones {
		defer z.close()
	}
	if err != nil {
		return nil, err
	}
	return found.Complete(text, most), nil
}

// OfSet returns the nodes and the databases of a set, and sentences about the databases.
func OfSet(ctx context.Context, s *set.Set) (nodes []Node, zones []Zone, remarks []string, err error) {
	databases, problems, err := s.Databases(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	dirs := map[string]*workdir.Dir{}
	for _, n := range s.Nodes() {
		wd, err := n.Workdir()
		if err != nil {
			return nil, nil, nil, err
		}
		nodes = append(nodes, Node{n.Name, wd})
		dirs[n.Name] = wd
	}
	return nodes, zonesOf(nodes, databases, dirs), append(problems, set.Sentences(databases)...), nil
}

// OfWorkdir returns the node of a workdir, and its databases.
func OfWorkdir(wd *workdir.Dir) ([]Node, []Zone) {
	name := cmp.Or(set.At(wd.Path(), "").Host(), filepath.Base(wd.Path()))
	z := Zone{Nodes: []string{name}}
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		if _, err := os.Stat(wd.Database(k)); err == nil {
			*z.file(k) = wd.Database(k)
		}
	}
	return []Node{{name, wd}}, []Zone{z}
}

// file returns the field with the path of a database.
func (z *Zone) file(k workdir.Kind) *string {
	if k == workdir.NB {
		return &z.NB
	}
	return &z.SB
}

// zonesOf groups the nodes of a set by their southbound databases, and then by the
// northbound ones. Nodes without databases are in the only zone there is, or else in one
// of their own.
func zonesOf(nodes []Node, databases []set.Database, dirs map[string]*workdir.Dir) []Zone {
	var zones []Zone
	at := map[string]int{} // the zone of a node
	for _, k := range []workdir.Kind{workdir.SB, workdir.NB} {
		for _, d := range databases {
			if d.Kind != k {
				continue
			}
			var members []string
			for _, c := range d.Copies {
				members = append(members, c.Nodes...)
			}
			i := slices.IndexFunc(zones, func(z Zone) bool {
				return *z.file(k) == "" && slices.ContainsFunc(members, func(m string) bool { return slices.Contains(z.Nodes, m) })
			})
			if i < 0 {
				i = len(zones)
				zones = append(zones, Zone{})
			}
			*zones[i].file(k) = dirs[d.Copies[0].Nodes[0]].Database(k)
			for _, m := range members {
				if _, known := at[m]; !known {
					at[m] = i
					zones[i].Nodes = append(zones[i].Nodes, m)
				}
			}
		}
	}
	var rest []string
	for _, n := range nodes {
		if _, known := at[n.Name]; !known {
			rest = append(rest, n.Name)
		}
	}
	if len(zones) != 1 {
		zones = append(zones, Zone{})
	}
	last := &zones[len(zones)-1]
	last.Nodes = append(last.Nodes, rest...)
	return zones
}

// OpenFolder opens a session on the nodes of a set, or on the one node of a workdir.
// The version is that of this program.
func OpenFolder(ctx context.Context, folder, version string, o Options) (*Session, error) {
	all, err := set.Open(folder, version, nil)
	if err != nil {
		return nil, err
	}
	if all != nil {
		return OpenSet(ctx, all, o)
	}
	wd, err := workdir.Find(folder)
	if err != nil {
		return nil, err
	}
	return OpenWorkdir(ctx, wd, o)
}
