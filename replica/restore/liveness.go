package restore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/replica/report"
)

// Liveness
//
// Cause: fast-failover groups, and buckets that watch a port, pass over ports
// that are not live. A port is live by its link, BFD, CFM and LACP together,
// each of which has a step of its own; what none of them was collected for is
// missing.
//
// Remedy: ovs-ofctl show tells LIVE from OpenFlow 1.4 on (older ones can't, and
// nothing is done then). A port that was not live and is so in the replica loses
// its link there; the other way round it is told.
//
// Source: ovs-ofctl(8), show; ofproto/group watch_port in ovs-actions(7);
// measured (OVS 3.1).

// restoreLiveness comes after all that decides it.
func restoreLiveness(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		live, ok, err := n.show(b)
		if err != nil {
			return err
		}
		if !ok || !tellsLiveness(live) {
			continue
		}
		if err := n.restoreBridgeLiveness(ctx, b, live, o); err != nil {
			return err
		}
	}
	return nil
}

func tellsLiveness(d openflow.Description) bool {
	return slices.ContainsFunc(d.Ports, func(p openflow.Port) bool { return slices.Contains(p.State, "LIVE") })
}

func (n *Node) restoreBridgeLiveness(ctx context.Context, b *Bridge, live openflow.Description, o *report.Outcome) error {
	version, err := n.speaks(ctx, b)
	if err != nil {
		return err
	}
	out, err := n.ofctl(ctx, nil, version, b, "show")
	if err != nil {
		return err
	}
	replica := openflow.Show(strings.NewReader(string(out)))
	if !tellsLiveness(replica) {
		return nil // the bridge speaks no OpenFlow that tells, or has no live port
	}
	states := map[int]openflow.Port{}
	for _, p := range replica.Ports {
		states[p.Number] = p
	}
	for _, p := range live.Ports {
		have, ok := states[p.Number]
		was, is := slices.Contains(p.State, "LIVE"), slices.Contains(have.State, "LIVE")
		name, known := b.portName(portWord(p.Number))
		switch {
		case !ok || !known: // the step of port states tells it
		case was == is:
			o.Note(report.Restored, "")
		case was:
			o.Note(report.Failed, "%s: port %q was live and is not here", b.Name, name)
		default:
			if _, err := n.appctl(ctx, "netdev-dummy/set-admin-state", name, "down"); err != nil {
				o.Note(report.Failed, "%s: port %q was not live and is so here: %v", b.Name, name, err)
				continue
			}
			o.Note(report.Approximated, "%s: port %q was not live, for a reason that was not collected or has no command: its link is down here", b.Name, name)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// portWord is how a port's number is told in words.
func portWord(number int) string {
	if number == openflow.PortLocal {
		return "LOCAL"
	}
	return strconv.Itoa(number)
}
