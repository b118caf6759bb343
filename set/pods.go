package set

import (
	"context"
	"errors"
	"slices"

	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/pods/link"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
)

// StartInPods starts replicas of the selected nodes in the pods of a cluster, in place of
// those that run. An error concerns all nodes.
func (s *Set) StartInPods(ctx context.Context, o pods.Options) ([]Outcome[*report.Report], error) {
	locked := s.lockAll(ctx)
	defer unlockAll(locked)
	shared := s.sharedDatabases(ctx)
	prepared := each(ctx, s.nodes, func(ctx context.Context, n *Node) (pods.Node, error) {
		l := locked[slices.Index(s.nodes, n)]
		if l.Err != nil {
			return pods.Node{}, l.Err
		}
		return n.forPod(ctx, l.Value, shared[n])
	})
	outcomes := make([]Outcome[*report.Report], len(prepared))
	var nodes []pods.Node
	var of []*Outcome[*report.Report]
	for i, p := range prepared {
		outcomes[i] = Outcome[*report.Report]{Node: p.Node, Err: p.Err}
		if p.Err == nil {
			nodes, of = append(nodes, p.Value), append(of, &outcomes[i])
		}
	}
	if len(nodes) == 0 {
		return outcomes, nil
	}
	o.Path, o.Before = s.folder, func(ctx context.Context) error { return s.stopBefore(ctx, locked, o.Say) }
	started, err := s.nodes[0].clusters.Start(ctx, nodes, o)
	if err != nil {
		return nil, err
	}
	for i, outcome := range started {
		of[i].Value, of[i].Err = outcome.Report, outcome.Err
	}
	return outcomes, nil
}

// StartInPod works like StartInPods for one node, whose workdir is locked.
func (n *Node) StartInPod(ctx context.Context, wd *workdir.Dir, o pods.Options) (*report.Report, error) {
	node, err := n.forPod(ctx, wd, nil)
	if err != nil {
		return nil, err
	}
	o.Path, o.Before = wd.Path(), func(ctx context.Context) error {
		_, err := n.Stop(ctx, wd)
		if errors.Is(err, pods.ErrRemains) {
			o.Say("", remains(err))
			err = replica.Stop(ctx, wd)
		}
		return err
	}
	started, err := n.clusters.Start(ctx, []pods.Node{node}, o)
	if err != nil {
		return nil, err
	}
	return started[0].Report, started[0].Err
}

// remains returns the line about a former start, of which pods end later. Another start need
// not wait for that: no command is led to them.
func remains(err error) string { return "warning: the replicas that ran before: " + err.Error() }

// stopBefore stops the replicas of the selected nodes whose workdirs are locked.
func (s *Set) stopBefore(ctx context.Context, locked []Outcome[*workdir.Dir], say func(node, text string)) error {
	inPods := s.stopInPods(ctx, locked)
	said := map[string]bool{}
	for n, err := range inPods {
		if !errors.Is(err, pods.ErrRemains) {
			continue
		}
		if text := remains(err); !said[text] {
			said[text] = true
			say("", text)
		}
		inPods[n] = replica.Stop(ctx, locked[slices.Index(s.nodes, n)].Value)
	}
	stopped := each(ctx, s.nodes, func(ctx context.Context, n *Node) (struct{}, error) {
		l := locked[slices.Index(s.nodes, n)]
		err, was := inPods[n]
		if l.Err == nil && !was {
			_, err = n.Stop(ctx, l.Value)
		}
		return struct{}{}, err
	})
	var errs []error
	for _, o := range stopped {
		errs = append(errs, o.Err)
	}
	return errors.Join(errs...)
}

// forPod returns the node as package pods takes it.
func (n *Node) forPod(ctx context.Context, wd *workdir.Dir, shared map[workdir.Kind]sharedDatabase) (pods.Node, error) {
	node := pods.Node{Name: n.Name, Dir: wd, Shared: map[string]int64{}}
	if !workdir.IsNodeName(node.Name) {
		node.Name = workdir.EncodeName(node.Name)
	}
	var err error
	if node.Recorded, err = replica.Recorded(ctx, wd); err != nil {
		return node, err
	}
	var databases map[workdir.Kind]int64
	node.Memory, databases = memoryParts(wd)
	for k, size := range databases {
		if digest, is := shared[k]; is {
			node.Shared[string(k)+" "+digest.sum] = size
		} else {
			node.Memory += size
		}
	}
	return node, nil
}

// stopInPod stops the replica of the node, whose workdir is locked, if it was started in a
// cluster, and reports whether it was.
func (n *Node) stopInPod(ctx context.Context, wd *workdir.Dir) (was bool, err error) {
	if p, err := pods.PlaceOf(wd); p == nil || err != nil {
		return false, nil // a damaged replica.json names no cluster
	}
	return true, n.clusters.Stop(ctx, []*workdir.Dir{wd})[0]
}

// stopInPods works like stopInPod for all selected nodes. The nodes whose replica was
// started in a cluster have an entry.
func (s *Set) stopInPods(ctx context.Context, locked []Outcome[*workdir.Dir]) map[*Node]error {
	var wds []*workdir.Dir
	var nodes []*Node
	for i, l := range locked {
		if l.Err != nil {
			continue
		}
		if p, err := pods.PlaceOf(l.Value); p != nil && err == nil {
			wds, nodes = append(wds, l.Value), append(nodes, s.nodes[i])
		}
	}
	stopped := map[*Node]error{}
	if len(nodes) == 0 {
		return stopped
	}
	for i, err := range nodes[0].clusters.Stop(ctx, wds) {
		stopped[nodes[i]] = err
	}
	return stopped
}

// statusInPod returns the status of a replica in a pod, as ovs-offline in it reads it.
func statusInPod(ctx context.Context, wd *workdir.Dir, state replica.State) (s replica.Status, err error) {
	if err := DocumentInPod(ctx, wd, &s, "status"); err != nil {
		return replica.Status{}, err
	}
	s.Workdir, s.Runtime = wd.Path(), state.Runtime
	for i := range s.Daemons {
		s.Daemons[i].Container = state.Pod.Namespace + "/" + state.Pod.Pod
	}
	return s, nil
}

// DocumentInPod reads the document that a command of ovs-offline prints in the pod of the
// workdir's replica.
func DocumentInPod(ctx context.Context, wd *workdir.Dir, v any, args ...string) error {
	links, err := link.From(ctx)
	if err != nil {
		return err
	}
	return links.Document(ctx, wd, v, args...)
}
