// Package inputs decides what a person's files are, by what is in them: sos
// reports, must-gathers, archives of such, databases, ovs-save's output, loose
// dumps. It is the one place that does. Out come nodes, each of which is
// written into a workdir of its own.
package inputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
	"ovs-offline/sosreport"
)

// Input is what one of the paths is.
type Input struct {
	Path  string   `json:"path"`
	Kinds []string `json:"kinds"` // "sos report (sos 4.8.2)", "OpenShift must-gather 4.14.1"
}

// Named is a node under a name that no other one has.
type Named struct {
	Name string
	*recording.Node
}

// Found is everything that the paths hold.
type Found struct {
	Inputs []Input
	Nodes  []Named
	// Lost are whole inputs, or parts that belong to no node, that could not be read.
	Lost []string
}

// Open reads every path once and keeps what it needs in spool, a folder of the
// caller's. A path that can't be read is among Found.Lost, if another one can.
func Open(ctx context.Context, paths []string, spool string, limits archive.Limits, progress archive.Progress) (*Found, error) {
	g := &gathering{ctx: ctx, paths: paths, spool: spool, limits: limits, found: &Found{}, judged: map[string]inspected{}}
	var errs []error
	for _, path := range paths {
		err := g.add(path, progress)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == len(paths) {
		return nil, errors.Join(errs...)
	}
	for _, err := range errs {
		g.found.Lost = append(g.found.Lost, err.Error())
	}
	if err := g.assemble(); err != nil {
		return nil, err
	}
	return g.found, nil
}

// gathering is what was recognised so far.
type gathering struct {
	ctx     context.Context
	paths   []string
	spool   string
	limits  archive.Limits
	found   *Found
	reports []*recording.Node
	loose   loose
	judged  map[string]inspected // databases, by file
}

// inspected is what a database file turned out to be.
type inspected struct {
	file.Info
	err   error
	whose *belongs // nil until somebody asks
}

// inspect tells what a database is; each is read once.
func (g *gathering) inspect(file string) (file.Info, error) {
	known, there := g.judged[file]
	if !there {
		known.Info, known.err = collect.Inspect(g.ctx, file)
		g.judged[file] = known
	}
	return known.Info, known.err
}

// owner tells whose a database is; each is read once for that as well.
func (g *gathering) owner(file string) belongs {
	info, err := g.inspect(file)
	if err != nil {
		return belongs{}
	}
	known := g.judged[file]
	if known.whose == nil {
		whose := readOwner(g.ctx, file, info.Name)
		known.whose = &whose
		g.judged[file] = known
	}
	return *known.whose
}

// add reads one path and recognises what is in it.
func (g *gathering) add(path string, progress archive.Progress) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	tree, err := archive.Read(g.ctx, path, g.spool, wanted, g.limits, progress)
	if errors.Is(err, archive.ErrNotArchive) {
		// A pipe was read, and is not there a second time.
		if info, statErr := os.Stat(path); statErr == nil && info.Mode().IsRegular() {
			if _, err := collect.Inspect(g.ctx, path); errors.Is(err, file.ErrTailed) {
				return fmt.Errorf("%w: %s: %w", collect.ErrNothing, path, err)
			}
		}
		return fmt.Errorf("%w: %s holds nothing of Open vSwitch or OVN (%w)", collect.ErrNothing, path, err)
	}
	if err != nil {
		return err
	}
	input := Input{Path: path}
	reports, err := sosreport.Find(g.ctx, tree, g.limits)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	taken := map[string]bool{}
	for _, r := range reports {
		taken[r.Top] = true
		r.At(inside(abs, r.Top))
		g.reports = append(g.reports, &r.Node)
		input.Kinds = append(input.Kinds, fmt.Sprintf("sos report of %s (%s)", nameOr(r.Host, "an unnamed node"), r.Source.Tool))
	}
	kinds, err := g.looseFiles(tree, abs, taken)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	input.Kinds = append(input.Kinds, kinds...)
	g.losses(tree, path, taken)
	if len(input.Kinds) == 0 {
		return fmt.Errorf("%w: %s holds nothing of Open vSwitch or OVN (no sos report, must-gather, database, ovs-save's output or dump)%s", collect.ErrNothing, path, lostToo(tree))
	}
	g.found.Inputs = append(g.found.Inputs, input)
	return nil
}

func lostToo(tree *archive.Tree) string {
	if len(tree.Lost) == 0 {
		return ""
	}
	return "; what could not be read: " + tree.Lost[0].String()
}

// losses are what could not be read outside of all reports. What a report has
// of others' archives is not its matter.
func (g *gathering) losses(tree *archive.Tree, path string, taken map[string]bool) {
	for _, l := range tree.Lost {
		if !below(l.Path, taken) {
			g.found.Lost = append(g.found.Lost, fmt.Sprintf("%s: %s", path, l))
		}
	}
}

// below tells whether a name is in the folder of one of the tops.
func below(name string, tops map[string]bool) bool {
	if tops[""] {
		return true
	}
	for dir := name; dir != ""; dir = dir[:max(0, strings.LastIndexByte(dir, '/'))] {
		if tops[dir] {
			return true
		}
	}
	return false
}

// inside names a part of a source.
func inside(source, part string) string {
	if part == "" {
		return source
	}
	return source + ":" + part
}

func nameOr(name, or string) string {
	if name == "" {
		return or
	}
	return name
}

// wanted tells what is kept of a source.
func wanted(name string, start []byte) bool {
	return sosreport.Wanted(name, start) || identify(name, start).what != nothing
}

// pick returns the nodes of those names; every name has to be there.
func (f *Found) pick(names []string) ([]Named, error) {
	if len(names) == 0 {
		return f.Nodes, nil
	}
	var picked []Named
	for _, name := range names {
		there := false
		for _, n := range f.Nodes {
			if n.Name == name || !there && sameHost(n.Host, name) {
				picked, there = append(picked, n), true
			}
		}
		if !there {
			var have []string
			for _, n := range f.Nodes {
				have = append(have, n.Name)
			}
			return nil, fmt.Errorf("%w: no node %q in the inputs; they have %s", collect.ErrNothing, name, strings.Join(have, ", "))
		}
	}
	return picked, nil
}

// Folder is where a node's workdir stands below a parent.
func (n Named) Folder(parent string) string {
	return filepath.Join(parent, workdir.EncodeName(n.Name))
}
