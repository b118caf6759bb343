// Package whatif finds out what a change of OVN's northbound database does to the nodes of
// a deployment: ovn-northd and the ovn-controllers of the nodes compute their flows on
// copies of the collected databases, first without and then with the change.
package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Options are the options of Open.
type Options struct {
	Dir     *workdir.Dir      // the folder of the daemons, locked: scratch.Lock
	Runtime runtime.Runtime   // with the programs of the nodes' release, for Dir
	Central runtime.Runtime   // with the programs of the databases and ovn-northd; nil for Runtime
	NB, SB  string            // the paths of the databases of the deployment
	Nodes   []snapshot.Member // whose flows are computed
	// Progress is called with what is done; it may be nil.
	Progress func(text string)
	Anew     bool          // compute all logical flows anew: scratch.Options
	Meaning  time.Duration // that may be spent for each node on what changes do to packets; 0 leaves that out
	// Task names the first computation for Progress, "" for that without a change.
	Task string
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

// moment is what ovn-controllers have installed at one time, and the databases that name it.
type moment struct {
	states map[string]flowdiff.State // by node
	nb, sb *file.Index
	ovs    map[string]*file.Index // by node
}

func (m *moment) close() {
	for _, x := range append(slices.Collect(maps.Values(m.ovs)), m.nb, m.sb) {
		x.Close()
	}
}

// Open starts the daemons and computes the flows without a change. Close ends them.
func Open(ctx context.Context, o Options) (_ *Session, err error) {
	session := &Session{options: o}
	so := scratch.Options{Dir: o.Dir, Runtime: o.Runtime, Central: o.Central, NB: o.NB, SB: o.SB, Northd: true, Anew: o.Anew, AssumeSessions: true}
	for _, n := range o.Nodes {
		so.Nodes = append(so.Nodes, scratch.Recorded{Name: n.Name, Conf: n.Dir.SwitchDatabase(), Lists: n.Dir.Recorded("")})
	}
	session.progress(cmp.Or(o.Task, "computing the flows without the change"))
	if session.scratch, err = scratch.Start(ctx, so); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, session.Close(context.WithoutCancel(ctx)))
		}
	}()
	session.remarks = session.scratch.Remarks()
	if session.now, err = session.read(ctx); err != nil {
		return session, err
	}
	session.first, err = located(session.now.sb)
	return session, err
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

// Apply makes a change, and returns its effect on the flows.
func (s *Session) Apply(ctx context.Context, change Change) (*Result, error) {
	s.progress("computing the flows with the change")
	var printed strings.Builder
	for i, args := range change {
		out, err := s.nbctl(ctx, args, i == len(change)-1)
		printed.Write(out)
		if err != nil {
			return nil, err
		}
	}
	result, err := s.compare(ctx)
	if err != nil {
		return nil, err
	}
	result.Change, result.Printed = change, printed.String()
	return result, nil
}

// nbctl runs ovn-nbctl on the copy of the NB database. It has only options of commands (checked), so
// it reaches nothing else. After the last command of a change it waits
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

// Replace puts another NB database in the place of the present one, and returns the effect on the
// flows.
func (s *Session) Replace(ctx context.Context, nb string) (*Result, error) {
	s.progress("computing the flows with the other database")
	if err := s.scratch.ReplaceNB(ctx, nb); err != nil {
		return nil, err
	}
	return s.compare(ctx)
}

// Put replaces the present NB database with another one. The programs recompute everything, so the flows do not depend on the
// database before it.
func (s *Session) Put(ctx context.Context, nb string) error {
	if err := s.put(ctx, nb); err != nil {
		return err
	}
	if err := s.scratch.Recompute(ctx); err != nil {
		return err
	}
	return s.readAgain(ctx)
}

// PutAt replaces the present NB database with what the collected one was after a transaction, by its number in the log.
func (s *Session) PutAt(ctx context.Context, transaction int64) error {
	return s.at(ctx, transaction, s.Put)
}

