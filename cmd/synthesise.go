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
		return o.synthesiseIn(ctx, o.workdir, "", false)
	case s.Owner() != "":
		return o.synthesiseIn(ctx, s.Owner(), "", false)
	case len(o.chassis) > 0:
		return false, fmt.Errorf("%w: --chassis selects from the databases of one node; choose it with -w", errUsage)
	}
	for _, outcome := range set.Each(ctx, s, func(_ context.Context, _ *set.Node, wd *workdir.Dir) (string, error) { return wd.Path(), nil }) {
		lacks, err := o.synthesiseIn(ctx, outcome.Value, outcome.Node.Name+": ", true)
		if err != nil {
			return false, err
		}
		lacking = lacking || lacks
	}
	return lacking, nil
}

// synthesiseIn makes up the switches of the workdir at path; single is set for one of a set.
func (o *startOptions) synthesiseIn(ctx context.Context, path, prefix string, single bool) (lacking bool, err error) {
	wd, err := workdir.Lock(path)
	if err != nil {
		return false, nil // start returns the error
	}
	defer wd.Unlock()
	needed, err := synth.Needed(wd, len(o.chassis) > 0)
	if err != nil || !needed {
		if len(o.chassis) > 0 && err == nil {
			err = fmt.Errorf("%w: --chassis is for OVN databases without data of Open vSwitch, and %s is not such a working directory", errUsage, path)
		}
		return false, err
	}
	p := o.progress()
	_, err = synth.Make(ctx, wd, synth.Options{Chassis: o.chassis, Single: single,
		Release: release.Wanted{Runtime: o.runtime, Image: o.image, Versions: o.versions, Program: version},
		Progress: func(text string) {
			p.end()
			fmt.Fprintf(o.Err, "%s%s\n", terminal.Escape(prefix), terminal.Escape(text))
		}})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, synth.ErrNoChassis):
		return false, fmt.Errorf("%w: %w", errUsage, err)
	case err != nil:
		o.warn("%s%v", prefix, err)
		return true, nil
	}
	return false, nil
}
