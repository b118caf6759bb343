package set

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/versions"
	"ovs-offline/replica"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Node is a node of a snapshot, and the runtimes in which its replica can run.
type Node struct {
	*snapshot.Node
	version   string           // of ovs-offline
	available *choose.Runtimes // nil until Runtimes is called
	clusters  *pods.Clusters   // the clusters of all nodes of a set
}

// At returns the node whose workdir is at path. version is the version of ovs-offline.
func At(path, version string) *Node {
	return &Node{Node: snapshot.At(path), version: version, clusters: pods.NewClusters(version)}
}

// Runtimes returns the runtimes that are available for the replica. It connects to each
// engine once.
func (n *Node) Runtimes(wd *workdir.Dir) *choose.Runtimes {
	if n.available == nil {
		n.available = choose.For(wd, n.version)
	}
	return n.available
}

// Running returns the state of the replica. It asks all runtimes if replica.json is lost.
func (n *Node) Running(ctx context.Context, wd *workdir.Dir) (replica.State, error) {
	return replica.Find(ctx, wd, func() []runtime.Runtime { return n.Runtimes(wd).All(ctx) })
}

// checkReachable returns an error if the replica runs in an engine that does not answer:
// its containers can't be stopped.
func (n *Node) checkReachable(ctx context.Context, wd *workdir.Dir) error {
	name, err := replica.LastRuntime(wd)
	if err != nil || name == "" || name == pods.Name {
		return nil // all runtimes that answer are searched for the replica
	}
	if _, err := n.Runtimes(wd).Named(ctx, name); err != nil {
		return fmt.Errorf("the replica in %s was started in %s and can't be stopped: %w", wd.Path(), name, err)
	}
	return nil
}

// StartOptions are the options of a start. Its functions may be nil.
type StartOptions struct {
	Runtime  string        // one of choose.Names
	Image    string        // to run in; "" to choose one
	Versions versions.Pair // to run; empty for those nearest to the node's
	Chosen   func(what string)
	Starting func(role string)
	Progress func(text string)

	shared map[workdir.Kind]string // see replica.Options
}

// Start starts a replica of the node, whose workdir is locked, and returns its report.
func (n *Node) Start(ctx context.Context, wd *workdir.Dir, options StartOptions) (*report.Report, error) {
	start, err := n.prepare(ctx, wd, options)
	if err != nil {
		return nil, err
	}
	if _, err := n.stopInPod(ctx, wd); err != nil {
		return nil, err
	}
	return start(ctx)
}

// Run starts a replica of the node, whose workdir is locked, in a runtime, with programs of these versions; empty for those
// nearest to the node's.
func (n *Node) Run(ctx context.Context, wd *workdir.Dir, runtime string, programs versions.Pair) error {
	_, err := n.Start(ctx, wd, StartOptions{Runtime: runtime, Versions: programs})
	return err
}

// starter starts a replica.
type starter func(ctx context.Context) (*report.Report, error)

// prepare chooses the runtime of a start.
func (n *Node) prepare(ctx context.Context, wd *workdir.Dir, options StartOptions) (starter, error) {
	wanted := runtime.Wanted{Image: options.Image, Versions: options.Versions}
	var err error
	if wanted.Recorded, err = replica.Recorded(ctx, wd); err != nil {
		return nil, err
	}
	if wanted.Loaded, err = loadedImage(wd); err != nil {
		return nil, err
	}
	if err := n.checkReachable(ctx, wd); err != nil {
		return nil, err
	}
	runtimes := n.Runtimes(wd)
	choice, err := runtimes.Choose(ctx, options.Runtime, wanted)
	if err != nil {
		return nil, err
	}
	if options.Chosen != nil {
		options.Chosen(choice.What)
	}
	for _, reason := range choice.Rejected {
		logging.FromContext(ctx).Debug("choose runtime", "reason", reason)
	}
	exec, err := runtimes.ExecPrefix(choice.Runtime)
	if err != nil {
		return nil, err
	}
	replicaOptions := replica.Options{
		Everywhere:    runtimes.All(ctx),
		Exec:          exec,
		VersionsNamed: options.Image != "" || options.Versions != versions.Pair{},
		Starting:      options.Starting,
		Progress:      options.Progress,
		Shared:        options.shared,
	}
	return func(ctx context.Context) (*report.Report, error) {
		return replica.Start(ctx, wd, choice.Runtime, replicaOptions)
	}, nil
}

// loadedImage returns the ID of the image that was loaded with the data; "" for none.
func loadedImage(wd *workdir.Dir) (string, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return "", err
	}
	for _, collection := range manifest.Collections {
		if collection.LoadedImage != "" {
			return collection.LoadedImage, nil
		}
	}
	return "", nil
}

// Stop stops the replica of the node, whose workdir is locked, and reports whether one was
// started.
func (n *Node) Stop(ctx context.Context, wd *workdir.Dir) (started bool, err error) {
	if started, err = n.stopInPod(ctx, wd); started || err != nil {
		return started, err
	}
	if err := n.checkReachable(ctx, wd); err != nil {
		return false, err
	}
	if started, err = n.started(ctx, wd); err != nil {
		return false, err
	}
	return started, replica.Stop(ctx, wd, n.Runtimes(wd).All(ctx)...)
}

// started reports whether a replica of the workdir was started and not stopped.
func (n *Node) started(ctx context.Context, wd *workdir.Dir) (bool, error) {
	if name, err := replica.LastRuntime(wd); name != "" || err != nil {
		return true, nil // a damaged replica.json belongs to a replica
	}
	_, err := n.Running(ctx, wd)
	if errors.Is(err, runtime.ErrNotRunning) {
		return false, nil
	}
	return err == nil, err
}

// Executor returns what runs programs beside the replica, which has a state: with
// terminal, programs that get a terminal.
func (n *Node) Executor(ctx context.Context, wd *workdir.Dir, state replica.State, terminal bool) (runtime.Executor, error) {
	if state.Pod != nil {
		links, err := link.From(ctx)
		if err != nil {
			return nil, err
		}
		return links.Executor(wd), nil
	}
	executor, err := n.Runtimes(wd).Executor(ctx, state.Runtime, terminal)
	if err != nil {
		return nil, fmt.Errorf("the replica in %s runs in %s: %w", wd.Path(), state.Runtime, err)
	}
	return executor, nil
}

// Status returns the status of the replica.
func (n *Node) Status(ctx context.Context, wd *workdir.Dir) (replica.Status, error) {
	state, err := n.Running(ctx, wd)
	if err != nil {
		return replica.Status{}, err
	}
	if state.Pod != nil {
		return statusInPod(ctx, wd, state)
	}
	rt, err := n.Runtimes(wd).Named(ctx, state.Runtime)
	if err != nil {
		return replica.Status{}, fmt.Errorf("the replica in %s runs in %s: %w", wd.Path(), state.Runtime, err)
	}
	return replica.ReadStatus(ctx, wd, state, rt)
}
