package synth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/desired/release"
	"ovs-offline/internal/workdir"
)

// All is the name that selects all chassis.
const All = "all"

// Options are the options of Make.
type Options struct {
	// Chassis selects chassis by host name or system-id; All selects all. Without names,
	// those of the last time are made again, and at first the only one.
	Chassis []string
	Release release.Options
	// Progress is called with what is being done; it may be nil.
	Progress func(text string)
}

// Needed reports whether a workdir has OVN databases, as a must-gather has them, and nothing
// of Open vSwitch that was collected. If the user asks for chassis, the southbound database
// alone is enough.
func Needed(wd *workdir.Dir, asked bool) (bool, error) {
	m, err := wd.Manifest()
	if err != nil {
		return false, err
	}
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		if _, err := os.Stat(wd.Database(k)); err != nil && (k == workdir.SB || !asked) {
			return false, nil
		}
	}
	if m.Synthesis() != nil {
		return true, nil
	}
	occupied, err := wd.Occupied(false, workdir.OVS)
	return len(occupied) == 0, err
}

// Make makes up the switches of chassis of a locked workdir for which Needed is true: that
// of one chassis in the workdir itself, and those of several in workdirs below wd.Chassis().
// What was made from the same database before stays. It returns the chassis; none for a
// database without any, or with several of which none is named. After an error, the workdir
// is as it was.
func Make(ctx context.Context, wd *workdir.Dir, o Options) ([]Chassis, error) {
	s, err := Read(ctx, wd.Database(workdir.SB))
	if err != nil {
		return nil, err
	}
	m := &maker{wd: wd, options: o, southbound: s}
	if m.sum, err = sumOf(ctx, wd.Database(workdir.SB)); err != nil {
		return nil, err
	}
	chosen, err := m.choose()
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	return chosen, m.make(ctx, chosen)
}

// maker makes up the switches of one southbound database.
type maker struct {
	wd         *workdir.Dir
	options    Options
	southbound *Southbound
	sum        string // sha256 of the southbound database
}

// choose returns the chassis to make.
func (m *maker) choose() ([]Chassis, error) {
	local := m.southbound.Local()
	if len(m.options.Chassis) > 0 && !slices.Contains(m.options.Chassis, All) {
		return selectByName(local, m.options.Chassis)
	}
	if len(m.options.Chassis) > 0 {
		return local, nil
	}
	last, err := made(m.wd)
	if err != nil {
		return nil, err
	}
	again := slices.DeleteFunc(slices.Clone(local), func(c Chassis) bool { return !slices.Contains(last, c.Name) })
	switch {
	case len(again) > 0:
		return again, nil
	case len(local) == 1:
		return local, nil
	case len(local) == 0:
		return nil, nil
	}
	m.progress("only the databases start: the OVN SB database has %d chassis (%s), and -w %s start --chassis NAME, or --chassis all, synthesises their switches", len(local), titles(local), m.wd.Path())
	return nil, nil
}

// made returns the names of the chassis that were made before.
func made(wd *workdir.Dir) (names []string, err error) {
	below, err := workdir.Below(wd.Chassis())
	if err != nil {
		return nil, err
	}
	for _, path := range append(below, wd.Path()) {
		d, err := workdir.Find(path)
		if err != nil {
			return nil, err
		}
		m, err := d.Manifest()
		if err != nil {
			return nil, err
		}
		if s := m.Synthesis(); s != nil {
			names = append(names, s.Chassis)
		}
	}
	return names, nil
}

// place is the workdir of a chassis.
type place struct {
	Chassis
	path string
}

// make makes what is missing. Switches that were made from another database are removed even
// if that fails: they would be taken for those of this one.
func (m *maker) make(ctx context.Context, chosen []Chassis) (err error) {
	places := m.places(chosen)
	missing := slices.DeleteFunc(slices.Clone(places), m.isCurrent)
	if len(missing) > 0 {
		err = m.compute(ctx, missing)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, m.removeOthers(context.WithoutCancel(ctx), places))
}

// places returns the workdirs of the chassis.
func (m *maker) places(chosen []Chassis) (places []place) {
	if len(chosen) == 1 {
		return []place{{chosen[0], m.wd.Path()}}
	}
	for i, name := range folders(chosen) {
		places = append(places, place{chosen[i], filepath.Join(m.wd.Chassis(), name)})
	}
	return places
}

// lock returns the workdir of a place, locked until unlock is called.
func (m *maker) lock(path string) (wd *workdir.Dir, unlock func(), err error) {
	if path == m.wd.Path() {
		return m.wd, func() {}, nil
	}
	wd, err = workdir.Lock(path)
	return wd, wd.Unlock, err
}

// folders returns the names of the workdirs of chassis: their titles, or their system-ids
// where several have one title.
func folders(all []Chassis) []string {
	seen := map[string]int{}
	for _, c := range all {
		seen[c.Title()]++
	}
	var names []string
	for _, c := range all {
		name := c.Title()
		if seen[name] > 1 || !workdir.IsNodeName(name) {
			name = c.Name
		}
		names = append(names, workdir.EncodeName(name))
	}
	return names
}

// isCurrent reports whether the switch of a chassis was made from the same database.
func (m *maker) isCurrent(p place) bool {
	wd, err := workdir.Find(p.path)
	if err != nil {
		return false
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return false
	}
	s := manifest.Synthesis()
	return s != nil && s.Chassis == p.Name && s.SHA256 == m.sum && manifest.Collection(workdir.OVS).Source.Tool == m.tool()
}

// tool names this program and its version: another one may assume other things.
func (m *maker) tool() string { return "ovs-offline " + m.options.Release.Version }

func (m *maker) progress(format string, args ...any) {
	if m.options.Progress != nil {
		m.options.Progress(fmt.Sprintf(format, args...))
	}
}
