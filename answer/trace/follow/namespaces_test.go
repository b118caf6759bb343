package follow_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestPredictionsThroughNamespaces compares, for the sets whose routers are network namespaces, what the tracer
// says with what came out. No prediction may be wrong.
func TestPredictionsThroughNamespaces(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "unshare", "xz")
	for _, name := range sets.NamespaceNames() {
		t.Run(name, func(t *testing.T) {
			s := sets.RecordedNamespaces(t, "../../../scripts/lab/lab", name)
			comparePredictions(t, s, replicas(t, s, sets.Native, ""))
		})
	}
}

// enter takes the outputs at devices of namespaces, beyond which the tracer does not follow, as undetermined, if
// the packet really entered there.
func (p *prediction) enter(s *sets.Set, asked *sets.Packet) {
	if slices.Contains(sets.NamespaceNames(), s.Name) && !asked.Established {
		if f, err := sets.Frame(asked.Bytes); err == nil {
			p.source = f.Packet.Get("nw_src")
		}
	}
	var entered []string
	for _, o := range asked.Passed {
		if f, err := sets.Frame(o.Bytes); err == nil && !o.Left {
			entered = append(entered, o.Node+" "+o.Port+" "+normal(f.Packet, asked.Datagram != 0))
		}
	}
	p.outputs = slices.DeleteFunc(p.outputs, func(output string) bool {
		if !slices.Contains(entered, output) {
			return false
		}
		p.causes = append(p.causes, "it enters a namespace by "+output)
		return true
	})
}

var sourcePort = regexp.MustCompile("tp_src=[0-9]+")

// anyPort leaves out the source ports of packets whose source address was translated: rules of routers choose
// them at random (--random-fully).
func (p *prediction) anyPort(outputs []string) []string {
	if p.source == "" {
		return outputs
	}
	var list []string
	for _, output := range outputs {
		if !strings.Contains(output+",", "nw_src="+p.source+",") {
			output = sourcePort.ReplaceAllString(output, "tp_src=any")
		}
		list = append(list, output)
	}
	return list
}
