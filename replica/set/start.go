package set

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Start starts replicas of the selected nodes, several at once where this machine has the
// cores and the memory. Replicas whose OVN database is the same file as another node's
// of the folder share its server. options returns the options for a node, whose functions
// are called from several goroutines; lacks is called where a replica may take more memory
// than there is. Nodes of which only logs and outputs were collected have no outcome beside others. If ctx ends, Start stops the replicas that it has started.
func (s *Set) Start(ctx context.Context, options func(*snapshot.Node) StartOptions, lacks func(node *snapshot.Node, memory string)) []snapshot.Outcome[*report.Report] {
	if s.Alone() {
		return snapshot.EachLocked(ctx, s.Snapshot, func(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (*report.Report, error) {
			return s.Node(n).Start(ctx, wd, options(n))
		})
	}
	s = s.replayable()
	locked := s.lockAll(ctx)
	defer unlockAll(locked)
	prepared := s.prepare(ctx, locked, options)
	memory := newGate()
	outcomes := snapshot.EachOf(ctx, s.Nodes(), func(ctx context.Context, node *snapshot.Node) (*report.Report, error) {
		outcome := prepared[slices.Index(s.Nodes(), node)]
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
	nodes := slices.DeleteFunc(slices.Clone(s.Nodes()), func(node *snapshot.Node) bool {
		wd, err := node.Workdir()
		return err == nil && snapshot.HoldsOnlyHost(wd)
	})
	if len(nodes) == 0 {
		return s
	}
	return s.only(nodes)
}

// preparedStart is the start of a node.
type preparedStart struct {
	wd     *workdir.Dir // locked
	start  starter
	memory int64 // that the replica takes
}

// prepare chooses the runtimes, and stops the replicas that run: once none uses them,
// shared databases are as they were collected again.
func (s *Set) prepare(ctx context.Context, locked []snapshot.Outcome[*workdir.Dir], options func(*snapshot.Node) StartOptions) []snapshot.Outcome[preparedStart] {
	shared := s.sharedDatabases(ctx)
	stopped := s.stopInPods(ctx, locked)
	return snapshot.EachOf(ctx, s.Nodes(), func(ctx context.Context, node *snapshot.Node) (start preparedStart, err error) {
		i := slices.Index(s.Nodes(), node)
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
		if start.start, err = s.Node(node).prepare(ctx, start.wd, o); err == nil {
			err = replica.Stop(ctx, start.wd, s.Node(node).Runtimes(start.wd).All(ctx)...)
		}
		return start, err
	})
}

// lockAll locks the workdirs of the selected nodes until unlockAll is called. Of two commands
// on the same nodes, one gets them all: the other ends at the first that is in use.
func (s *Set) lockAll(ctx context.Context) []snapshot.Outcome[*workdir.Dir] {
	locked := make([]snapshot.Outcome[*workdir.Dir], len(s.Nodes()))
	var inUse error
	for i, node := range s.Nodes() {
		outcome := snapshot.Outcome[*workdir.Dir]{Node: node, Err: cmp.Or(ctx.Err(), inUse)}
		if outcome.Err == nil {
			outcome.Value, outcome.Err = node.Lock()
		}
		if errors.Is(outcome.Err, workdir.ErrInUse) {
			inUse = outcome.Err
		}
		locked[i] = outcome
	}
	return locked
}

func unlockAll(locked []snapshot.Outcome[*workdir.Dir]) {
	for _, outcome := range locked {
		outcome.Value.Unlock()
	}
}

// removeIfEmpty removes the folder if it holds nothing but the lock of a collection.
func (s *Set) removeIfEmpty() {
	entries, err := os.ReadDir(s.Folder())
	if err != nil || slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return entry.Name() != ".lock" }) {
		return
	}
	if folder, err := workdir.Lock(s.Folder()); err == nil { // else another collection begins
		folder.RemoveIfEmpty()
		folder.Unlock()
	}
}

// stopStarted stops the replicas that were started.
func (s *Set) stopStarted(ctx context.Context, outcomes []snapshot.Outcome[*report.Report], prepared []snapshot.Outcome[preparedStart]) {
	snapshot.EachOf(ctx, s.Nodes(), func(ctx context.Context, node *snapshot.Node) (struct{}, error) {
		outcome := &outcomes[slices.Index(s.Nodes(), node)]
		if outcome.Err == nil {
			wd := prepared[slices.Index(s.Nodes(), node)].Value.wd
			outcome.Value, outcome.Err = nil, errors.Join(context.Canceled, replica.Stop(ctx, wd, s.Node(node).Runtimes(wd).All(ctx)...))
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
func (s *Set) sharedDatabases(ctx context.Context) map[*snapshot.Node]map[workdir.Kind]sharedDatabase {
	shared := map[*snapshot.Node]map[workdir.Kind]sharedDatabase{}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		for sum, nodes := range s.SameFiles(ctx, kind) {
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

// Stopped is the result of a stop.
type Stopped struct {
	Started bool     // a replica had been started
	Left    []string // with purge: the files that ovs-offline did not write, and that stay
}

// Stop stops the replicas of the selected nodes, and the shared database servers that none
// uses any more. With purge, it removes the collected data too, and the folder once it is
// empty.
func (s *Set) Stop(ctx context.Context, purge bool) []snapshot.Outcome[Stopped] {
	if s.Alone() {
		return snapshot.EachLocked(ctx, s.Snapshot, func(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (stopped Stopped, err error) {
			if stopped.Started, err = s.Node(n).Stop(ctx, wd); err == nil && purge {
				stopped.Left, err = wd.Purge()
			}
			return stopped, err
		})
	}
	locked := s.lockAll(ctx)
	inPods := s.stopInPods(ctx, locked)
	outcomes := snapshot.EachOf(ctx, s.Nodes(), func(ctx context.Context, node *snapshot.Node) (stopped Stopped, err error) {
		wd := locked[slices.Index(s.Nodes(), node)]
		failed, inPod := inPods[node]
		switch {
		case wd.Err != nil || failed != nil:
			return stopped, cmp.Or(wd.Err, failed)
		case inPod:
			stopped.Started = true
		default:
			stopped.Started, err = s.Node(node).Stop(ctx, wd.Value)
		}
		if err == nil && purge {
			stopped.Left, err = wd.Value.Purge()
		}
		return stopped, err
	})
	unlockAll(locked)
	if purge {
		workdir.RemoveUnused(s.Folder())
		s.removeIfEmpty()
	}
	return outcomes
}

// PurgeOwner removes the databases of the workdir that Owner returns, after Stop has purged
// all nodes. It returns the files that ovs-offline did not write, and that stay.
func (s *Set) PurgeOwner() (left []string, err error) {
	if s.Owner() == "" || len(s.Nodes()) < len(s.All().Nodes()) {
		return nil, nil
	}
	wd, err := workdir.Lock(s.Owner())
	if err != nil {
		return nil, err
	}
	defer wd.Unlock()
	return wd.Purge()
}
