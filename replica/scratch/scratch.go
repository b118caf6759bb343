// Package scratch runs the programs of OVN on copies of collected databases, to find out
// which flows they install: one ovsdb-server each for the OVN databases, an ovn-northd if
// asked, and for each node an ovn-controller with the OVS database as it was recorded and
// an ovs-vswitchd that takes its flows.
//
// Everything listens on unix sockets in a private folder. No collected file and no replica
// is changed, and no program connects to an address in the collected databases: the
// ovn-remote of each node is replaced, and a runtime that can't isolate its daemons is
// refused.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Options are the options of Start.
type Options struct {
	// Dir is the folder of all files, in the layout of a workdir. It is locked, and
	// belongs to the Scratch alone. Runtime is one for its RuntimeFolders.
	Dir     *workdir.Dir
	Runtime runtime.Runtime
	// Central runs the servers of the OVN databases and ovn-northd where these are of another release
	// than the nodes' programs; nil for Runtime. It is one for the RuntimeFolders of Dir too.
	Central runtime.Runtime
	// NB and SB are the paths of the collected OVN databases. NB is only used with Northd.
	NB, SB string
	Nodes  []Recorded
	// Northd runs an ovn-northd. The ovn-controllers can then change the SB database, as
	// on the nodes: they claim ports. Otherwise they can only read it, so that the result
	// depends on nothing but the recorded SB database.
	Northd bool
	// Anew lets ovn-northd make all logical flows anew. It leaves a recorded one as it is, which can name a northbound row
	// that it is no longer of: one that only had been the first of those that share it, or is gone.
	Anew bool
	// AssumeSessions gives BFD sessions whose state was not recorded a state, which Sessions
	// returns.
	AssumeSessions bool
}

// Recorded is a node whose flows are computed.
type Recorded struct {
	Name    string // unique, for messages and Dump
	Conf    string // the path of its OVS database as recorded
	Lists   string // the folder of the outputs of `ovs-vsctl list`, which have what no database file holds; "" for none
	Chassis string // the name of its chassis; "" for the system-id of its database
}

// Scratch is a set of running daemons. Its methods must not be called at the same time.
type Scratch struct {
	options Options
	nodes   map[string]*nodeDaemons // by the node's name
	nb, sb  *ovsdb.Client           // nb is nil without northd
	config  int                     // the latest nb_cfg
	numbers int                     // how many nb_cfg all nodes have reported
	remarks []string
	watch   watch

	bindings map[string]string // of ports and of groups of gateways: readBindings; with northd
}

// ErrNotIsolated is wrapped if the runtime can't give its daemons a network of their own.
var ErrNotIsolated = errors.New("the daemons would share this host's network")

// Start starts the daemons on copies of the databases. What an earlier Scratch that was
// killed left in the folder is ended first. After an error, nothing runs. Stop ends the
// daemons.
func Start(ctx context.Context, options Options) (_ *Scratch, err error) {
	for _, rt := range options.runtimes() {
		if isolated, why := rt.Isolated(ctx); !isolated {
			return nil, fmt.Errorf("ovn-controller is not started: %w (%s)", ErrNotIsolated, why)
		}
	}
	if err := End(ctx, options.Dir, options.runtimes()...); err != nil {
		return nil, err
	}
	scratch := &Scratch{options: options, nodes: map[string]*nodeDaemons{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, scratch.Stop(context.WithoutCancel(ctx))) // the context may have ended
		}
	}()
	if err := scratch.makeNodes(); err != nil {
		return nil, err
	}
	if err := scratch.startDatabases(ctx); err != nil {
		return nil, err
	}
	group, limited := errgroup.WithContext(ctx)
	for _, daemons := range scratch.nodes {
		group.Go(func() error {
			if err := scratch.startNode(limited, daemons); err != nil {
				return fmt.Errorf("node %s: %w", daemons.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return scratch, nil
}

// makeNodes makes all folders: a process that runs tools in an image sees only folders
// that exist when it starts.
func (s *Scratch) makeNodes() error {
	dir := s.options.Dir
	folders := []string{filepath.Dir(dir.Log("")), northd(dir).RunDir}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		folders = append(folders, dir.VarRun(kind), filepath.Dir(dir.WorkingCopy(kind)))
	}
	for i, node := range s.options.Nodes {
		daemons := newNodeDaemons(dir, i, node)
		if s.nodes[node.Name] != nil {
			return fmt.Errorf("two nodes have the name %q", node.Name)
		}
		s.nodes[node.Name] = daemons
		folders = append(folders, daemons.folders()...)
	}
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Remarks returns sentences about the databases and the daemons.
func (s *Scratch) Remarks() []string {
	all := slices.Clone(s.remarks)
	for _, rt := range s.options.runtimes() {
		all = append(all, rt.Remarks()...)
	}
	for _, node := range s.options.Nodes {
		for _, remark := range s.nodes[node.Name].remarks {
			all = append(all, "node "+node.Name+": "+remark)
		}
	}
	return all
}

// NBSocket returns the socket of the NB database, and SBSocket the socket of the SB database.
func (s *Scratch) NBSocket() string { return s.options.Dir.Socket(workdir.NB) }

// SBSocket returns the socket of the SB database.
func (s *Scratch) SBSocket() string { return s.options.Dir.Socket(workdir.SB) }

// Conf returns the path of the database file of a node's OVS, which its ovn-controller
// has added tunnels, patch ports and conntrack zones to.
func (s *Scratch) Conf(node string) string { return s.nodes[node].conf }

// Bridge returns the name of the integration bridge of a node.
func (s *Scratch) Bridge(node string) string { return s.nodes[node].bridge }

// Stop ends the daemons and removes their files.
func (s *Scratch) Stop(ctx context.Context) error {
	for _, db := range []*ovsdb.Client{s.nb, s.sb} {
		if db != nil {
			db.Close()
		}
	}
	for _, daemons := range s.nodes {
		if daemons.db != nil {
			daemons.db.Close()
		}
	}
	return End(ctx, s.options.Dir, s.options.runtimes()...)
}

// runtimes returns the runtimes in which daemons run.
func (o *Options) runtimes() []runtime.Runtime {
	if o.Central == nil {
		return []runtime.Runtime{o.Runtime}
	}
	return []runtime.Runtime{o.Runtime, o.Central}
}

// central returns the runtime of the OVN databases and ovn-northd.
func (o *Options) central() runtime.Runtime {
	if o.Central == nil {
		return o.Runtime
	}
	return o.Central
}

// End ends the daemons of a Scratch that was killed, in each of the runtimes, and removes
// its files. It is no error if there are none.
func End(ctx context.Context, dir *workdir.Dir, rts ...runtime.Runtime) error {
	for _, rt := range rts {
		if err := endIn(ctx, dir, rt); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(dir.Run()), os.RemoveAll(dir.VarRuns()))
}

func endIn(ctx context.Context, dir *workdir.Dir, rt runtime.Runtime) error {
	var group errgroup.Group
	for _, daemon := range daemonsIn(dir) {
		group.Go(func() error { return rt.Stop(ctx, daemon) })
	}
	return errors.Join(group.Wait(), rt.End(ctx))
}
