package set

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
)

// Start starts replicas of the selected nodes, several at once where this machine has the
// cores and the memory. Replicas whose OVN database is the same file as another node's
// of the folder share its server. options returns the options for a node, whose functions
// are called from several goroutines; lacks is called where a replica may take more memory
// than there is. Nodes of which only logs and outputs were collected have no outcome beside others. If ctx ends, Start stops the replicas that it has started.
func (s *Set) Start(ctx context.Context, options func(*Node) StartOptions, lacks func(node *Node, memory string)) []Outcome[*report.Report] {
	if s.Alone() {
		return EachLocked(ctx, s, func(ctx context.Context, n *Node, wd *workdir.Dir) (*report.Report, error) {
			return n.Start(ctx, wd, options(n))
		})
	}
	s = s.replayable()
	locked := s.lockAll(ctx)
	defer unlockAll(locked)
	prepared := s.prepare(ctx, locked, options)
	memory := newGate()
	outcomes := each(ctx, s.nodes, func(ctx context.Context, node *Node) (*report.Report, error) {
		outcome := prepared[slices.Index(s.nodes, node)]
		if outcome.Err != nil {
			return nil, outcome.Err
		}
		lacking, err := memory.enter(ctx, outcome.Value.memory)
		if err != nil {
			return nil, err
		}
		defer memory.leave(outcome.Value.memory)
		if lacking != "" {
			lacks(node, lacking)
		}
		return outcome.Value.start(ctx)
	})
	if ctx.Err() != nil {
		s.stopStarted(context.WithoutCancel(ctx), outcomes, prepared)
	}
	return outcomes
}

// replayable returns the set without the nodes of which only logs and outputs were collected, unless all
// are such.
func (s *Set) replayable() *Set {
	nodes := slices.DeleteFunc(slices.Clone(s.nodes), func(node *Node) bool {
		wd, err := node.Workdir()
		return err == nil && replica.HoldsOnlyHost(wd)
	})
	if len(nodes) == 0 {
		return s
	}
	return &Set{folder: s.folder, owner: s.owner, all: s.all, nodes: nodes, links: s.links, sums: map[workdir.Kind]map[string][]*Node{}}
}

// preparedStart is the start of a node.
type preparedStart struct {
	wd     *workdir.Dir // locked
	start  starter
	memory int64 // that the replica takes
}

// prepare chooses the runtimes, and stops the replicas that run: once none uses them,
// shared databases are as they were collected again.
func (s *Set) prepare(ctx context.Context, locked []Outcome[*workdir.Dir], options func(*Node) StartOptions) []Outcome[preparedStart] {
	shared := s.sharedDatabases(ctx)
	stopped := stopInPods(ctx, s.nodes, locked)
	return each(ctx, s.nodes, func(ctx context.Context, node *Node) (start preparedStart, err error) {
		i := slices.Index(s.nodes, node)
		if start.wd, err = locked[i].Value, cmp.Or(locked[i].Err, stopped[node]); err != nil {
			return start, err
		}
		o := options(node)
		users := map[workdir.Kind]int{}
		o.shared = map[workdir.Kind]string{}
		for kind, digest := range shared[node] {
			o.shared[kind], users[kind] = digest.sum, digest.nodes
		}
		start.memory = memoryNeed(start.wd, users)
		if start.start, err = node.prepare(ctx, start.wd, o); err == nil {
			err = replica.Stop(ctx, start.wd, node.Runtimes(start.wd).All(ctx)...)
		}
		return start, err
	})
}

// lockAll locks the workdirs of the selected nodes until unlockAll is called. Of two commands
// on the same nodes, one gets them all: the other ends at the first that is in use.
func (s *Set) lockAll(ctx context.Context) []Outcome[*workdir.Dir] {
	locked := make([]Outcome[*workdir.Dir], len(s.nodes))
	var inUse error
	for i, node := range s.nodes {
		outcome := Outcome[*workdir.Dir]{Node: node, Err: cmp.Or(ctx.Err(), inUse)}
		if outcome.Err == nil {
			outcome.Value, outcome.Err = workdir.Lock(node.path)
		}
		if errors.Is(outcome.Err, workdir.ErrInUse) {
			inUse = outcome.Err
		}
		locked[i] = outcome
	}
	return locked
}

func unlockAll(locked []Outcome[*workdir.Dir]) {
	for _, outcome := range locked {
		outcome.Value.Unlock()
	}
}

