// Package collect fills workdirs from sources. There is one pipeline: a Source is read
// once, judge chooses among its files by their content, and the result is written to a
// staging folder and installed in one move. Each source is a type of its own; none
// knows the daemons of a replica.
package collect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ovs-offline/workdir"
)

// ErrOccupied is wrapped when the workdir holds data of the same kind already.
var ErrOccupied = errors.New("the workdir holds data already")

// ErrSeveral is wrapped when a source holds several nodes, where Options.Alone refuses them.
var ErrSeveral = errors.New("the source holds several nodes")

// ErrNothing is wrapped when a source holds nothing of what was selected.
var ErrNothing = errors.New("nothing to collect")

// Options of Collect.
type Options struct {
	Force  bool     // replace data that the workdir holds
	Select Select   // which data to collect
	Nodes  []string // which nodes to collect, by name; all if empty
	Alone  bool     // refuse several nodes
}

// Select chooses which data to collect. The zero value selects everything.
type Select struct {
	OVS, OVN bool
	// Database selects only the database of this kind. The other data of the
	// workdir stays.
	Database workdir.Kind
}

func (s Select) orEverything() Select {
	if s == (Select{}) {
		return Select{OVS: true, OVN: true}
	}
	return s
}

func (s Select) has(kind workdir.Kind) bool {
	return s.Database == kind || kind == workdir.OVS && s.OVS || kind != workdir.OVS && s.OVN
}

// Written is a node that was written to a workdir.
type Written struct {
	Name        string
	Path        string // of its workdir
	Collections []workdir.Collection
	OVN         OVN
}

// OccupiedError is the error for data that would replace other data.
type OccupiedError struct {
	Workdir string   // its path
	Data    []string // descriptions of what it holds
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%v: %s: %s; --force replaces it, -w DIR keeps both", ErrOccupied, e.Workdir, strings.Join(e.Data, "; "))
}

func (e *OccupiedError) Unwrap() error { return ErrOccupied }

// Refuse returns an OccupiedError that describes the workdir's data of the given kinds,
// nil if it has none or force is set. With databaseOnly, only databases count.
func Refuse(wd *workdir.Dir, force, databaseOnly bool, kinds ...workdir.Kind) error {
	occupied, err := wd.Occupied(databaseOnly, kinds...)
	if err != nil || len(occupied) == 0 || force {
		return err
	}
	return &OccupiedError{Workdir: wd.Path(), Data: occupied}
}

// refuse calls Refuse for one kind, with the selection and the force of the options.
func (o Options) refuse(wd *workdir.Dir, kind workdir.Kind) error {
	return Refuse(wd, o.Force, kind != workdir.OVS || o.Select.Database == kind, kind)
}

// Collect reads the source once and puts each node into the workdir that Place returns.
// Either all are installed or none.
func Collect(ctx context.Context, wd *workdir.Dir, src Source, opts Options) ([]Written, *Found, error) {
	opts.Select = opts.Select.orEverything()
	for _, kind := range src.Kinds() {
		if opts.Select.has(kind) {
			if err := opts.refuse(wd, kind); err != nil {
				return nil, nil, err
			}
		}
	}
	staging, err := wd.Stage()
	if err != nil {
		return nil, nil, err
	}
	defer staging.Discard()
	spool, err := staging.Spool()
	if err != nil {
		return nil, nil, err
	}
	found, plans, err := readSource(ctx, src, spool, opts.Nodes, false)
	if err != nil {
		return nil, found, err
	}
	if opts.Alone && len(plans) > 1 {
		return nil, found, fmt.Errorf("%w: %d (%s)", ErrSeveral, len(plans), strings.Join(planNames(plans), ", "))
	}
	places, err := places(wd, plans, opts)
	if err != nil {
		return nil, found, err
	}
	targets := []*target{{name: plans[0].Name, wd: wd, staging: staging, ovn: plans[0].OVN()}}
	if places[0] != wd.Path() {
		targets, err = stageEach(places, plans)
		defer closeAll(targets)
		if err != nil {
			return nil, found, err
		}
	}
	written, err := install(ctx, staging, targets, plans, found, opts)
	return written, found, err
}

