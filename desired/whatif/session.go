// Package whatif finds out what a change of OVN's northbound database does to the nodes of
// a deployment: ovn-northd and the ovn-controllers of the nodes compute their flows on
// copies of the collected databases, first without and then with the change.
package whatif

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/desired/scratch"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
)

// Node is a node whose flows are computed.
type Node struct {
	Name string
	Dir  *workdir.Dir // with its OVS database
}

// Options are the options of Open.
type Options struct {
	Dir     *workdir.Dir    // the folder of the daemons, locked: scratch.Lock
	Runtime runtime.Runtime // with the programs of the nodes' release, for Dir
	NB, SB  string          // the paths of the databases of the deployment
	Nodes   []Node
	// Progress is called with what is done; it may be nil.
	Progress func(text string)
}

// Session computes one change after the other, each on top of those before it. Its methods
// must not be called at the same time.
type Session struct {
	options Options
	scratch *scratch.Scratch
	now     moment
	first   map[string]location // of the ports without a change
	remarks []string
}

// moment is what is installed at one time, and the databases that name it.
type moment struct {
	states map[string]flowdiff.State // by node
	nb, sb *file.Index
}

func (m *moment) close() {
	for _, x := range []*file.Index{m.nb, m.sb} {
		if x != nil {
			x.Close()
		}
	}
}

// Open starts the daemons and computes the flows without a change. Close ends them.
func Open(ctx context.Context, o Options) (_ *Session, err error) {
	s := &Session{options: o}
	so := scratch.Options{Dir: o.Dir, Runtime: o.Runtime, NB: o.NB, SB: o.SB, Northd: true, AssumeSessions: true}
	for _, n := range o.Nodes {
		so.Nodes = append(so.Nodes, scratch.Node{Name: n.Name, Conf: n.Dir.Database(workdir.OVS), Lists: n.Dir.Recorded("")})
	}
	s.progress("computing the flows without the change")
	if s.scratch, err = scratch.Start(ctx, so); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
	}()
	s.remarks = s.scratch.Remarks()
	if s.now, err = s.read(ctx); err != nil {
		return s, err
	}
	s.first, err = located(s.now.sb)
	return s, err
}

func (s *Session) progress(text string) {
	if s.options.Progress != nil {
		s.options.Progress(text)
	}
}

// Close ends the daemons and removes all their files.
func (s *Session) Close(ctx context.Context) error {
	s.now.close()
	return s.scratch.Stop(ctx)
}

// Apply makes a change, and returns what it does to the flows.
func (s *Session) Apply(ctx context.Context, c Change) (*Result, error) {
	s.progress("computing the flows with the change")
	var printed strings.Builder
	for i, args := range c {
		out, err := s.nbctl(ctx, args, i == len(c)-1)
		printed.Write(out)
		if err != nil {
			return nil, err
		}
	}
	r, err := s.compare(ctx)
	if err != nil {
		return nil, err
	}
	r.Change, r.Printed = c, printed.String()
	return r, nil
}

// nbctl runs ovn-nbctl on the copy of the NB database. Its options are those of commands
// alone (checked), so it reaches nothing else. After the last command of a change it waits
// for northd, which costs no further run of northd: see scratch.
func (s *Session) nbctl(ctx context.Context, args []string, last bool) ([]byte, error) {
	limit := s.scratch.TimeLimit() // for a command that waits for a condition
	began := time.Now()
	argv := []string{program, "--db=unix:" + s.scratch.NBSocket(), fmt.Sprintf("--timeout=%.0f", limit.Seconds()), "--no-leader-only"}
	if last {
		argv = append(argv, "--wait=sb")
	}
	out, err := s.options.Runtime.Tool(ctx, s.options.Dir.VarRun(workdir.NB), nil, append(argv, args...)...)
	if err != nil && time.Since(began) >= limit {
		return out, fmt.Errorf("%w: %s did not end within %v: does it wait for something that does not happen on a copy of the databases? %w", ErrChange, args[0], limit, err)
	}
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrChange, err)
	}
	return out, nil
}

// ErrChange is wrapped if ovn-nbctl did not accept a change.
var ErrChange = errors.New("the change can't be made")

// Replace puts another NB database in the place of the present one, and returns what that
// does to the flows.
func (s *Session) Replace(ctx context.Context, nb string) (*Result, error) {
	s.progress("computing the flows with the other database")
	if err := s.scratch.ReplaceNB(ctx, nb); err != nil {
		return nil, err
	}
	return s.compare(ctx)
}

// compare waits for the daemons, and returns in what the flows differ from those of the
// last call.
func (s *Session) compare(ctx context.Context) (*Result, error) {
	next, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	before := s.now
	defer before.close()
	s.now = next
	r := &Result{Nodes: make([]NodeResult, len(s.options.Nodes)), Remarks: s.remarks, Assumed: s.assumed()}
	var group errgroup.Group
	for i, n := range s.options.Nodes {
		group.Go(func() (err error) {
			r.Nodes[i], err = compareNode(n.Name, before, next)
			return err
		})
	}
	return r, group.Wait()
}

// assumed returns what is assumed of nodes now, in sentences.
func (s *Session) assumed() []string {
	var all []string
	for _, n := range s.options.Nodes {
		if text := scratch.DescribeSessions(s.scratch.Sessions(n.Name)); text != "" {
			all = append(all, n.Name+": "+text)
		}
	}
	return all
}

// read waits for the daemons and reads what they have installed.
func (s *Session) read(ctx context.Context) (m moment, err error) {
	if err := s.scratch.Wait(ctx); err != nil {
		return m, err
	}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	// The servers have written to the files what they have committed.
	if m.nb, err = file.OpenIndex(ctx, s.options.Dir.WorkingCopy(workdir.NB)); err != nil {
		return m, err
	}
	if m.sb, err = file.OpenIndex(ctx, s.options.Dir.WorkingCopy(workdir.SB)); err != nil {
		return m, err
	}
	m.states = map[string]flowdiff.State{}
	for _, n := range s.options.Nodes {
		d, err := s.scratch.Dump(ctx, n.Name, openflow.OpenFlow15)
		if err != nil {
			return m, err
		}
		state, lost := flowdiff.Read(strings.NewReader(d.Flows), strings.NewReader(d.Groups), strings.NewReader(d.Meters))
		if len(lost) > 0 {
			return m, fmt.Errorf("node %s: the computed flows can't be read: %s", n.Name, lost[0])
		}
		m.states[n.Name] = state
	}
	return m, nil
}