// removeIfEmpty removes the folder if it holds nothing but the lock of a collection.
func (s *Set) removeIfEmpty() {
	entries, err := os.ReadDir(s.folder)
	if err != nil || slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return entry.Name() != ".lock" }) {
		return
	}
	if folder, err := workdir.Lock(s.folder); err == nil { // else another collection begins
		folder.RemoveIfEmpty()
		folder.Unlock()
	}
}

// stopStarted stops the replicas that were started.
func (s *Set) stopStarted(ctx context.Context, outcomes []Outcome[*report.Report], prepared []Outcome[preparedStart]) {
	each(ctx, s.nodes, func(ctx context.Context, node *Node) (struct{}, error) {
		outcome := &outcomes[slices.Index(s.nodes, node)]
		if outcome.Err == nil {
			wd := prepared[slices.Index(s.nodes, node)].Value.wd
			outcome.Value, outcome.Err = nil, errors.Join(context.Canceled, replica.Stop(ctx, wd, node.Runtimes(wd).All(ctx)...))
		}
		return struct{}{}, nil
	})
}

// sharedDatabase is a database that several nodes have.
type sharedDatabase struct {
	sum   string // sha256 of the file
	nodes int
}

// sharedDatabases returns the OVN databases of each node that other nodes of the folder
// have as well, selected or not. The files are compared, not the digests in the manifests:
// a user may have replaced one.
func (s *Set) sharedDatabases(ctx context.Context) map[*Node]map[workdir.Kind]sharedDatabase {
	shared := map[*Node]map[workdir.Kind]sharedDatabase{}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		for sum, nodes := range s.bySum(ctx, kind) {
			for _, node := range nodes {
				if shared[node] == nil {
					shared[node] = map[workdir.Kind]sharedDatabase{}
				}
				shared[node][kind] = sharedDatabase{sum, len(nodes)}
			}
		}
	}
	return shared
}

// bySum returns the nodes whose database of a kind is the same file, by its sha256. It
// reads only files that have the size of another, and each once.
func (s *Set) bySum(ctx context.Context, kind workdir.Kind) map[string][]*Node {
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
		for _, outcome := range each(ctx, nodes, func(ctx context.Context, node *Node) (string, error) { return node.sum(ctx, kind) }) {
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

// Stopped is the result of a stop.
type Stopped struct {
	Started bool     // a replica had been started
	Left    []string // with purge: the files that ovs-offline did not write, and that stay
}

// Stop stops the replicas of the selected nodes, and the shared database servers that none
// uses any more. With purge, it removes the collected data too, and the folder once it is
// empty.
func (s *Set) Stop(ctx context.Context, purge bool) []Outcome[Stopped] {
	if s.Alone() {
		return EachLocked(ctx, s, func(ctx context.Context, n *Node, wd *workdir.Dir) (stopped Stopped, err error) {
			if stopped.Started, err = n.Stop(ctx, wd); err == nil && purge {
				stopped.Left, err = wd.Purge()
			}
			return stopped, err
		})
	}
	locked := s.lockAll(ctx)
	inPods := stopInPods(ctx, s.nodes, locked)
	outcomes := each(ctx, s.nodes, func(ctx context.Context, node *Node) (stopped Stopped, err error) {
		wd := locked[slices.Index(s.nodes, node)]
		failed, inPod := inPods[node]
		switch {
		case wd.Err != nil || failed != nil:
			return stopped, cmp.Or(wd.Err, failed)
		case inPod:
			stopped.Started = true
		default:
			stopped.Started, err = node.Stop(ctx, wd.Value)
		}
		if err == nil && purge {
			stopped.Left, err = wd.Value.Purge()
		}
		return stopped, err
	})
	unlockAll(locked)
	if purge {
		workdir.RemoveUnused(s.folder)
		s.removeIfEmpty()
	}
	return outcomes
}

// PurgeOwner removes the databases of the workdir that Owner returns, after Stop has purged
// all nodes. It returns the files that ovs-offline did not write, and that stay.
func (s *Set) PurgeOwner() (left []string, err error) {
	if s.owner == "" || len(s.nodes) < len(s.all) {
		return nil, nil
	}
	wd, err := workdir.Lock(s.owner)
	if err != nil {
		return nil, err
	}
	defer wd.Unlock()
	return wd.Purge()
}
