package restore

import (
	"regexp"
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
// holds, tells them apart.
type guide map[string]string // actions by table, priority and match

// readGuide reads the recorded bridge/dump-flows. Without one, no flow is known to hold loads.
func (n *Node) readGuide(b *Bridge) (guide, error) {
	f, ok, err := n.recorded(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedBridgeFlows))
	if !ok {
		return nil, err
	}
	defer f.Close()
	g := guide{}
	for flow, problem := range openflow.FlowsWith(f, "load:") {
		if problem == nil {
			g[flow.Place()] = flow.Actions()
		}
	}
	return g, nil
}

// loads returns the flow with the actions that the switch held, if they are
// loads and the dump says otherwise.
func (g guide) loads(flow openflow.Flow) (text string, ok bool) {
	if len(g) == 0 {
		return "", false
	}
	actions, ok := g[flow.Place()]
	if !ok || actions == flow.Actions() {
		return "", false
	}
	return flow.WithActions(actions), true
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
