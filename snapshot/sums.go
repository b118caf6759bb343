package snapshot

import (
	"context"
	"os"
	"path/filepath"

	"ovs-offline/workdir"
)

// SameFiles returns the nodes whose database of a kind is the same file, by its sha256. It
// reads only files that have the size of another, and each once.
func (s *Snapshot) SameFiles(ctx context.Context, kind workdir.Kind) map[string][]*Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums[kind] == nil {
		s.sums[kind] = readSums(ctx, s.all, kind)
	}
	return s.sums[kind]
}

func readSums(ctx context.Context, all []*Node, kind workdir.Kind) map[string][]*Node {
	bySize := map[int64][]*Node{}
	for _, node := range all {
		if wd, err := node.Workdir(); err == nil {
			if info, err := os.Stat(wd.Database(kind)); err == nil {
				bySize[info.Size()] = append(bySize[info.Size()], node)
			}
		}
	}
	bySum := map[string][]*Node{}
	for _, nodes := range bySize {
		if len(nodes) < 2 {
			continue
		}
		for _, outcome := range EachOf(ctx, nodes, func(ctx context.Context, node *Node) (string, error) { return node.sum(ctx, kind) }) {
			if outcome.Err == nil { // else the start of the node returns the error
				bySum[outcome.Value] = append(bySum[outcome.Value], outcome.Node)
			}
		}
	}
	for sum, nodes := range bySum {
		if len(nodes) < 2 {
			delete(bySum, sum)
		}
	}
	return bySum
}

// sameRecorded groups the nodes by the digests that collect noted of a database, as long as the
// size of the file is still that. It reads no database, and suffices for names: whatever the
// files hold now, the names are those of one of them.
func sameRecorded(all []*Node, kind workdir.Kind) map[string][]*Node {
	groups := map[string][]*Node{}
	for _, node := range all {
		wd, err := node.Workdir()
		if err != nil {
			continue
		}
		info, err := os.Stat(wd.Database(kind))
		manifest, failed := wd.Manifest()
		if err != nil || failed != nil || manifest.Collection(kind) == nil {
			continue
		}
		for _, collected := range manifest.Collection(kind).Files {
			if filepath.Join(wd.Path(), collected.Path) == wd.Database(kind) && collected.Size == info.Size() {
				groups[collected.SHA256] = append(groups[collected.SHA256], node)
			}
		}
	}
	return groups
}

// sum returns the sha256 of the node's database of a kind.
func (n *Node) sum(ctx context.Context, kind workdir.Kind) (string, error) {
	wd, err := n.Workdir()
	if err != nil {
		return "", err
	}
	return workdir.SumOf(ctx, wd.Database(kind))
}
