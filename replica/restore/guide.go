package restore

import (
	"context"
	"fmt"
	"hash/maphash"
	"os"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// loadVersion is the best OpenFlow version of a bridge in which ovs-ofctl sends
// "load" as such, "" if it speaks none. In OpenFlow 1.5 it becomes a masked
// set_field, which does the same, but a trace says it with other words.
func (b *Bridge) loadVersion() string {
	for _, v := range versions() {
		if v < "OpenFlow15" && allowed(b.Protocols, v) {
			return v
		}
	}
	return ""
}

// guide tells the flows whose actions the live switch held as loads: those that
// an older OpenFlow version or learn() had added. An OpenFlow 1.5 dump says
// set_field for them; only bridge/dump-flows, which shows what the switch
// holds, tells them apart. A switch may have a million: where each stands is
// kept, and what it says is read again.
type guide struct {
	dump *os.File
	seed maphash.Seed
	// flows are sorted: the hash of table, priority and match, and in the lower
	// bits the flow's offset in the dump.
	flows []uint64
}

const (
	offsetBits = 40
	mostGuided = 4_000_000 // flows that a guide tells of
)

// readGuide reads the recorded bridge/dump-flows. Without one it returns nil: no
// flow is known to hold loads.
func (n *Node) readGuide(ctx context.Context, b *Bridge) (*guide, error) {
	f, ok, err := n.recorded(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedBridgeFlows))
	if !ok {
		return nil, err
	}
	g := &guide{dump: f, seed: maphash.MakeSeed()}
	for flow, problem := range openflow.FlowsWith(f, "load:") {
		if err := ctx.Err(); err != nil {
			f.Close()
			return nil, err
		}
		if problem != nil {
			continue
		}
		if len(g.flows) == mostGuided {
			n.Report.Remark(fmt.Sprintf("%s: of the flows that %s shows with loads only the first %d are taken for such", b.Name, workdir.RecordedBridgeFlows, mostGuided))
			break
		}
		g.flows = append(g.flows, g.hash(flow.Place())|uint64(flow.At))
	}
	slices.Sort(g.flows)
	return g, nil
}

// hash is that of a flow's place, without the bits of offsets.
func (g *guide) hash(place string) uint64 {
	return maphash.String(g.seed, place) >> offsetBits << offsetBits
}

// close lets go of the dump.
func (g *guide) close() {
	if g != nil {
		g.dump.Close()
	}
}

// loads returns the flow with the actions that the switch held, if they are loads.
func (g *guide) loads(flow openflow.Flow) (text string, ok bool) {
	if g == nil || len(g.flows) == 0 {
		return "", false
	}
	place := flow.Place()
	hash := g.hash(place)
	for i, _ := slices.BinarySearch(g.flows, hash); i < len(g.flows) && g.flows[i]>>offsetBits == hash>>offsetBits; i++ {
		held, err := openflow.FlowAt(g.dump, int64(g.flows[i]-hash))
		if err != nil || held.Place() != place {
			continue
		}
		if !strings.Contains(withoutLearn(held.Actions()), "load:") {
			return "", false
		}
		return flow.WithActions(held.Actions()), true
	}
	return "", false
}

// wholeLoad matches the load of a whole register, which no dump of OpenFlow 1.2
// or later says of a set_field.
var wholeLoad = regexp.MustCompile(`(?:=|,)load:[^,()]*->[A-Za-z0-9_]+\[\]`)

// saysLoad tells whether a dump's own words show that the switch held a load.
// What learn() would add doesn't count: the flow itself holds a specification.
func saysLoad(flow openflow.Flow) bool {
	if !strings.Contains(flow.Text, "load:") {
		return false
	}
	actions := "=" + flow.Actions()
	return wholeLoad.MatchString(actions) && !strings.Contains(actions, "learn(")
}

// withoutLearn leaves out what learn() would add: the flow itself holds a specification.
func withoutLearn(actions string) string {
	var kept strings.Builder
	for {
		before, rest, found := strings.Cut(actions, "learn(")
		kept.WriteString(before)
		if !found {
			return kept.String()
		}
		depth, end := 1, 0
		for ; end < len(rest) && depth > 0; end++ {
			switch rest[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		actions = rest[end:]
	}
}
