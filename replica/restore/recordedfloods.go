package restore

import (
	"cmp"
	"slices"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// precedence holds pairs of ports of one bridge: NORMAL floods to the first before it
// floods to the second.
type precedence map[[2]*Port]bool

// maxShown bounds the datapath flows from which a bridge's precedence is made: adding one
// takes time in proportion to the square of the ports, and few flows show all.
const maxShown = 200

// recordedFloods returns the order in which NORMAL floods to the ports of the flooding
// bridges, as the recorded datapath flows show it. A flow for multicast packets outputs
// to the ports in that order; what leaves through a patch port is output to the ports of
// the peer's bridge, at the patch port's place.
func recordedFloods(rec *Recorded, bridges, flooding []*Bridge) (map[*Bridge]precedence, error) {
	shown := map[*Bridge]precedence{}
	if len(flooding) == 0 {
		return shown, nil
	}
	names, err := datapathNames(rec)
	if err != nil {
		return nil, err
	}
	text, err := rec.text(workdir.RecordedDatapathFlows)
	if err != nil {
		return nil, err
	}
	for _, bridge := range flooding {
		shown[bridge] = precedence{}
	}
	added := map[*Bridge]int{}
	paths := newFloodPaths(bridges, flooding)
	for flood := range appctl.Floods(text) {
		for bridge, order := range paths.orders(flood, names) {
			if added[bridge] < maxShown && shown[bridge].add(order) {
				added[bridge]++
			}
		}
	}
	return shown, nil
}

// datapathNames returns the names of the live datapath's ports by their numbers.
func datapathNames(rec *Recorded) (map[string]string, error) {
	text, err := rec.text(workdir.RecordedDatapathShow)
	names := map[string]string{}
	for port := range appctl.DatapathPorts(text) {
		names[port.Number] = port.Name
	}
	return names, err
}

// floodPaths knows through which port a flooding bridge reaches each interface that the
// datapath has.
type floodPaths struct {
	portOf   map[string]*Port   // by the names of interfaces
	bridgeOf map[string]*Bridge // likewise
	// reachedBy holds, by a bridge, the ports through which flooding bridges reach its
	// interfaces: nil for the bridge itself, whose own ports they are, and else the only
	// patch port to it.
	reachedBy map[*Bridge]map[*Bridge]*Port
}

func newFloodPaths(bridges, flooding []*Bridge) floodPaths {
	paths := floodPaths{map[string]*Port{}, map[string]*Bridge{}, map[*Bridge]map[*Bridge]*Port{}}
	for _, bridge := range bridges {
		paths.reachedBy[bridge] = map[*Bridge]*Port{}
		for _, port := range bridge.Ports {
			for _, iface := range port.Interfaces {
				paths.portOf[iface.Name], paths.bridgeOf[iface.Name] = port, bridge
			}
		}
	}
	for _, bridge := range flooding {
		paths.reachedBy[bridge][bridge] = nil
		patches := map[*Bridge]int{}
		for _, iface := range bridge.Interfaces() {
			peer := paths.bridgeOf[iface.Options["peer"]]
			if iface.Type != "patch" || peer == nil || peer == bridge {
				continue
			}
			paths.reachedBy[peer][bridge] = paths.portOf[iface.Name]
			if patches[peer]++; patches[peer] > 1 {
				delete(paths.reachedBy[peer], bridge)
			}
		}
	}
	return paths
}

// orders returns, for each flooding bridge, the ports through which it reaches the outputs
// of a flow, in their order. It leaves out a bridge if neither the bridge nor a
// neighbour of it has the port at which the packet came in, or if a port occurs twice.
func (f floodPaths) orders(flood appctl.Flood, names map[string]string) map[*Bridge][]*Port {
	resolve := func(port string) string {
		if f.portOf[port] == nil {
			return names[port]
		}
		return port
	}
	from := resolve(flood.InPort)
	entered := map[*Bridge]*Port{}
	for bridge, port := range f.reachedBy[f.bridgeOf[from]] {
		entered[bridge] = cmp.Or(port, f.portOf[from])
	}
	orders := map[*Bridge][]*Port{}
	for _, output := range flood.Outputs {
		name := resolve(output)
		for bridge, port := range f.reachedBy[f.bridgeOf[name]] {
			port = cmp.Or(port, f.portOf[name])
			order := orders[bridge]
			switch in := entered[bridge]; {
			case in == nil:
			case in == port: // an output of another bridge, from which the packet came
			case len(order) > 0 && order[len(order)-1] == port:
			case slices.Contains(order, port):
				delete(entered, bridge)
				delete(orders, bridge)
			default:
				orders[bridge] = append(order, port)
			}
		}
	}
	return orders
}

// add adds the order of a flow and reports whether it has a new pair of neighbours.
func (before precedence) add(order []*Port) (isNew bool) {
	for i := range max(0, len(order)-1) {
		isNew = isNew || !before[[2]*Port{order[i], order[i+1]}]
	}
	if !isNew {
		return false
	}
	for i, p := range order {
		for _, port := range order[i+1:] {
			before[[2]*Port{p, port}] = true
		}
	}
	return true
}

// precedes reports whether p comes before q and no flow shows the opposite.
func (before precedence) precedes(p, q *Port) bool {
	return before[[2]*Port{p, q}] && !before[[2]*Port{q, p}]
}

// arrange returns the ports of a bridge in the order in which NORMAL flooded to them on
// the node: as recorded, and else by their numbers.
func (before precedence) arrange(bridge *Bridge) []*Port {
	ports := slices.Clone(bridge.Ports)
	slices.SortStableFunc(ports, func(p, q *Port) int { return cmp.Compare(number(bridge, p), number(bridge, q)) })
	for i := range ports {
		rest := ports[i:]
		next := max(0, slices.IndexFunc(rest, func(p *Port) bool {
			return !slices.ContainsFunc(rest, func(port *Port) bool { return before.precedes(port, p) })
		}))
		first := rest[next]
		copy(rest[1:next+1], rest[:next])
		rest[0] = first
	}
	return ports
}

// number returns the lowest OpenFlow port number of a port's interfaces, and 0 for the
// local port.
func number(bridge *Bridge, port *Port) int {
	lowest := 0
	for _, iface := range port.Interfaces {
		if port.Name != bridge.Name && (lowest == 0 || iface.OfPort < lowest) {
			lowest = iface.OfPort
		}
	}
	return lowest
}

// noteFloodOrder reports how well the order of a bridge's ports is known. Only the
// order of ports that one packet can be flooded to counts.
func (before precedence) noteFloodOrder(bridge *Bridge, ports []*Port, outcome *report.Outcome) {
	known, unknown := 0, 0
	for i, p := range ports {
		next := slices.IndexFunc(ports[i+1:], func(port *Port) bool { return shareVLAN(p, port) })
		switch {
		case next < 0:
		case before.precedes(p, ports[i+1+next]):
			known++
		default:
			unknown++
		}
	}
	const byNumber = "ports are flooded to in the order of their numbers, from which the node differs if ports were added in one transaction or ovs-vswitchd was restarted"
	switch {
	case unknown == 0:
		outcome.Note(report.Restored, "")
	case known == 0:
		outcome.Note(report.Unknown, "%s: no recorded datapath flow shows the order in which NORMAL floods: %s", bridge.Name, byNumber)
	default:
		outcome.Note(report.Approximated, "%s: recorded datapath flows show only a part of the order in which NORMAL floods: the other %s", bridge.Name, byNumber)
	}
}

// shareVLAN reports whether NORMAL can flood a packet to both ports: access ports of
// two VLANs have none in common.
func shareVLAN(p, q *Port) bool {
	isAccess := func(port *Port) bool { return port.Tag > 0 && (port.VLANMode == "" || port.VLANMode == "access") }
	return !isAccess(p) || !isAccess(q) || p.Tag == q.Tag
}
