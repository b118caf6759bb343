package set

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
)

// Start starts replicas of the selected nodes, several at once where this machine has the
// cores and the memory. Those whose OVN database is the same file as that of another node
// of the folder share its server. options returns the options for a node, whose functions
// are called from several goroutines; lacks is called where a replica may take more memory
// than there is. If ctx ends, no replica is left of those that Start has started.
func (s *Set) Start(ctx context.Context, options func(*Node) StartOptions, lacks func(n *Node, memory string)) []Outcome[*report.Report] {
	locked := s.lockAll(ctx)
	defer unlockAll(locked)
	prepared := s.prepare(ctx, locked, options)
	memory := newGate()
	outcomes := each(ctx, s.nodes, func(ctx context.Context, n *Node) (*report.Report, error) {
		p := prepared[slices.Index(s.nodes, n)]
		if p.Err != nil {
			return nil, p.Err
		}
		lacking, err := memory.enter(ctx, p.Value.memory)
		if err != nil {
			return nil, err
		}
		defer memory.leave(p.Value.memory)
		if lacking != "" {
			lacks(n, lacking)
		}
		return p.Value.start(ctx)
	})
	if ctx.Err() != nil {
		s.undo(context.WithoutCancel(ctx), outcomes, prepared)
	}
	return outcomes
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
	stopped := s.stopInPods(ctx, locked)
	return each(ctx, s.nodes, func(ctx context.Context, n *Node) (p preparedStart, err error) {
		i := slices.Index(s.nodes, n)
		if p.wd, err = locked[i].Value, cmp.Or(locked[i].Err, stopped[n]); err != nil {
			return p, err
		}
		o := options(n)
		users := map[workdir.Kind]int{}
		o.shared = map[workdir.Kind]string{}
		for k, digest := range shared[n] {
			o.shared[k], users[k] = digest.sum, digest.nodes
		}
		p.memory = memoryNeed(p.wd, users)
		if p.start, err = n.prepare(ctx, p.wd, o); err == nil {
			err = replica.Stop(ctx, p.wd, n.Runtimes(p.wd).All(ctx)...)
		}
		return p, err
	})
}

// lockAll locks the workdirs of the selected nodes until unlockAll is called. Of two commands
// on the same nodes, one gets them all: the other ends at the first that is in use.
func (s *Set) lockAll(ctx context.Context) []Outcome[*workdir.Dir] {
	locked := make([]Outcome[*workdir.Dir], len(s.nodes))
	var inUse error
	for i, n := range s.nodes {
		o := Outcome[*workdir.Dir]{Node: n, Err: cmp.Or(ctx.Err(), inUse)}
		if o.Err == nil {
			o.Value, o.Err = workdir.Lock(n.path)
		}
		if errors.Is(o.Err, workdir.ErrInUse) {
			inUse = o.Err
		}
		locked[i] = o
	}
	return locked
}

func unlockAll(locked []Outcome[*workdir.Dir]) {
	for _, l := range locked {
		l.Value.Unlock()
	}
}

// removeIfEmpty removes the folder if it holds nothing but the lock of a collection.
func (s *Set) removeIfEmpty() {
	entries, err := os.ReadDir(s.folder)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != ".lock" }) {
		return
	}
	if folder, err := workdir.Lock(s.folder); err == nil { // else another collection begins
		folder.RemoveIfEmpty()
		folder.Unlock()
	}
}

// undo stops the replicas that were started.
func (s *Set) undo(ctx context.Context, outcomes []Outcome[*report.Report], prepared []Outcome[preparedStart]) {
	each(ctx, s.nodes, func(ctx context.Context, n *Node) (struct{}, error) {
		o := &outcomes[slices.Index(s.nodes, n)]
		if o.Err == nil {
			wd := prepared[slices.Index(s.nodes, n)].Value.wd
			o.Value, o.Err = nil, errors.Join(context.Canceled, replica.Stop(ctx, wd, n.Runtimes(wd).All(ctx)...))
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
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		for sum, nodes := range s.bySum(ctx, k) {
			for _, n := range nodes {
				if shared[n] == nil {
					shared[n] = map[workdir.Kind]sharedDatabase{}
				}
				shared[n][k] = sharedDatabase{sum, len(nodes)}
			}
		}
	}
	return shared
}

// bySum returns the nodes whose database of a kind is the same file, by its sha256. It
// reads only files that have the size of another, and each once.
func (s *Set) bySum(ctx context.Context, k workdir.Kind) map[string][]*Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums[k] == nil {
		s.sums[k] = s.readSums(ctx, k)
	}
	return s.sums[k]
}

func (s *Set) readSums(ctx context.Context, k workdir.Kind) map[string][]*Node {
	bySize := map[int64][]*Node{}
	for _, n := range s.all {
		if wd, err := n.Workdir(); err == nil {
			if info, err := os.Stat(wd.Database(k)); err == nil {
				bySize[info.Size()] = append(bySize[info.Size()], n)
			}
		}
	}
	bySum := map[string][]*Node{}
	for _, nodes := range bySize {
		if len(nodes) < 2 {
			continue
		}
		for _, o := range each(ctx, nodes, func(ctx context.Context, n *Node) (string, error) { return n.sum(ctx, k) }) {
			if o.Err == nil { // else the start of the node returns the error
				bySum[o.Value] = append(bySum[o.Value], o.Node)
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

// sum returns the sha256 of the node's database of a kind.
func (n *Node) sum(ctx context.Context, k workdir.Kind) (string, error) {
	wd, err := n.Workdir()
	if err != nil {
		return "", err
	}
	f, err := os.Open(wd.Database(k))
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, interrupt.Reader(ctx, f))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Stopped is what a stop found.
type Stopped struct {
	Started bool     // a replica had been started
	Left    []string // with purge: the files that ovs-offline did not write, and that stay
}

// Stop stops the replicas of the selected nodes, and the shared database servers that none
// uses any more. With purge, it removes the collected data too, and the folder once it is
// empty.
func (s *Set) Stop(ctx context.Context, purge bool) []Outcome[Stopped] {
	locked := s.lockAll(ctx)
	inPods := s.stopInPods(ctx, locked)
	outcomes := each(ctx, s.nodes, func(ctx context.Context, n *Node) (stopped Stopped, err error) {
		wd := locked[slices.Index(s.nodes, n)]
		failed, inPod := inPods[n]
		switch {
		case wd.Err != nil || failed != nil:
			return stopped, cmp.Or(wd.Err, failed)
		case inPod:
			stopped.Started = true
		default:
			stopped.Started, err = n.Stop(ctx, wd.Value)
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