// put replaces the present NB database, and waits until the programs have seen that: before ovn-northd is done, the controllers
// would recompute flows from the old SB database.
func (s *Session) put(ctx context.Context, nb string) error {
	if err := s.scratch.ReplaceNB(ctx, nb); err != nil {
		return err
	}
	return s.scratch.Wait(ctx)
}

// readAgain makes what the daemons have installed now the present moment.
func (s *Session) readAgain(ctx context.Context) error {
	next, err := s.read(ctx)
	if err == nil {
		s.now.close()
		s.now = next
	}
	return err
}

// compare waits for the daemons, and returns the differences between the flows now and the
// flows of the last call.
func (s *Session) compare(ctx context.Context) (*Result, error) {
	next, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	before := s.now
	defer before.close()
	s.now = next
	result := &Result{Nodes: make([]NodeResult, len(s.options.Nodes)), Remarks: s.remarks, Assumed: s.assumed()}
	var group errgroup.Group
	for i, n := range s.options.Nodes {
		group.Go(func() (err error) {
			result.Nodes[i], err = compareNode(n.Name, before, next)
			return err
		})
	}
	if err := group.Wait(); err != nil || s.options.Meaning == 0 {
		return result, err
	}
	return result, s.judge(ctx, before, next, result.Nodes)
}

// assumed returns sentences about what is assumed of nodes now.
func (s *Session) assumed() []string {
	var all []string
	for _, n := range s.options.Nodes {
		if text := scratch.DescribeSessions(s.scratch.Sessions(n.Name)); text != "" {
			all = append(all, n.Name+": "+text)
		}
	}
	return all
}

// Complaints returns what the daemons log about what they compute. They compute everything once more, and what they
// have installed then is the present moment.
func (s *Session) Complaints(ctx context.Context) ([]scratch.Complaint, error) {
	found, err := s.scratch.Complaints(ctx)
	if err != nil {
		return found, err
	}
	return found, s.readAgain(ctx)
}

// ComplaintsAbout replaces the present NB database with another one, and returns what Complaints does. What the daemons
// have installed is not read, which takes most of the time: the present moment is still that of the call before.
func (s *Session) ComplaintsAbout(ctx context.Context, nb string) ([]scratch.Complaint, error) {
	if err := s.put(ctx, nb); err != nil {
		return nil, err
	}
	return s.scratch.Complaints(ctx)
}

// read waits for the daemons and reads what they have installed.
func (s *Session) read(ctx context.Context) (moment moment, err error) {
	if err := s.scratch.Wait(ctx); err != nil {
		return moment, err
	}
	defer func() {
		if err != nil {
			moment.close()
		}
	}()
	// The servers have written to the files what they have committed.
	if moment.nb, err = file.OpenIndex(ctx, s.options.Dir.WorkingCopy(workdir.NB)); err != nil {
		return moment, err
	}
	if moment.sb, err = file.OpenIndex(ctx, s.options.Dir.WorkingCopy(workdir.SB)); err != nil {
		return moment, err
	}
	moment.states, moment.ovs = map[string]flowdiff.State{}, map[string]*file.Index{}
	for _, node := range s.options.Nodes {
		if moment.ovs[node.Name], err = file.OpenIndex(ctx, s.scratch.Conf(node.Name)); err != nil {
			return moment, err
		}
		dump, err := s.scratch.Dump(ctx, node.Name, openflow.OpenFlow15)
		if err != nil {
			return moment, err
		}
		state, lost := flowdiff.Read(strings.NewReader(dump.Flows), strings.NewReader(dump.Groups), strings.NewReader(dump.Meters))
		if len(lost) > 0 {
			return moment, fmt.Errorf("node %s: the computed flows can't be read: %s", node.Name, lost[0])
		}
		moment.states[node.Name] = state
	}
	return moment, nil
}
