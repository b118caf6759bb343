package whatif

import (
	"context"
	"errors"

	"ovs-offline/desired/release"
	"ovs-offline/desired/scratch"
	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/trace"
)

// Question is what to compute: the effect of a change, or of another NB database, on a
// deployment.
type Question struct {
	Deployment Deployment
	Change     Change         // nil with NB
	NB         string         // the path of another NB database, "" for none
	Trace      *trace.Between // a packet to follow before and after; nil for none
	Runtime    string         // one of choose.Names
	Version    string         // of ovs-offline
	Chosen     func(what string)
	Progress   func(text string) // may be nil, as Chosen
}

// Answer computes the answer to a question. Its daemons run below the workdir of the first
// node, and end before it returns. If only the packet can't be followed, it returns both the
// result and an error.
func Answer(ctx context.Context, q Question) (r *Result, err error) {
	recorded, err := q.Deployment.release(ctx)
	if err != nil {
		return nil, err
	}
	first := q.Deployment.Nodes[0].Dir
	dir, err := scratch.Lock(first)
	if err != nil {
		return nil, err
	}
	defer scratch.Release(dir)
	runtimes := func(dir *workdir.Dir) []runtime.Runtime { return choose.For(dir, q.Version).All(ctx) }
	if err := scratch.Clean(ctx, dir, runtimes); err != nil { // what a killed command left
		return nil, err
	}
	rt, running, err := release.Programs(ctx, first, dir, recorded, release.Options{Runtime: q.Runtime, Version: q.Version, Chosen: q.Chosen})
	if errors.Is(err, release.ErrMissing) {
		return nil, errors.Join(ErrUndetermined, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, Options{Dir: dir, Runtime: rt, NB: q.Deployment.NB, SB: q.Deployment.SB, Nodes: q.Deployment.Nodes, Progress: q.Progress})
	if err != nil {
		return nil, undetermined(err)
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	return s.answer(ctx, q, running)
}

// undetermined adds ErrUndetermined to the errors that say that the daemons could not
// compute the flows.
func undetermined(err error) error {
	if errors.Is(err, scratch.ErrNoChassis) || errors.Is(err, scratch.ErrNotReady) || errors.Is(err, scratch.ErrNotIsolated) {
		return errors.Join(ErrUndetermined, err)
	}
	return err
}

// answer computes the answer. Once the flows are computed, the result has them, also with an
// error.
func (s *Session) answer(ctx context.Context, q Question, running versions.Pair) (r *Result, err error) {
	var before side
	var unsure []string
	if q.NB != "" {
		if unsure, err = doubts(ctx, q.Deployment.NB, q.NB); err != nil {
			return nil, err
		}
	}
	if q.Trace != nil {
		before = s.trace(ctx, q, "without the change")
	}
	if q.NB != "" {
		r, err = s.Replace(ctx, q.NB)
	} else {
		r, err = s.Apply(ctx, q.Change)
	}
	if err != nil {
		return nil, undetermined(err)
	}
	r.Running, r.Doubts = running, unsure
	r.Remarks = append(q.Deployment.Remarks, r.Remarks...)
	if q.Trace != nil {
		r.Trace, err = traces(before, s.trace(ctx, q, "with the change"))
	}
	return r, err
}
