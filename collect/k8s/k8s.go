// Package k8s collects live nodes of a Kubernetes cluster, each into a workdir.
// It finds out which of the known layouts the cluster has, asks the node's OVS
// and its OVN databases by commands in their pods, and takes nothing for whole
// that is not proven to be. Nothing is written over there.
package k8s

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ovs-offline/collect"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// Options say what to collect of a cluster.
type Options struct {
	collect.Options // its Progress is not used
	Nodes           []string
	All             bool   // all nodes that run OVS
	Selector        string // the nodes with these labels
	OpenShift       bool   // only OpenShift's own layouts
	Layout          string // only this one
	Namespace       string // in place of the layouts' own
	// Stall is how long a stream may be silent; 0 is a minute.
	Stall time.Duration
	// Report is told of a node what is done with it, and how many bytes came
	// so far. It is called from several goroutines.
	Report func(node, what string, bytes int64)
}

// Several tells whether each node gets a workdir of its own below the one given.
func (o Options) Several() bool { return o.All || o.Selector != "" || len(o.Nodes) > 1 }

// Result is what became of a node.
type Result struct {
	Node        string
	Layout      string
	Workdir     string
	Collections []workdir.Collection
	Err         error // nothing was collected, and the workdir is as it was
}

// atOnce bounds how many nodes are collected at the same time.
const atOnce = 10

// Collect collects nodes into the workdir at path; several into workdirs below
// it, which carry their names. The error is about all of them; what befell one
// is in its result.
func Collect(ctx context.Context, c *Cluster, path string, opts Options) ([]Result, error) {
	chosen, err := choose(opts.Layout, opts.Namespace, opts.OpenShift)
	if err != nil {
		return nil, err
	}
	s, err := look(ctx, c, chosen)
	if err != nil {
		return nil, err
	}
	if version, err := c.API.Discovery().ServerVersionWithContext(ctx); err == nil {
		c.Version = version.GitVersion
	}
	nodes, err := s.chosen(ctx, opts)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(nodes))
	for i, name := range nodes {
		results[i] = Result{Node: name, Workdir: path}
		if opts.Several() {
			results[i].Workdir = filepath.Join(path, workdir.EncodeName(name))
		}
	}
	return results, s.collectAll(ctx, path, results, opts)
}

// chosen are the nodes to collect.
func (s *survey) chosen(ctx context.Context, opts Options) ([]string, error) {
	switch {
	case opts.Selector != "":
		return s.selected(ctx, opts.Selector)
	case opts.All:
		nodes := s.nodes()
		if len(nodes) == 0 {
			return nil, s.nothing(ctx, "")
		}
		return nodes, nil
	}
	return slices.Compact(slices.Sorted(slices.Values(opts.Nodes))), nil
}

func (s *survey) collectAll(ctx context.Context, path string, results []Result, opts Options) error {
	if opts.Stall == 0 {
		opts.Stall = defaultStall
	}
	var common *shared
	if opts.Several() {
		var err error
		if common, err = s.makeShared(path, opts); err != nil {
			return err
		}
		defer os.RemoveAll(common.spool)
	}
	permitted := permissions{cluster: s.cluster, asked: map[string]func() verbs{}}
	var wg sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i := range results {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			s.one(ctx, &results[i], common, &permitted, opts)
		})
	}
	wg.Wait()
	return ctx.Err()
}

// makeShared makes a place for what all nodes have in common, on the disk
// where their workdirs are.
func (s *survey) makeShared(path string, opts Options) (*shared, error) {
	if _, err := workdir.Find(path); err != nil { // somebody else's, say
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("workdir %s can't be made: %w; choose another with -w", path, err)
	}
	dir, err := os.MkdirTemp(path, ".incoming-cluster-*")
	if err != nil {
		return nil, fmt.Errorf("workdir %s can't be written to: %w; choose another with -w", path, err)
	}
	return &shared{
		transfer: transfer{exec: s.cluster, spool: dir, stall: opts.Stall, most: opts.Limits.Bytes},
		taken:    map[source]func() (backup, error){},
	}, nil
}

// one collects one node.
func (s *survey) one(ctx context.Context, r *Result, common *shared, permitted *permissions, opts Options) {
	came := counter{node: r.Node, report: opts.Report}
	l, err := s.layoutOf(ctx, r.Node)
	if err == nil {
		r.Layout = l.name
		err = s.into(ctx, r, l, common, permitted, opts, &came)
	}
	r.Err = err
	if err != nil {
		came.say("failed")
		return
	}
	came.say("collected")
}

// into collects a node into its workdir, all of it or nothing.
func (s *survey) into(ctx context.Context, r *Result, l layout, common *shared, permitted *permissions, opts Options, came *counter) error {
	wd, err := workdir.Lock(r.Workdir)
	if err != nil {
		return err
	}
	defer wd.Unlock()
	if err := collect.Refuse(wd, opts.Force, false, workdir.OVS); err != nil {
		return err
	}
	if err := collect.Refuse(wd, opts.Force, true, workdir.NB, workdir.SB); err != nil {
		return err
	}
	target, err := s.ovs(l, r.Node)
	if err != nil {
		return err
	}
	if err := permitted.exec(ctx, target.Namespace); err != nil {
		return err
	}
	staging, err := wd.Stage()
	if err != nil {
		return err
	}
	defer staging.Discard()
	spool, err := staging.Spool()
	if err != nil {
		return err
	}
	v := &visit{layout: l, target: target, survey: s, shared: common, told: s.describe(r.Node, l),
		transfer: transfer{exec: s.cluster, spool: spool, stall: opts.Stall, most: opts.Limits.Bytes, bytes: came.add}}
	if err := v.ask(ctx); err != nil {
		return fmt.Errorf("node %s: %w", r.Node, permitted.explain(ctx, target.Namespace, err))
	}
	plan, err := collect.Judge(ctx, v.told)
	if err != nil {
		return err
	}
	collections, err := collect.Write(ctx, wd, staging, plan, collect.Half{OVS: true, OVN: true}, opts.Options)
	if err != nil {
		return err
	}
	if err := staging.Install(collections...); err != nil {
		return err
	}
	r.Collections = collections
	return nil
}

// describe begins what is told of a node.
func (s *survey) describe(name string, l layout) *recording.Node {
	tool := "layout " + l.name
	if s.cluster.Version != "" {
		tool = "Kubernetes " + s.cluster.Version + ", " + tool
	}
	return &recording.Node{Host: name, Source: workdir.Source{Kind: "Kubernetes cluster", Name: s.cluster.Name, Tool: tool}}
}

// counter adds up what comes of a node, and reports it.
type counter struct {
	node   string
	report func(node, what string, bytes int64)
	bytes  atomic.Int64
}

func (c *counter) add(n int) {
	c.bytes.Add(int64(n))
	c.say("collecting")
}

func (c *counter) say(what string) {
	if c.report != nil {
		c.report(c.node, what, c.bytes.Load())
	}
}
