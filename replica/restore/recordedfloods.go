package restore

import (
	"cmp"
	"slices"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// precedence holds pairs of ports of one bridge: NORMAL floods to the first before it
// floods to the second.
type precedence map[[2]*Port]bool

// recordedFloods returns what the recorded datapath flows show of the order in which
// NORMAL floods to the ports of each bridge. A flow for multicast packets outputs to
// the ports in that order; what leaves through a patch port is output to the ports of
// the peer's bridge, at the patch port's place.
func recordedFloods(rec *Recorded, bridges []*Bridge) (map[*Bridge]precedence, error) {
	names, err := datapathNames(rec)
	if err != nil {
		return nil, err
	}
	text, err := rec.text(workdir.RecordedDatapathFlows)
	if err != nil {
		return nil, err
	}
	reached := portsReached(bridges)
	shown := map[*Bridge]precedence{}
	for outputs := range appctl.Floods(text) {
		for _, b := range bridges {
			if order := floodedPorts(outputs, names, reached[b]); len(order) > 1 {
				if shown[b] == nil {
					shown[b] = precedence{}
				}
				shown[b].add(order)
			}
		}
	}
	return shown, nil
}

// datapathNames returns the names of the live datapath's ports by their numbers.
func datapathNames(rec *Recorded) (map[string]string, error) {
	text, err := rec.text(workdir.RecordedDatapathShow)
	names := map[string]string{}
	for p := range appctl.DatapathPorts(text) {
		names[p.Number] = p.Name
	}
	return names, err
}

// portsReached returns, for each bridge, the port through which it reaches each
// interface that the datapath has: the interface's own port, or the only patch port to
// the bridge of the interface.
func portsReached(bridges []*Bridge) map[*Bridge]map[string]*Port {
	bridgeOf := map[string]*Bridge{}
	for _, b := range bridges {
		for _, i := range b.Interfaces() {
			bridgeOf[i.Name] = b
		}
	}
	all := map[*Bridge]map[string]*Port{}
	for _, b := range bridges {
		reached := map[string]*Port{}
		patches := map[*Bridge]int{}
		for _, p := range b.Ports {
			for _, i := range p.Interfaces {
				reached[i.Name] = p
				peer := bridgeOf[i.Options["peer"]]
				if i.Type != "patch" || peer == nil || peer == b {
					continue
				}
				patches[peer]++
				for _, far := range peer.Interfaces() {
					reached[far.Name] = p
					if patches[peer] > 1 {
						delete(reached, far.Name)
					}
				}
			}
		}
		all[b] = reached
	}
	return all
}

// floodedPorts returns the ports through which a bridge reaches outputs, in order, or
// nil if a port occurs at two places.
func floodedPorts(outputs []string, names map[string]string, reached map[string]*Port) []*Port {
	var order []*Port
	for _, output := range outputs {
		p := reached[output]
		if p == nil {
			p = reached[names[output]]
		}
		switch {
		case p == nil || len(order) > 0 && order[len(order)-1] == p:
		case slices.Contains(order, p):
			return nil
		default:
			order = append(order, p)
		}
	}
	return order
}

func (before precedence) add(order []*Port) {
	for i, p := range order {
		for _, q := range order[i+1:] {
			before[[2]*Port{p, q}] = true
		}
	}
}

// precedes reports whether p comes before q and no flow shows the opposite.
func (before precedence) precedes(p, q *Port) bool {
	return before[[2]*Port{p, q}] && !before[[2]*Port{q, p}]
}

// arrange returns the ports of a bridge in the order in which NORMAL flooded to them on
// the node: as recorded, and else by their numbers.
func (before precedence) arrange(b *Bridge) []*Port {
	ports := slices.Clone(b.Ports)
	slices.SortStableFunc(ports, func(p, q *Port) int { return cmp.Compare(number(b, p), number(b, q)) })
	for i := range ports {
		rest := ports[i:]
		next := max(0, slices.IndexFunc(rest, func(p *Port) bool {
			return !slices.ContainsFunc(rest, func(q *Port) bool { return before.precedes(q, p) })
		}))
		first := rest[next]
		copy(rest[1:next+1], rest[:next])
		rest[0] = first
	}
	return ports
}

// number returns the lowest OpenFlow port number of a port's interfaces, and 0 for the
// local port.
func number(b *Bridge, p *Port) int {
	lowest := 0
	for _, i := range p.Interfaces {
		if p.Name != b.Name && (lowest == 0 || i.OfPort < lowest) {
			lowest = i.OfPort
		}
	}
	return lowest
}

// noteFloodOrder reports how well the order of a bridge's ports is known. Only the
// order of ports that one packet can be flooded to counts.
func (before precedence) noteFloodOrder(b *Bridge, ports []*Port, o *report.Outcome) {
	known, unknown := 0, 0
	for i, p := range ports {
		next := slices.IndexFunc(ports[i+1:], func(q *Port) bool { return shareVLAN(p, q) })
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
	case unknown == 0 && ports[0].Name == b.Name:
		o.Note(report.Restored, "")
	case unknown == 0:
		o.Note(report.Approximated, "%s: NORMAL floods to its local port first: the node flooded to other ports before it", b.Name)
	case known == 0:
		o.Note(report.Unknown, "%s: no recorded datapath flow shows the order in which NORMAL floods: %s", b.Name, byNumber)
	default:
		o.Note(report.Approximated, "%s: recorded datapath flows show only a part of the order in which NORMAL floods: the other %s", b.Name, byNumber)
	}
}

// shareVLAN reports whether NORMAL can flood a packet to both ports: access ports of
// two VLANs have none in common.
func shareVLAN(p, q *Port) bool {
	isAccess := func(p *Port) bool { return p.Tag > 0 && (p.VLANMode == "" || p.VLANMode == "access") }
	return !isAccess(p) || !isAccess(q) || p.Tag == q.Tag
}
