package replica

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

var (
	ovsVersion = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)
	ovnVersion = regexp.MustCompile(`^ovn-nbctl ([0-9]\S*)`)
)

// askTools asks the runtime's tools what they are.
func (s *starter) askTools(ctx context.Context) {
	s.versions(ctx)
	// It is Python, with a library of its own, and what an image lacks first.
	const detrace = "ovn-detrace"
	if len(s.opts.Exec) > 0 && s.serves(workdir.NB) && s.serves(workdir.SB) {
		if _, err := s.tool(ctx, "bash", "-c", "type -P "+detrace); err != nil && ctx.Err() == nil {
			s.local = append(s.local, detrace)
			s.remark(detrace + " is not in the image, so its wrapper runs the one of this host")
		}
	}
}

// versions notes what was recorded and what runs, and warns where they differ:
// another OVS can say the same flows with other words, or not know them.
func (s *starter) versions(ctx context.Context) {
	s.report.Running = report.Versions{OVS: s.toolVersion(ctx, ovsVersion, "ovs-vswitchd"), OVN: s.toolVersion(ctx, ovnVersion, "ovn-nbctl")}
	s.report.Recorded = recorded(s.manifest)
	for _, v := range []struct{ what, recorded, running string }{
		{"Open vSwitch", s.report.Recorded.OVS, s.report.Running.OVS}, {"OVN", s.report.Recorded.OVN, s.report.Running.OVN}} {
		if v.recorded != "" && v.running != "" && minor(v.recorded) != minor(v.running) {
			s.remark(fmt.Sprintf("recorded with %s %s, running %s: what they do differently shows in traces", v.what, v.recorded, v.running))
		}
	}
}

// Recorded tells the versions that were recorded when the workdir was filled.
func Recorded(wd *workdir.Dir) (report.Versions, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return report.Versions{}, err
	}
	return recorded(manifest), nil
}

func recorded(m *workdir.Manifest) report.Versions {
	var v report.Versions
	for _, c := range m.Collections {
		v.OVS, v.OVN = cmp.Or(c.OVSVersion, v.OVS), cmp.Or(c.OVNVersion, v.OVN)
	}
	return v
}

func (s *starter) toolVersion(ctx context.Context, pattern *regexp.Regexp, tool string) string {
	out, err := s.rt.Tool(ctx, s.wd.VarRun(workdir.OVS), nil, tool, "--version")
	if m := pattern.FindStringSubmatch(string(out)); err == nil && m != nil {
		return m[1]
	}
	return ""
}

// minor is the part of a version in which behaviour changes.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
