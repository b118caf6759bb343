// Package k8s collects live nodes of a Kubernetes cluster, each into a workdir of
// its own. It detects which of the known layouts the cluster has, and runs commands
// in the pods of OVS and OVN. Output counts as complete only if its checksum matches.
// It writes nothing in the cluster.
package k8s

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/collect"
	"ovs-offline/internal/kube"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Options select what to collect of a cluster.
type Options struct {
	Force     bool  // replace data that the workdirs hold
	MaxBytes  int64 // number of bytes that a node may send; 0 for archive.Default's
	Nodes     []string
	All       bool   // all nodes that run OVS
	Selector  string // the nodes with these labels
	OpenShift bool   // only OpenShift's own layouts
	Layout    string // only this one
	Namespace string // instead of the layouts' own
	// Stall is how long a stream may be silent; 0 is a minute.
	Stall time.Duration
	// Patience is how long a node is tried again after a failure; 0 is 20 seconds.
	Patience time.Duration
	// Waiting is called before each pause between tries, with the node, or "" for the
	// cluster. Several goroutines call it. It may be nil.
	Waiting func(node string, pause time.Duration, cause error)
	// Report is called with a node, the current activity, and the number of bytes
	// received so far. Several goroutines call it.
	Report func(node, what string, bytes int64)
}

// Several reports whether each node gets a workdir of its own below the given one.
func (o Options) Several() bool { return o.All || o.Selector != "" || len(o.Nodes) > 1 }

// Result is the outcome of one node.
type Result struct {
	Node        string
	Layout      string
	Workdir     string
	Collections []workdir.Collection
	Err         error // why nothing was collected; the workdir is unchanged then
}

// maxParallel is how many nodes are collected at the same time.
const maxParallel = 10

// Collect collects nodes into the workdir at path, or, if there are several, into
// workdirs below it that have the nodes' names. The error concerns all nodes; an
// error of one node is in its result.
func Collect(ctx context.Context, cluster *Cluster, path string, opts Options) ([]Result, error) {
	chosen, err := choose(opts.Layout, opts.Namespace, opts.OpenShift)
	if err != nil {
		return nil, err
	}
	survey, nodes, err := surveyNodes(ctx, cluster, chosen, opts)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(nodes))
	for i, name := range nodes {
		place, err := collect.Place(path, name, opts.Several())
		if err != nil {
			return nil, err
		}
		results[i] = Result{Node: name, Workdir: place}
	}
	return results, survey.collectAll(ctx, path, results, opts)
}

// surveyNodes returns the survey of the cluster, and the nodes to collect. A server that
// has answered once is asked again if it does not.
func surveyNodes(ctx context.Context, cluster *Cluster, layouts []layout, opts Options) (s *survey, nodes []string, err error) {
	cluster.Version, err = cluster.API.Version(ctx)
	if ctx.Err() != nil || kube.Unavailable(err) {
		return nil, nil, kube.Explain(err, "asking the API server "+cluster.Name)
	}
	err = opts.patience("").persist(ctx, func(bool) error {
		if s, err = queryLayouts(ctx, cluster, layouts); err == nil {
			nodes, err = s.chosen(ctx, opts)
		}
		if err != nil {
			return judged{err, !kube.Unavailable(err)}
		}
		return nil
	})
	return s, nodes, err
}

// patience returns the patience with a node, "" for the cluster.
func (o Options) patience(node string) *patience {
	return &patience{limit: o.Patience, waiting: func(pause time.Duration, cause error) {
		if o.Waiting != nil {
			o.Waiting(node, pause, cause)
		}
	}}
}

// chosen returns the nodes to collect.
func (s *survey) chosen(ctx context.Context, opts Options) ([]string, error) {
	switch {
	case opts.Selector != "":
		nodes, err := s.cluster.Nodes(ctx, opts.Selector)
		if err == nil && len(nodes) == 0 {
			err = fmt.Errorf("no node has the labels %q", opts.Selector)
		}
		return nodes, err
	case opts.All:
		nodes := s.nodes()
		if len(nodes) == 0 {
			return nil, s.noLayoutError(ctx, "")
		}
		return nodes, nil
	}
	return slices.Compact(slices.Sorted(slices.Values(opts.Nodes))), nil
}

func (s *survey) collectAll(ctx context.Context, path string, results []Result, opts Options) error {
	opts.Stall = cmp.Or(opts.Stall, defaultStall)
	var common *shared
	if opts.Several() {
		var err error
		if common, err = s.makeShared(path, opts); err != nil {
			return err
		}
		defer os.RemoveAll(common.spool)
	}
	permitted := permissions{cluster: s.cluster}
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i := range results {
		group.Go(func() error { s.collectOne(ctx, &results[i], common, &permitted, opts); return nil })
	}
	_ = group.Wait() // each error is in a result
	return ctx.Err()
}

// makeShared makes a spool folder for the databases that all nodes share, on the
// disk of their workdirs.
func (s *survey) makeShared(path string, opts Options) (*shared, error) {
	if _, err := workdir.Find(path); err != nil { // for example another user's
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s can't be created: %w; choose another with -w", path, err)
	}
	dir, err := os.MkdirTemp(path, ".incoming-cluster-*")
	if err != nil {
		return nil, fmt.Errorf("workdir %s can't be written to: %w; choose another with -w", path, err)
	}
	return &shared{transfer: transfer{exec: s.cluster, spool: dir, stall: opts.Stall, patience: opts.patience(""), maxBytes: opts.MaxBytes}}, nil
}

// collectOne collects one node into its workdir, and sets the result.
func (s *survey) collectOne(ctx context.Context, result *Result, common *shared, permitted *permissions, opts Options) {
	var received atomic.Int64
	notify := func(what string) {
		if opts.Report != nil {
			opts.Report(result.Node, what, received.Load())
		}
	}
	add := func(n int) {
		received.Add(int64(n))
		notify("collecting")
	}
	result.Err = func() error {
		layout, err := s.layoutOf(ctx, result.Node)
		if err != nil {
			return err
		}
		result.Layout = layout.name
		wd, err := workdir.Lock(result.Workdir)
		if err != nil {
			return err
		}
		defer wd.Unlock()
		source := &nodeSource{survey: s, layout: layout, permitted: permitted, shared: common, node: s.newNode(result.Node, layout),
			transfer: transfer{exec: s.cluster, stall: opts.Stall, patience: opts.patience(result.Node), maxBytes: opts.MaxBytes, received: add}}
		written, _, err := collect.Collect(ctx, wd, source, collect.Options{Force: opts.Force})
		if err == nil {
			result.Collections = written[0].Collections
		}
		return err
	}()
	if result.Err != nil {
		notify("failed")
		return
	}
	notify("collected")
}

// newNode returns the node without any output.
func (s *survey) newNode(name string, layout layout) *recording.Recording {
	tool := "layout " + layout.name
	if s.cluster.Version != "" {
		tool = "Kubernetes " + s.cluster.Version + ", " + tool
	}
	return &recording.Recording{Host: name, Taken: recording.Moment{At: time.Now().UTC()}, LostDatabases: map[workdir.Kind][]string{},
		Source: workdir.Source{Kind: "Kubernetes cluster", Name: s.cluster.Name, Tool: tool}}
}
