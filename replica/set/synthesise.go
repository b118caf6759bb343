package set

import (
	"context"
	"fmt"
	"os"
	"slices"

	"ovs-offline/internal/fault"
	"ovs-offline/replica/synth"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Synthesise makes up the switch of a workdir for which only OVN databases were collected, or of
// each such node with one of these names in a folder. It reports whether one could not be made up,
// and passes the reason to notify, which is called from several goroutines. It returns no error
// about the folder itself: the start that follows does.
func Synthesise(ctx context.Context, folder string, names []string, options synth.Options, notify func(line string)) (lacking bool, err error) {
	s, err := snapshot.Open(folder, names)
	switch {
	case err != nil:
		return false, nil
	case s == nil:
		if _, err := os.Stat(folder); err != nil || len(names) > 0 {
			return false, nil
		}
		return synthesiseAt(ctx, folder, options, notify)
	case s.Owner() != "":
		return synthesiseAt(ctx, s.Owner(), options, notify)
	case len(options.Chassis) > 0:
		return false, fault.Usagef("--chassis selects from the databases of one node; choose it with -w")
	}
	printed := synth.NewPrinted()
	do := func(each func(context.Context, *snapshot.Node, *workdir.Dir) (bool, error)) {
		for _, outcome := range snapshot.EachLocked(ctx, s, each) {
			lacking = lacking || outcome.Value
		}
	}
	if slices.ContainsFunc(s.Nodes(), func(n *snapshot.Node) bool {
		wd, err := n.Workdir()
		return err == nil && synth.HasPrinted(wd)
	}) {
		do(func(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (bool, error) {
			return prepare(ctx, wd, printed, options, n.Name+": ", notify)
		})
	}
	do(func(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (bool, error) {
		return synthesiseIn(ctx, wd, printed, options, n.Name+": ", notify)
	})
	return lacking, ctx.Err()
}

// synthesiseAt makes up the switches of the workdir at path.
func synthesiseAt(ctx context.Context, path string, options synth.Options, notify func(line string)) (lacking bool, err error) {
	wd, err := workdir.Lock(path)
	if err != nil {
		return false, nil // start returns the error
	}
	defer wd.Unlock()
	printed := synth.NewPrinted()
	if lacking, err := prepare(ctx, wd, printed, options, "", notify); err != nil || lacking {
		return lacking, err
	}
	return synthesiseIn(ctx, wd, printed, options, "", notify)
}

// prepare prepares databases that are made from printed tables. It reports whether that failed, and
// passes the reason to notify.
func prepare(ctx context.Context, wd *workdir.Dir, printed *synth.Printed, options synth.Options, prefix string, notify func(line string)) (lacking bool, err error) {
	options.Progress = func(text string) { notify(prefix + text) }
	return withoutPrinted(ctx, printed.Prepare(ctx, wd, options), prefix, notify)
}

// withoutPrinted passes the reason why a database could not be made from its printed tables to notify:
// the rest of the node starts without it.
func withoutPrinted(ctx context.Context, err error, prefix string, notify func(line string)) (lacking bool, _ error) {
	if ctx.Err() != nil || err == nil {
		return false, ctx.Err()
	}
	notify("warning: " + prefix + err.Error())
	return true, nil
}

// hintNorthbound says how to go on with a northbound database alone.
func hintNorthbound(wd *workdir.Dir, prefix string, notify func(line string)) error {
	only, err := synth.NorthboundOnly(wd)
	if err != nil || !only {
		return err
	}
	occupied, err := wd.Occupied(false, workdir.OVS)
	if err == nil && len(occupied) == 0 {
		notify(fmt.Sprintf("%sonly the OVN NB database starts: -w %s start --chassis all computes the SB database and the switches from it", prefix, wd.Path()))
	}
	return err
}

// synthesiseIn makes up the switches of a locked workdir. The prefix of lines names the node.
func synthesiseIn(ctx context.Context, wd *workdir.Dir, printed *synth.Printed, options synth.Options, prefix string, notify func(line string)) (lacking bool, err error) {
	options.Progress = func(text string) { notify(prefix + text) }
	if lacking, err := withoutPrinted(ctx, printed.Finish(ctx, wd, options), prefix, notify); err != nil || lacking {
		return lacking, err
	}
	needed, err := synth.Needed(wd, len(options.Chassis) > 0)
	if err == nil && !needed && len(options.Chassis) == 0 {
		return false, hintNorthbound(wd, prefix, notify)
	}
	if err != nil || !needed {
		if len(options.Chassis) > 0 && err == nil {
			err = fault.Usagef("--chassis is for OVN databases without data of Open vSwitch, and %s is not such a working directory", wd.Path())
		}
		return false, err
	}
	_, err = synth.Make(ctx, wd, options)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case fault.Of(err) == fault.Usage:
		return false, err
	case err != nil:
		notify("warning: " + prefix + err.Error())
		return true, nil
	}
	return false, nil
}