// Inspect reads and judges a source as Collect does, and finds what a replica could and
// could not answer. It writes nothing but files in the folder spool.
func Inspect(ctx context.Context, src Source, spool string, nodes []string) (*Found, []*Plan, error) {
	return readSource(ctx, src, spool, nodes, true)
}

func readSource(ctx context.Context, src Source, spool string, names []string, references bool) (*Found, []*Plan, error) {
	found, err := src.Read(ctx, spool)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := found.pick(names)
	if err != nil {
		return found, nil, err
	}
	var plans []*Plan
	for _, named := range nodes {
		plan, err := judge(ctx, named, references)
		if err != nil {
			return found, nil, fmt.Errorf("%s: %w", named.Name, err)
		}
		plans = append(plans, plan)
	}
	keepMembers(found, plans)
	return found, plans, nil
}

// target is a workdir that a node is being written to.
type target struct {
	name        string
	wd          *workdir.Dir
	staging     *workdir.Staging
	collections []workdir.Collection
	ovn         OVN
	member      bool // of a set
}

func planNames(plans []*Plan) []string {
	var names []string
	for _, plan := range plans {
		names = append(names, plan.Name)
	}
	return names
}

// places returns the path of the workdir of each plan. A database that is collected alone
// belongs to a node that the user names.
func places(folder *workdir.Dir, plans []*Plan, opts Options) ([]string, error) {
	var paths []string
	for _, plan := range plans {
		path, err := Place(folder.Path(), plan.Name, len(plans) > 1)
		if err != nil {
			return nil, err
		}
		if opts.Select.Database != "" && path != folder.Path() {
			return nil, fmt.Errorf("%w: %s is the folder of several nodes: name the one that the database is of with -w %s", ErrOccupied, folder.Path(), filepath.Join(folder.Path(), "NODE"))
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// stageEach locks and stages the workdir of each plan.
func stageEach(places []string, plans []*Plan) ([]*target, error) {
	var targets []*target
	for i, plan := range plans {
		wd, err := workdir.Lock(places[i])
		if err != nil {
			return targets, err
		}
		target := &target{name: plan.Name, wd: wd, ovn: plan.OVN(), member: true}
		targets = append(targets, target)
		if target.staging, err = wd.Stage(); err != nil {
			return targets, err
		}
	}
	return targets, nil
}

func closeAll(targets []*target) {
	for _, target := range targets {
		if target.staging != nil {
			target.staging.Discard()
		}
		target.wd.RemoveIfEmpty()
		target.wd.Unlock()
	}
}

// install writes every node to its staging folder, and then installs them all. A node
// without data is skipped if another node has data.
func install(ctx context.Context, folder *workdir.Staging, targets []*target, plans []*Plan, found *Found, opts Options) ([]Written, error) {
	var ready []*target
	var empty []error
	for i, target := range targets {
		var err error
		target.collections, err = write(ctx, target, plans[i], opts)
		if target.member {
			for kind := range target.collections {
				target.collections[kind].Node = target.name
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", plans[i].Source.Name, err)
		}
		switch {
		case errors.Is(err, ErrNothing):
			empty = append(empty, err)
			if len(targets) > 1 {
				found.Lost = append(found.Lost, fmt.Sprintf("%s: %v", target.name, err))
			}
		case err != nil:
			return nil, err
		default:
			ready = append(ready, target)
		}
	}
	if len(ready) == 0 {
		return nil, errors.Join(empty...)
	}
	return installAll(folder, ready)
}

// installAll installs what was written: all of it or nothing.
func installAll(folder *workdir.Staging, ready []*target) ([]Written, error) {
	var done []Written
	var staged []workdir.Staged
	for _, target := range ready {
		staged = append(staged, workdir.Staged{Staging: target.staging, Collections: target.collections})
		done = append(done, Written{Name: target.name, Path: target.wd.Path(), Collections: target.collections, OVN: target.ovn})
	}
	if !ready[0].member {
		return done, ready[0].staging.Install(ready[0].collections...)
	}
	return done, folder.InstallAll(staged)
}
