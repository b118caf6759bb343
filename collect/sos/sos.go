// Package sos collects one sos report into a workdir: its OVS half, its OVN
// half, or both in the same pass over the archive.
package sos

import (
	"context"
	"fmt"
	"path/filepath"

	"ovs-offline/collect"
	"ovs-offline/internal/workdir"
	"ovs-offline/sosreport"
)

// Half is what to take of a report.
type Half = collect.Half

// Collect reads the report at source once and puts the halves asked for into
// the workdir. What the workdir held of other kinds stays as it is; on any
// error all of it does.
func Collect(ctx context.Context, wd *workdir.Dir, source string, half Half, opts collect.Options) ([]workdir.Collection, error) {
	if half.OVS {
		if err := collect.Refuse(wd, opts.Force, false, workdir.OVS); err != nil {
			return nil, err
		}
	}
	staging, err := wd.Stage()
	if err != nil {
		return nil, err
	}
	defer staging.Discard()
	spool, err := staging.Spool()
	if err != nil {
		return nil, err
	}
	report, err := sosreport.Open(ctx, source, spool, opts.Limits, opts.Progress)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	collections, err := write(ctx, wd, staging, report.At(abs), half, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return collections, staging.Install(collections...)
}

func write(ctx context.Context, wd *workdir.Dir, staging *workdir.Staging, report *sosreport.Report, half Half, opts collect.Options) ([]workdir.Collection, error) {
	plan, err := collect.Judge(ctx, &report.Node)
	if err != nil {
		return nil, err
	}
	return collect.Write(ctx, wd, staging, plan, half, opts)
}
