package replica

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

var (
	ovsVersion = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)
	ovnVersion = regexp.MustCompile(`^ovn-nbctl ([0-9]\S*)`)
)

// compareVersions reports the recorded and the running versions, and adds a remark if
// they differ, because another OVS may print the same flows differently, or reject
// them.
func (s *starter) compareVersions(ctx context.Context) {
	running := report.Versions{}
	var ovs []byte
	var err error
	if s.serves(workdir.OVS) {
		ovs, err = askVersion(ctx, s.rt, server(s.wd, workdir.OVS)) // the server already runs
	} else {
		ovs, err = s.tool(ctx, "ovs-vswitchd", "--version")
	}
	if m := ovsVersion.FindSubmatch(ovs); err == nil && m != nil {
		running.OVS = string(m[1])
	}
	ovn, err := s.tool(ctx, "ovn-nbctl", "--version")
	if m := ovnVersion.FindSubmatch(ovn); err == nil && m != nil {
		running.OVN = string(m[1])
	}
	recorded := recordedVersions(s.manifest)
	s.report.Running, s.report.Recorded = running, recorded
	for _, v := range []struct{ program, recorded, running string }{{"Open vSwitch", recorded.OVS, running.OVS}, {"OVN", recorded.OVN, running.OVN}} {
		if v.recorded != "" && v.running != "" && runtime.Minor(v.recorded) != runtime.Minor(v.running) {
			s.report.Remark(fmt.Sprintf("recorded with %s %s, running %s: traces show differences between these versions", v.program, v.recorded, v.running))
		}
	}
}

// askVersion asks a running daemon for its version.
func askVersion(ctx context.Context, rt runtime.Runtime, d runtime.Daemon) ([]byte, error) {
	return daemon.Ask(ctx, rt, d.RunDir, d.Program, "version")
}

// findDetrace makes the wrapper of ovn-detrace run this host's ovn-detrace if the image
// has none: ovn-detrace needs Python and a library of OVS.
func (s *starter) findDetrace(ctx context.Context) {
	const detrace = "ovn-detrace"
	if len(s.opts.Exec) == 0 || !s.serves(workdir.NB) || !s.serves(workdir.SB) {
		return
	}
	if _, err := s.tool(ctx, "bash", "-c", "type -P "+detrace); err != nil && ctx.Err() == nil {
		s.hostTools = append(s.hostTools, detrace)
		s.report.Remark(detrace + " is not in the image, so its wrapper runs this host's")
	}
}

// Recorded returns the versions of OVS and OVN on the node, "" if unknown.
func Recorded(wd *workdir.Dir) (report.Versions, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return report.Versions{}, err
	}
	return recordedVersions(manifest), nil
}

func recordedVersions(m *workdir.Manifest) report.Versions {
	var v report.Versions
	for _, c := range m.Collections {
		v.OVS, v.OVN = cmp.Or(c.OVSVersion, v.OVS), cmp.Or(c.OVNVersion, v.OVN)
	}
	return v
}
