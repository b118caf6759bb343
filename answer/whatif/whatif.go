package whatif

import (
	"context"
	"errors"
	"time"

	"ovs-offline/answer/trace"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/release"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// Question is what to compute: the effect of a change, or of another NB database, on a
// deployment.
type Question struct {
	Deployment Deployment
	Change     Change                    // nil with NB
	NB         string                    // the path of another NB database, "" for none
	Meaning    time.Duration             // that may be spent for each node on what the change does to packets; 0 leaves that out
	Trace      *trace.Between            // a packet to follow before and after; nil for none
	Runtime    string                    // one of choose.Names
	Runtimes   runtime.Finder            // where programs are looked for
	Replica    func(path string) Replica // the replica of the workdir at path
	Chosen     func(what string)
	Progress   func(text string) // may be nil, as Chosen
}

// Answer computes the answer to a question. Its daemons run below the workdir of the first
// node, and end before it returns. If only the packet can't be followed, it returns both the
// result and an error.
func Answer(ctx context.Context, question Question) (r *Result, err error) {
	failed := question.Run(ctx, func(session *Session, running versions.Pair) error {
		r, err = session.answer(ctx, question, running)
		return err
	})
	return r, failed
}

// Run opens a session on the deployment of a question, with the programs of the nodes' release, and calls use with it
// and with the versions of these. The daemons run below the workdir of the first node, and end before it returns.
func (q Question) Run(ctx context.Context, use func(session *Session, running versions.Pair) error) error {
	recorded, err := q.Deployment.release(ctx)
	if err != nil {
		return err
	}
	return q.Deployment.locked(ctx, q.Runtimes, func(dir *workdir.Dir) (err error) {
		options := release.Options{Runtime: q.Runtime, Runtimes: q.Runtimes, Chosen: q.Chosen}
		rt, running, err := release.Programs(ctx, q.Deployment.Nodes[0].Dir, dir, recorded, options)
		if errors.Is(err, release.ErrMissing) {
			return errors.Join(ErrUndetermined, err)
		}
		if err != nil {
			return err
		}
		session, err := Open(ctx, Options{Dir: dir, Runtime: rt, NB: q.Deployment.NB, SB: q.Deployment.SB, Nodes: q.Deployment.Nodes, Progress: q.Progress, Meaning: q.Meaning})
		if err != nil {
			return undetermined(err)
		}
		defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
		return use(session, running)
	})
}

// locked locks the folder of daemons below the workdir of the first node, ends what a killed command has left there, and
// calls use with it.
func (d Deployment) locked(ctx context.Context, runtimes runtime.Finder, use func(dir *workdir.Dir) error) error {
	dir, err := scratch.Lock(d.Nodes[0].Dir)
	if err != nil {
		return err
	}
	defer scratch.Release(dir)
	if err := scratch.Clean(ctx, dir, runtimes); err != nil {
		return err
	}
	return use(dir)
}

// undetermined adds ErrUndetermined to the errors of daemons that could not compute the flows.
func undetermined(err error) error {
	if errors.Is(err, scratch.ErrNoChassis) || errors.Is(err, scratch.ErrNotReady) || errors.Is(err, scratch.ErrNotIsolated) {
		return errors.Join(ErrUndetermined, err)
	}
	return err
}

// answer computes the answer. Once the flows are computed, the result is not nil, even with an error.
func (s *Session) answer(ctx context.Context, question Question, running versions.Pair) (result *Result, err error) {
	var before side
	unsure, err := question.Deployment.doubts(ctx)
	if err != nil {
		return nil, err
	}
	if question.NB != "" {
		other, err := doubts(ctx, question.Deployment.NB, question.NB)
		if err != nil {
			return nil, err
		}
		unsure = append(unsure, other...)
	}
	if question.Trace != nil {
		before = s.trace(ctx, question, "without the change")
	}
	if question.NB != "" {
		result, err = s.Replace(ctx, question.NB)
	} else {
		result, err = s.Apply(ctx, question.Change)
	}
	if err != nil {
		return nil, undetermined(err)
	}
	result.Running, result.Doubts = running, unsure
	result.Remarks = append(question.Deployment.Remarks, result.Remarks...)
	if question.Trace != nil {
		result.Trace, err = joinTraces(before, s.trace(ctx, question, "with the change"))
	}
	return result, err
}
