package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/fault"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/lab"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/synth"
	"ovs-offline/workdir"
)

// maxText is the size of the longest text of --build, in bytes.
const maxText = 16 << 20

// carryOut makes the node of the commands in the text of --build. What became of them is in the report of the start.
func (o *startOptions) carryOut(ctx context.Context) error {
	text, err := o.readText(ctx)
	if err != nil {
		return err
	}
	wd, err := o.lockEmpty()
	if err != nil {
		return err
	}
	defer wd.Unlock()
	progress := o.progress()
	where := o.runtime
	if o.inPods != nil {
		where = choose.Auto
	}
	built, err := lab.Build(ctx, wd, ticket.ReadTyped(text), lab.Options{Name: o.build, Runtime: where, Version: version, Progress: func(line string) { progress.note("%s", line) },
		Wanted: runtime.Wanted{Image: o.image, Versions: o.versions}})
	if err != nil {
		wd.RemoveIfEmpty()
		if errors.Is(err, lab.ErrNothing) {
			page := *o.page()
			page.Out = page.Err
			report.PrintBuilt(&page, built)
		}
		return err
	}
	only, err := synth.NorthboundOnly(wd)
	if only && len(o.chassis) == 0 {
		o.chassis = []string{synth.All}
	}
	return err
}

// readText reads the text of --build.
func (o *startOptions) readText(ctx context.Context) (string, error) {
	file, err := o.openInput(ctx, o.build)
	if err != nil {
		return "", fault.Usagef("--build: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err == nil && len(text) > maxText {
		err = fault.Usagef("--build takes a text of 16 MiB, and %s is larger", o.build)
	}
	return string(text), err
}

// lockEmpty locks the workdir of --build, which has no workdirs of nodes in it.
func (o *startOptions) lockEmpty() (*workdir.Dir, error) {
	below, err := workdir.Below(o.workdir)
	if err != nil {
		return nil, err
	}
	if len(below) > 0 {
		return nil, fault.Usagef("--build needs an empty working directory, and %s holds those of %d nodes; choose another with -w", o.workdir, len(below))
	}
	wd, err := workdir.Lock(o.workdir)
	if err != nil {
		return nil, fmt.Errorf("--build: %w", err)
	}
	return wd, nil
}
