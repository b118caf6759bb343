package synth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/internal/ovn"
	"ovs-offline/replica/release"
	"ovs-offline/workdir"
)

// All is the name that selects all chassis.
const All = "all"

// Options are the options of Make.
type Options struct {
	// Chassis selects chassis by host name or system-id; All selects all. Without names,
	// the chassis of the last time are made again, and at first the only one.
	Chassis []string
	Release release.Options
	Version string // of ovs-offline
	// Progress is called with what is being done; it may be nil.
	Progress func(text string)
}

// Needed reports whether a workdir has OVN databases, as a must-gather has them, and nothing
// of Open vSwitch that was collected. If the user asks for chassis, one of the two databases is
// enough: ovn-northd makes the southbound database of the northbound one.
func Needed(wd *workdir.Dir, asked bool) (bool, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return false, err
	}
	northbound, err := NorthboundOnly(wd)
	if err != nil || northbound && !asked && manifest.Collection(workdir.SB) == nil {
		return false, err
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if _, err := os.Stat(wd.Database(kind)); err != nil && !northbound && (kind == workdir.SB || !asked) {
			return false, nil
		}
	}
	if manifest.Synthesis() != nil {
		return true, nil
	}
	occupied, err := wd.Occupied(false, workdir.OVS)
	return len(occupied) == 0, err
}

// Make makes up the switches of chassis of a locked workdir for which Needed is true: that
// of one chassis in the workdir itself, and of several in workdirs below wd.Chassis().
// What was made from the same database before stays. It returns the chassis; none for a
// database without any, or with several if none is named. After an error, the workdir
// is as it was.
func Make(ctx context.Context, wd *workdir.Dir, options Options) ([]ovn.Chassis, error) {
	if err := completeDatabases(ctx, wd, options); err != nil {
		return nil, err
	}
	southbound, err := Read(ctx, wd.Database(workdir.SB))
	if err != nil {
		return nil, err
	}
	maker := &maker{wd: wd, options: options, southbound: southbound}
	if maker.sum, err = workdir.SumOf(ctx, wd.Database(workdir.SB)); err != nil {
		return nil, err
	}
	chosen, err := maker.choose()
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	return chosen, maker.make(ctx, chosen)
}

// maker makes up the switches of one southbound database.
type maker struct {
	wd         *workdir.Dir
	options    Options
	southbound *Southbound
	sum        string // sha256 of the southbound database
}

// choose returns the chassis to make.
func (m *maker) choose() ([]ovn.Chassis, error) {
	local := m.southbound.Local()
	if len(m.options.Chassis) > 0 && !slices.Contains(m.options.Chassis, All) {
		return selectByName(local, m.options.Chassis)
	}
	if len(m.options.Chassis) > 0 && len(local) == 0 {
		return nil, fmt.Errorf("%w: the OVN SB database of %s has none", ErrNoChassis, m.wd.Path())
	}
	if len(m.options.Chassis) > 0 {
		return local, nil
	}
	last, err := madeBefore(m.wd)
	if err != nil {
		return nil, err
	}
	again := slices.DeleteFunc(slices.Clone(local), func(chassis ovn.Chassis) bool { return !slices.Contains(last, chassis.Name) })
	switch {
	case len(again) > 0:
		return again, nil
	case len(local) == 1:
		return local, nil
	case len(local) == 0:
		m.progress("only the databases start: the OVN SB database has no chassis, whose switch could be synthesised")
		return nil, nil
	}
	m.progress("only the databases start: the OVN SB database has %d chassis (%s), and -w %s start --chassis NAME, or --chassis all, synthesises their switches", len(local), titles(local), m.wd.Path())
	return nil, nil
}

// madeBefore returns the names of the chassis that were made before.
func madeBefore(wd *workdir.Dir) (names []string, err error) {
	below, err := workdir.Below(wd.Chassis())
	if err != nil {
		return nil, err
	}
	for _, path := range append(below, wd.Path()) {
		d, err := workdir.Find(path)
		if err != nil {
			return nil, err
		}
		manifest, err := d.Manifest()
		if err != nil {
			return nil, err
		}
		if synthesis := manifest.Synthesis(); synthesis != nil {
			names = append(names, synthesis.Chassis)
		}
	}
	return names, nil
}

// chassisWorkdir is the workdir of a chassis.
type chassisWorkdir struct {
	ovn.Chassis
	path string
}

// make makes what is missing. Switches that were made from another database are removed even
// if that fails: they would be taken for this one's.
func (m *maker) make(ctx context.Context, chosen []ovn.Chassis) (err error) {
	targets := m.targets(chosen)
	missing := slices.DeleteFunc(slices.Clone(targets), m.isCurrent)
	if len(missing) > 0 {
		err = m.compute(ctx, missing)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, m.removeOthers(context.WithoutCancel(ctx), targets))
}

// targets returns the workdirs of the chassis.
func (m *maker) targets(chosen []ovn.Chassis) (targets []chassisWorkdir) {
	if len(chosen) == 1 {
		return []chassisWorkdir{{chosen[0], m.wd.Path()}}
	}
	for i, name := range folders(chosen) {
		targets = append(targets, chassisWorkdir{chosen[i], filepath.Join(m.wd.Chassis(), name)})
	}
	return targets
}

// lock returns the workdir of a chassis, locked until unlock is called.
func (m *maker) lock(path string) (wd *workdir.Dir, unlock func(), err error) {
	if path == m.wd.Path() {
		return m.wd, func() {}, nil
	}
	wd, err = workdir.Lock(path)
	return wd, wd.Unlock, err
}

// folders returns the names of the workdirs of chassis: their titles, or their system-ids
// where several have one title.
func folders(all []ovn.Chassis) []string {
	seen := map[string]int{}
	for _, chassis := range all {
		seen[chassis.Title()]++
	}
	var names []string
	for _, chassis := range all {
		name := chassis.Title()
		if seen[name] > 1 || !workdir.IsNodeName(name) {
			name = chassis.Name
		}
		names = append(names, workdir.EncodeName(name))
	}
	return names
}

// isCurrent reports whether the switch of a chassis was made from the same database.
func (m *maker) isCurrent(target chassisWorkdir) bool {
	wd, err := workdir.Find(target.path)
	if err != nil {
		return false
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return false
	}
	synthesis := manifest.Synthesis()
	return synthesis != nil && synthesis.Chassis == target.Name && synthesis.SHA256 == m.sum && manifest.Collection(workdir.OVS).Source.Tool == m.tool()
}

// tool names this program and its version: another one may assume other things.
func (m *maker) tool() string { return "ovs-offline " + m.options.Version }

func (m *maker) progress(format string, args ...any) {
	if m.options.Progress != nil {
		m.options.Progress(fmt.Sprintf(format, args...))
	}
}
