package replica

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/restore"
)

var (
	ovsVersion = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)
	ovnVersion = regexp.MustCompile(`^ovn-nbctl ([0-9]\S*)`)
)

// versions notes what was recorded and what runs, and warns where they differ:
// another OVS can say the same flows with other words, or not know them.
func (s *starter) versions(ctx context.Context) {
	s.report.Running = restore.Versions{OVS: s.toolVersion(ctx, ovsVersion, "ovs-vswitchd"), OVN: s.toolVersion(ctx, ovnVersion, "ovn-nbctl")}
	for _, c := range s.manifest.Collections {
		if c.OVSVersion != "" {
			s.report.Recorded.OVS = c.OVSVersion
		}
		if c.OVNVersion != "" {
			s.report.Recorded.OVN = c.OVNVersion
		}
	}
	for _, v := range []struct{ what, recorded, running string }{
		{"Open vSwitch", s.report.Recorded.OVS, s.report.Running.OVS}, {"OVN", s.report.Recorded.OVN, s.report.Running.OVN}} {
		if v.recorded != "" && v.running != "" && minor(v.recorded) != minor(v.running) {
			s.remark(fmt.Sprintf("recorded with %s %s, running %s: what they do differently shows in traces", v.what, v.recorded, v.running))
		}
	}
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
