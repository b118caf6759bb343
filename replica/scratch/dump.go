package scratch

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Dump is the output of ovs-ofctl about the integration bridge of a node. Package openflow
// reads the texts.
type Dump struct {
	Bridge  string
	Version openflow.Version
	Flows   string // of dump-flows, with cookies and statistics
	Groups  string // of dump-groups
	Meters  string // of dump-meters
	TLVMap  string // of dump-tlv-map
}

// Dump returns the flows, groups, meters and the TLV map that the ovn-controller of a node
// has installed, in the words of an OpenFlow version.
func (s *Scratch) Dump(ctx context.Context, node string, version openflow.Version) (Dump, error) {
	daemons := s.nodes[node]
	if daemons == nil {
		return Dump{}, fmt.Errorf("no node has the name %q", node)
	}
	dump, err := DumpBridge(ctx, s.options.Runtime, daemons.switchDir(), daemons.bridge, version, nil)
	if err != nil {
		return Dump{}, fmt.Errorf("node %s: %w", node, causeOf(ctx, s.options.Runtime, daemons.vswitchd(), err))
	}
	return dump, nil
}

// DumpBridge returns what a bridge of an ovs-vswitchd has in its tables, in the words of an OpenFlow version. runDir is the folder
// of its sockets. What needs another version than those of protocols, where there are any, is left out.
func DumpBridge(ctx context.Context, rt runtime.Runtime, runDir, bridge string, version openflow.Version, protocols []string) (Dump, error) {
	dump := Dump{Bridge: bridge, Version: version}
	socket := "unix:" + filepath.Join(runDir, bridge+".mgmt")
	for _, part := range []struct {
		command string
		version openflow.Version
		into    *string
	}{
		{"dump-flows", version, &dump.Flows}, {"dump-groups", groupVersion(version), &dump.Groups},
		{"dump-meters", max(version, openflow.OpenFlow13), &dump.Meters}, {"dump-tlv-map", version, &dump.TLVMap},
	} {
		if !part.version.In(protocols) {
			continue
		}
		text, err := rt.Tool(ctx, runDir, nil, "ovs-ofctl", "--no-names", "-O", part.version.String(), "--", part.command, socket)
		if err != nil {
			return Dump{}, err
		}
		*part.into = string(text)
	}
	return dump, nil
}

// causeOf returns the error of a tool that asked a daemon, with the end of the daemon if it has
// ended. A process that is ending closes its connections before the lock on its pid file.
func causeOf(ctx context.Context, rt runtime.Runtime, d runtime.Daemon, err error) error {
	const patience, pause = 2 * time.Second, time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(pause) {
		state, failed := rt.State(ctx, d)
		switch {
		case failed != nil:
			return err
		case !state.Running:
			return fmt.Errorf("%s has ended: %s: %w", d.Program, cmp.Or(state.Problem, "it left no message"), err)
		case !daemon.IsEnding(state.PID) || time.Now().After(end):
			return err
		}
	}
}

// groupVersion returns the version that prints groups with what they have in another one. In
// OpenFlow 1.0, newer versions of ovs-ofctl print all that OpenFlow 1.5 has, and older ones
// refuse.
func groupVersion(version openflow.Version) openflow.Version {
	if version.HasBucketProperties() {
		return openflow.OpenFlow15
	}
	return version
}
