package inputs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/workdir"
)

// Written is a node that was put into a workdir.
type Written struct {
	Name        string
	Path        string // of its workdir
	Collections []workdir.Collection
}

// Options of Collect.
type Options struct {
	collect.Options
	Nodes []string // the names of those to take; all where there are none
}

// Collect reads the paths once and puts each node into a workdir: wd itself
// for one, a folder of it for each of several. All are put in place, or none; if
// the very last step fails for one, the error names those that are.
func Collect(ctx context.Context, wd *workdir.Dir, paths []string, opts Options) ([]Written, *Found, error) {
	staging, err := wd.Stage()
	if err != nil {
		return nil, nil, err
	}
	defer staging.Discard()
	found, plans, err := read(ctx, staging, paths, opts)
	if err != nil {
		return nil, found, err
	}
	if len(plans) == 1 {
		one := target{name: plans[0].Name, wd: wd, staging: staging}
		if err := one.write(ctx, plans[0].Plan, opts); err != nil {
			return nil, found, err
		}
		return []Written{one.written()}, found, staging.Install(one.collections...)
	}
	targets, err := several(ctx, wd, plans, opts)
	defer closeAll(targets)
	if err != nil {
		return nil, found, err
	}
	var all []Written
	var nothing []error
	for _, t := range targets {
		if t.nothing != nil {
			nothing = append(nothing, t.nothing)
			found.Lost = append(found.Lost, fmt.Sprintf("%s: %v", t.name, t.nothing))
			continue
		}
		if err := t.staging.Install(t.collections...); err != nil {
			return all, found, fmt.Errorf("%s: %w%s", t.name, err, inPlace(all))
		}
		all = append(all, t.written())
	}
	if len(all) == 0 {
		return nil, found, errors.Join(nothing...)
	}
	return all, found, nil
}

// inPlace names the nodes that a failure came too late for.
func inPlace(done []Written) string {
	if len(done) == 0 {
		return ""
	}
	var paths []string
	for _, w := range done {
		paths = append(paths, w.Path)
	}
	return "; in place by then: " + strings.Join(paths, ", ")
}

// Planned is a node and what its things are worth.
type Planned struct {
	Named
	*collect.Plan
}

// Inspect reads the paths as Collect does, and keeps nothing: spool is a folder
// of the caller's.
func Inspect(ctx context.Context, spool string, paths []string, opts Options) (*Found, []Planned, error) {
	found, err := Open(ctx, paths, spool, opts.Limits, opts.Progress)
	if err != nil {
		return nil, nil, err
	}
	plans, err := found.plans(ctx, opts.Nodes)
	return found, plans, err
}

func read(ctx context.Context, staging *workdir.Staging, paths []string, opts Options) (*Found, []Planned, error) {
	spool, err := staging.Spool()
	if err != nil {
		return nil, nil, err
	}
	return Inspect(ctx, spool, paths, opts)
}

// plans judges the nodes of those names.
func (f *Found) plans(ctx context.Context, names []string) ([]Planned, error) {
	nodes, err := f.pick(names)
	if err != nil {
		return nil, err
	}
	var plans []Planned
	for _, n := range nodes {
		plan, err := collect.Judge(ctx, n.Node)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		plans = append(plans, Planned{Named: n, Plan: plan})
	}
	return plans, nil
}

// target is a workdir that a node is being put into.
type target struct {
	name        string
	wd          *workdir.Dir
	staging     *workdir.Staging
	collections []workdir.Collection
	nothing     error // what says that the node has nothing to collect
}

func (t *target) write(ctx context.Context, plan *collect.Plan, opts Options) error {
	var err error
	t.collections, err = collect.Write(ctx, t.wd, t.staging, plan, collect.Half{OVS: true, OVN: true}, opts.Options)
	if err != nil {
		return fmt.Errorf("%s: %w", plan.Node.Source.Name, err)
	}
	return nil
}

func (t *target) written() Written {
	return Written{Name: t.name, Path: t.wd.Path(), Collections: t.collections}
}

// several stages each node in a workdir of its own below parent.
func several(ctx context.Context, parent *workdir.Dir, plans []Planned, opts Options) ([]*target, error) {
	m, err := parent.Manifest()
	if err != nil {
		return nil, err
	}
	if len(m.Collections) > 0 {
		return nil, fmt.Errorf("%w: %s holds one node; %d nodes take a folder of their own: choose another with -w, or one of them with --node", collect.ErrOccupied, parent.Path(), len(plans))
	}
	var targets []*target
	for _, p := range plans {
		wd, err := workdir.Lock(p.Folder(parent.Path()))
		if err != nil {
			return targets, err
		}
		t := &target{name: p.Name, wd: wd}
		targets = append(targets, t)
		if t.staging, err = wd.Stage(); err != nil {
			return targets, err
		}
		err = t.write(ctx, p.Plan, opts)
		if errors.Is(err, collect.ErrNothing) {
			t.nothing = err // the others are none the worse
			continue
		}
		if err != nil {
			return targets, err
		}
	}
	return targets, nil
}

func closeAll(targets []*target) {
	for _, t := range targets {
		if t.staging != nil {
			t.staging.Discard()
		}
		t.wd.RemoveIfEmpty()
		t.wd.Unlock()
	}
}
