package scratch

import (
	"context"
	"fmt"

	"ovs-offline/internal/openflow"
)

// Dump is what ovs-ofctl prints of the integration bridge of a node. Package openflow
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
func (s *Scratch) Dump(ctx context.Context, node string, v openflow.Version) (Dump, error) {
	p := s.places[node]
	if p == nil {
		return Dump{}, fmt.Errorf("no node has the name %q", node)
	}
	d := Dump{Bridge: p.bridge, Version: v}
	for _, part := range []struct {
		command string
		version openflow.Version
		into    *string
	}{
		{"dump-flows", v, &d.Flows}, {"dump-groups", groupVersion(v), &d.Groups},
		{"dump-meters", max(v, openflow.OpenFlow13), &d.Meters}, {"dump-tlv-map", v, &d.TLVMap},
	} {
		text, err := s.options.Runtime.Tool(ctx, p.switchDir(), nil, "ovs-ofctl", "--no-names", "-O", part.version.String(), "--", part.command, "unix:"+p.management())
		if err != nil {
			return Dump{}, fmt.Errorf("node %s: %w", node, err)
		}
		*part.into = string(text)
	}
	return d, nil
}

// groupVersion returns the version that prints groups with what they have in another one. In
// OpenFlow 1.0, newer versions of ovs-ofctl print all that OpenFlow 1.5 has, and older ones
// refuse.
func groupVersion(v openflow.Version) openflow.Version {
	if v.HasBucketProperties() {
		return openflow.OpenFlow15
	}
	return v
}
