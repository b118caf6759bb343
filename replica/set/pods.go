package set

import (
	"context"
	"errors"
	"slices"

	"ovs-offline/replica"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/report"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// StartInPods starts replicas of the selected nodes in the pods of a cluster, and
// replaces replicas that run. An error concerns all nodes.
func (s *Set) StartInPods(ctx context.Context, options pods.Options) ([]snapshot.Outcome[*report.Report], error) {
	if s.Alone() {
		return snapshot.EachLocked(ctx, s.Snapshot, func(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (*report.Report, error) {
			return s.Node(n).StartInPod(ctx, wd, options)
		}), nil
	}
	locked := s.lockAll(ctx)
	defer unlockAll(locked)
	shared := s.sharedDatabases(ctx)
	prepared := snapshot.EachOf(ctx, s.Nodes(), func(ctx context.Context, node *snapshot.Node) (pods.Workdir, error) {
		outcome := locked[slices.Index(s.Nodes(), node)]
		if outcome.Err != nil {
			return pods.Workdir{}, outcome.Err
		}
		return s.Node(node).forPod(ctx, outcome.Value, shared[node])
	})
	outcomes := make([]snapshot.Outcome[*report.Report], len(prepared))
	var nodes []pods.Workdir
	var of []*snapshot.Outcome[*report.Report]
	for i, outcome := range prepared {
		outcomes[i] = snapshot.Outcome[*report.Report]{Node: outcome.Node, Err: outcome.Err}
		if outcome.Err == nil {
			nodes, of = append(nodes, outcome.Value), append(of, &outcomes[i])
		}
	}
	if len(nodes) == 0 {
		return outcomes, nil
	}
	options.Path, options.Before = s.Folder(), func(ctx context.Context) error { return s.stopBefore(ctx, locked, options.Say) }
	started, err := s.clusters.Start(ctx, nodes, options)
	if err != nil {
		return nil, err
	}
	for i, outcome := range started {
		of[i].Value, of[i].Err = outcome.Report, outcome.Err
	}
	return outcomes, nil
}

// StartInPod works like StartInPods for one node, whose workdir is locked.
func (n *Node) StartInPod(ctx context.Context, wd *workdir.Dir, options pods.Options) (*report.Report, error) {
	node, err := n.forPod(ctx, wd, nil)
	if err != nil {
		return nil, err
	}
	options.Path, options.Before = wd.Path(), func(ctx context.Context) error {
		_, err := n.Stop(ctx, wd)
		if errors.Is(err, pods.ErrRemains) {
			options.Say("", remainsWarning(err))
			err = replica.Stop(ctx, wd)
		}
		return err
	}
	started, err := n.clusters.Start(ctx, []pods.Workdir{node}, options)
	if err != nil {
		return nil, err
	}
	return started[0].Report, started[0].Err
}

// remainsWarning returns the line about a former start whose pods end later. Another start need
// not wait for that: no command is led to them.
func remainsWarning(err error) string { return "warning: the replicas that ran before: " + err.Error() }

// stopBefore stops the replicas of the selected nodes whose workdirs are locked.
func (s *Set) stopBefore(ctx context.Context, locked []snapshot.Outcome[*workdir.Dir], notify func(node, text string)) error {
	inPods := s.stopInPods(ctx, locked)
	printed := map[string]bool{}
	for node, err := range inPods {
		if !errors.Is(err, pods.ErrRemains) {
			continue
		}
		if text := remainsWarning(err); !printed[text] {
			printed[text] = true
			notify("", text)
		}
		inPods[node] = replica.Stop(ctx, locked[slices.Index(s.Nodes(), node)].Value)
	}
	stopped := snapshot.EachOf(ctx, s.Nodes(), func(ctx context.Context, node *snapshot.Node) (struct{}, error) {
		outcome := locked[slices.Index(s.Nodes(), node)]
		err, was := inPods[node]
		if outcome.Err == nil && !was {
			_, err = s.Node(node).Stop(ctx, outcome.Value)
		}
		return struct{}{}, err
	})
	var errs []error
	for _, outcome := range stopped {
		errs = append(errs, outcome.Err)
	}
	return errors.Join(errs...)
}

// forPod returns the node as package pods takes it.
func (n *Node) forPod(ctx context.Context, wd *workdir.Dir, shared map[workdir.Kind]sharedDatabase) (pods.Workdir, error) {
	node := pods.Workdir{Name: n.FolderName(), Dir: wd, Shared: map[string]int64{}}
	if !workdir.IsNodeName(node.Name) {
		node.Name = workdir.EncodeName(node.Name)
	}
	var err error
	if node.Recorded, err = replica.Recorded(ctx, wd); err != nil {
		return node, err
	}
	var databases map[workdir.Kind]int64
	node.Memory, databases = memoryParts(wd)
	for kind, size := range databases {
		if digest, is := shared[kind]; is {
			node.Shared[string(kind)+" "+digest.sum] = size
		} else {
			node.Memory += size
		}
	}
	return node, nil
}

// stopInPod stops the replica of the node, whose workdir is locked, if it was started in a
// cluster, and reports whether it was.
func (n *Node) stopInPod(ctx context.Context, wd *workdir.Dir) (was bool, err error) {
	if place, err := pods.PlaceOf(wd); place == nil || err != nil {
		return false, nil // a damaged replica.json names no cluster
	}
	return true, n.clusters.Stop(ctx, []*workdir.Dir{wd})[0]
}

// stopInPods works like stopInPod for all selected nodes. The nodes whose replica was
// started in a cluster have an entry.
func (s *Set) stopInPods(ctx context.Context, locked []snapshot.Outcome[*workdir.Dir]) map[*snapshot.Node]error {
	var wds []*workdir.Dir
	var nodes []*snapshot.Node
	for i, outcome := range locked {
		if outcome.Err != nil {
			continue
		}
		if place, err := pods.PlaceOf(outcome.Value); place != nil && err == nil {
			wds, nodes = append(wds, outcome.Value), append(nodes, s.Nodes()[i])
		}
	}
	stopped := map[*snapshot.Node]error{}
	if len(nodes) == 0 {
		return stopped
	}
	for i, err := range s.clusters.Stop(ctx, wds) {
		stopped[nodes[i]] = err
	}
	return stopped
}

// statusInPod returns the status of a replica in a pod, as ovs-offline in it reads it.
func statusInPod(ctx context.Context, wd *workdir.Dir, state replica.State) (status replica.Status, err error) {
	if err := DocumentInPod(ctx, wd, &status, "status"); err != nil {
		return replica.Status{}, err
	}
	status.Workdir, status.Runtime = wd.Path(), state.Runtime
	for i := range status.Daemons {
		status.Daemons[i].Container = state.Pod.Namespace + "/" + state.Pod.Pod
	}
	return status, nil
}

// DocumentInPod reads the document that a command of ovs-offline prints in the pod of the
// workdir's replica.
func DocumentInPod(ctx context.Context, wd *workdir.Dir, value any, args ...string) error {
	links, err := link.From(ctx)
	if err != nil {
		return err
	}
	return links.Document(ctx, wd, value, args...)
}
