package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"ovs-offline/desired/release"
	"ovs-offline/desired/synth"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
)

// withSwitches returns a cobra function that calls start once the switches are synthesised
// of which only OVN databases were collected. Where that is not possible, start gets the
// databases alone, and the exit code says so.
func (o *startOptions) withSwitches(start func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		lacking, err := o.synthesise(c.Context())
		if err != nil {
			return err
		}
		return worst(start(c, args), incompleteIf(lacking))
	}
}

// synthesise makes up the switches of the workdir or of the selected nodes of the set. It
// reports whether one could not be made up, which it has printed. Problems with the workdir
// itself are left to start.
func (o *startOptions) synthesise(ctx context.Context) (lacking bool, err error) {
	s, err := set.Open(o.workdir, version, o.nodes)
	switch {
	case err != nil:
		return false, nil
	case s == nil:
		if _, err := os.Stat(o.workdir); err != nil || len(o.nodes) > 0 {
			return false, nil
		}
		return o.synthesiseAt(ctx, o.workdir)
	case s.Owner() != "":
		return o.synthesiseAt(ctx, s.Owner())
	case len(o.chassis) > 0:
		return false, fmt.Errorf("%w: --chassis selects from the databases of one node; choose it with -w", errUsage)
	}
	outcomes := set.EachLocked(ctx, s, func(ctx context.Context, n *set.Node, wd *workdir.Dir) (bool, error) {
		return o.synthesiseIn(ctx, wd, n.Name+": ")
	})
	for _, outcome := range outcomes {
		lacking = lacking || outcome.Value
	}
	return lacking, ctx.Err()
}

// synthesiseAt makes up the switches of the workdir at path.
func (o *startOptions) synthesiseAt(ctx context.Context, path string) (lacking bool, err error) {
	wd, err := workdir.Lock(path)
	if err != nil {
		return false, nil // start returns the error
	}
	defer wd.Unlock()
	return o.synthesiseIn(ctx, wd, "")
}

// synthesiseIn makes up the switches of a locked workdir. The prefix of lines names the node.
func (o *startOptions) synthesiseIn(ctx context.Context, wd *workdir.Dir, prefix string) (lacking bool, err error) {
	needed, err := synth.Needed(wd, len(o.chassis) > 0)
	if err != nil || !needed {
		if len(o.chassis) > 0 && err == nil {
			err = fmt.Errorf("%w: --chassis is for OVN databases without data of Open vSwitch, and %s is not such a working directory", errUsage, wd.Path())
		}
		return false, err
	}
	_, err = synth.Make(ctx, wd, synth.Options{
		Chassis:  o.chassis,
		Release:  release.Options{Runtime: o.runtime, Version: version},
		Progress: func(text string) { o.say("%s%s", prefix, text) },
	})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, synth.ErrNoChassis):
		return false, fmt.Errorf("%w: %w", errUsage, err)
	case err != nil:
		o.say("warning: %s%v", prefix, err)
		return true, nil
	}
	return false, nil
}

// say prints a line about the synthesis of switches; the nodes of a set are worked on side
// by side.
func (o *startOptions) say(format string, args ...any) {
	o.saying.Lock()
	defer o.saying.Unlock()
	fmt.Fprintf(o.Err, "%s\n", terminal.Escape(fmt.Sprintf(format, args...)))
}
