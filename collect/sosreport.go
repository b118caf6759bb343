package collect

import (
	"cmp"
	"context"
	"path/filepath"

	"ovs-offline/internal/archive"
	"ovs-offline/sosreport"
	"ovs-offline/workdir"
)

// SosReport is the source of one sos report: an archive, or a folder that one was
// extracted to.
type SosReport struct {
	Path     string
	Limits   archive.Limits // the zero value stands for archive.Default
	Progress archive.Progress
}

// Kinds returns OVS: most reports hold it, and databases of OVN only some.
func (s SosReport) Kinds() []workdir.Kind { return []workdir.Kind{workdir.OVS} }

// Read implements Source.
func (s SosReport) Read(ctx context.Context, spool string) (*Found, error) {
	abs, err := filepath.Abs(s.Path)
	if err != nil {
		return nil, err
	}
	report, err := sosreport.Open(ctx, s.Path, spool, s.Limits, s.Progress)
	if err != nil {
		return nil, err
	}
	report.At(abs)
	if err := putTogether(ctx, spool, &report.Recording); err != nil {
		return nil, err
	}
	(&filesReader{ctx: ctx}).correctHost(&report.Recording)
	return &Found{Nodes: []Named{{Name: cmp.Or(report.Host, "node"), Recording: &report.Recording}}}, nil
}
