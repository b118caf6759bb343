package snapshot

import (
	"context"
	"path/filepath"

	"ovs-offline/workdir"
)

// Newest is the newest copy of an OVN database, in a workdir. It is named after a node that
// has it; the name is "" for the only database of its kind.
type Newest struct {
	Name  string
	Kind  workdir.Kind
	Dir   *workdir.Dir
	Nodes []*workdir.Dir // all that have a copy
}

// Newest returns the newest copy of each OVN database of some kinds, and sentences about what
// the copies that are left out have of their own. The database of a workdir alone is not read, and
// may be missing.
func (s *Snapshot) Newest(ctx context.Context, kinds ...workdir.Kind) (list []Newest, remarks []string, err error) {
	if s.Alone() {
		wd, err := s.nodes[0].Workdir()
		for _, k := range kinds {
			list = append(list, Newest{Kind: k, Dir: wd, Nodes: []*workdir.Dir{wd}})
		}
		return list, nil, err
	}
	databases, problems, err := s.Databases(ctx, kinds...)
	if err != nil {
		return nil, nil, err
	}
	count := map[workdir.Kind]int{}
	for _, d := range databases {
		count[d.Kind]++
	}
	for _, d := range databases {
		found := Newest{Kind: d.Kind}
		for _, name := range d.members() {
			wd, err := workdir.Find(filepath.Join(s.folder, name))
			if err != nil {
				return nil, nil, err
			}
			found.Nodes = append(found.Nodes, wd)
		}
		found.Dir = found.Nodes[0]
		if count[d.Kind] > 1 {
			found.Name = d.Copies[0].Nodes[0]
		}
		list = append(list, found)
	}
	return list, append(problems, Sentences(databases)...), nil
}
