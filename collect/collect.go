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

	"ovs-offline/internal/workdir"
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

func (s Select) has(k workdir.Kind) bool {
	return s.Database == k || k == workdir.OVS && s.OVS || k != workdir.OVS && s.OVN
}

// Written is a node that was written to a workdir.
type Written struct {
	Name        string
	Path        string // of its workdir
	Collections []workdir.Collection
	OVN         OVN
}

// Refuse returns an error that describes the workdir's data of the given kinds,
// nil if it has none or force is set. With databaseOnly, only databases count.
func Refuse(wd *workdir.Dir, force, databaseOnly bool, kinds ...workdir.Kind) error {
	occupied, err := wd.Occupied(databaseOnly, kinds...)
	if err != nil || len(occupied) == 0 || force {
		return err
	}
	return fmt.Errorf("%w: %s: %s; --force replaces it, -w DIR keeps both", ErrOccupied, wd.Path(), strings.Join(occupied, "; "))
}

// refuse calls Refuse for one kind, with the selection and the force of the options.
func (o Options) refuse(wd *workdir.Dir, k workdir.Kind) error {
	return Refuse(wd, o.Force, k != workdir.OVS || o.Select.Database == k, k)
}

// Collect reads the source once and puts each node into the workdir that Place returns.
// Either all are installed or none.
func Collect(ctx context.Context, wd *workdir.Dir, src Source, opts Options) ([]Written, *Found, error) {
	opts.Select = opts.Select.orEverything()
	for _, k := range src.Kinds() {
		if opts.Select.has(k) {
			if err := opts.refuse(wd, k); err != nil {
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
	for _, n := range nodes {
		plan, err := judge(ctx, n, references)
		if err != nil {
			return found, nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		plans = append(plans, plan)
	}
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
	for _, p := range plans {
		names = append(names, p.Name)
	}
	return names
}

// places returns the path of the workdir of each plan. A database that is collected alone
// belongs to a node that the user names.
func places(folder *workdir.Dir, plans []*Plan, opts Options) ([]string, error) {
	var paths []string
	for _, p := range plans {
		path, err := Place(folder.Path(), p.Name, len(plans) > 1)
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
	for i, p := range plans {
		wd, err := workdir.Lock(places[i])
		if err != nil {
			return targets, err
		}
		t := &target{name: p.Name, wd: wd, ovn: p.OVN(), member: true}
		targets = append(targets, t)
		if t.staging, err = wd.Stage(); err != nil {
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

// install writes every node to its staging folder, and then installs them all. A node
// without data is skipped if another node has data.
func install(ctx context.Context, folder *workdir.Staging, targets []*target, plans []*Plan, found *Found, opts Options) ([]Written, error) {
	var ready []*target
	var empty []error
	for i, t := range targets {
		var err error
		t.collections, err = write(ctx, t, plans[i], opts)
		if t.member {
			for k := range t.collections {
				t.collections[k].Node = t.name
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", plans[i].Source.Name, err)
		}
		switch {
		case errors.Is(err, ErrNothing):
			empty = append(empty, err)
			if len(targets) > 1 {
				found.Lost = append(found.Lost, fmt.Sprintf("%s: %v", t.name, err))
			}
		case err != nil:
			return nil, err
		default:
			ready = append(ready, t)
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
	for _, t := range ready {
		staged = append(staged, workdir.Staged{Staging: t.staging, Collections: t.collections})
		done = append(done, Written{Name: t.name, Path: t.wd.Path(), Collections: t.collections, OVN: t.ovn})
	}
	if !ready[0].member {
		return done, ready[0].staging.Install(ready[0].collections...)
	}
	return done, folder.InstallAll(staged)
}
