package rule

import (
	"context"
	"sync"

	"ovs-offline/answer/drift"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Programs says which programs of OVN rules run.
type Programs struct {
	Runtime  string         // one of choose.Names
	Runtimes runtime.Finder // where they are looked for
	Drifts   *Drifts        // computed before, nil for a question that computes drift once
}

// Drifts are the drifts of nodes that were computed. A page shows what check has found in them, and computes none again.
type Drifts struct {
	mu   sync.Mutex
	made map[string]*drift.Report // by the path of the workdir
}

// Drift compares the flows of a node with what OVN computes, unless that was done before. progress may be nil.
func (p Programs) Drift(ctx context.Context, wd *workdir.Dir, progress func(text string)) (*drift.Report, error) {
	if known := p.Drifts.of(wd); known != nil {
		return known, nil
	}
	made, err := drift.Check(ctx, wd, drift.Options{Runtime: p.Runtime, Runtimes: p.Runtimes, Progress: progress})
	if err == nil {
		p.Drifts.add(wd, made)
	}
	return made, err
}

func (d *Drifts) of(wd *workdir.Dir) *drift.Report {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made[wd.Path()]
}

func (d *Drifts) add(wd *workdir.Dir, made *drift.Report) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		d.made = map[string]*drift.Report{}
	}
	d.made[wd.Path()] = made
}
