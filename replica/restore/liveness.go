package restore

import (
	"context"
	"slices"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
)

// restoreLiveness takes down ports that are live in the replica and were not live on
// the live node.
//
// Cause: fast-failover groups skip buckets whose watched port is not live. The steps
// for links, BFD, CFM and LACP cannot restore state that was not collected.
//
// Remedy: with OpenFlow 1.4 and later ovs-ofctl show prints LIVE. A port that was not
// live loses its link; a port that was live and is not live in the replica is reported.
//
// Source: ovs-ofctl(8), show; ovs-actions(7), watch_port; measured with OVS 3.1.
func restoreLiveness(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	for _, bridge := range sw.Bridges {
		live, ok, err := rec.show(bridge)
		if err != nil {
			return err
		}
		if !ok || !showsLiveness(live) {
			continue
		}
		have, err := sw.show(ctx, bridge)
		if err != nil {
			return err
		}
		if !showsLiveness(have) {
			continue // the bridge accepts no OpenFlow version with LIVE, or has no live port
		}
		if err := matchLiveness(ctx, sw, bridge, live, have, outcome); err != nil {
			return err
		}
	}
	return nil
}

func showsLiveness(description openflow.Description) bool {
	return slices.ContainsFunc(description.Ports, isLive)
}

func isLive(port openflow.Port) bool { return slices.Contains(port.State, "LIVE") }

func matchLiveness(ctx context.Context, sw *Switch, bridge *Bridge, live, replica openflow.Description, outcome *report.Outcome) error {
	ports := map[int]openflow.Port{}
	for _, port := range replica.Ports {
		ports[port.Number] = port
	}
	for _, port := range live.Ports {
		have, ok := ports[port.Number]
		name, known := bridge.interfaceAt(portWord(port.Number))
		switch {
		case !ok || !known: // the step for port states reports the port
		case isLive(port) == isLive(have):
			outcome.Note(report.Restored, "")
		case isLive(port):
			outcome.Note(report.Failed, "%s: port %q was live, but is not live in the replica", bridge.Name, name)
		default:
			if err := sw.setLink(ctx, name, "down"); err != nil {
				outcome.Note(report.Failed, "%s: port %q was not live, but is live in the replica: %v", bridge.Name, name, err)
			} else {
				outcome.Note(report.Approximated, "%s: port %q was not live, for a reason that was not collected or can't be set; its link is set down here", bridge.Name, name)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
