package restore

import (
	"context"
	"slices"

	"ovs-offline/internal/openflow"
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
func restoreLiveness(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	for _, b := range s.Bridges {
		live, ok, err := rec.show(b)
		if err != nil {
			return err
		}
		if !ok || !showsLiveness(live) {
			continue
		}
		have, err := s.show(ctx, b)
		if err != nil {
			return err
		}
		if !showsLiveness(have) {
			continue // the bridge accepts no OpenFlow version with LIVE, or has no live port
		}
		if err := matchLiveness(ctx, s, b, live, have, o); err != nil {
			return err
		}
	}
	return nil
}

func showsLiveness(d openflow.Description) bool { return slices.ContainsFunc(d.Ports, isLive) }

func isLive(p openflow.Port) bool { return slices.Contains(p.State, "LIVE") }

func matchLiveness(ctx context.Context, s *Switch, b *Bridge, live, replica openflow.Description, o *report.Outcome) error {
	ports := map[int]openflow.Port{}
	for _, p := range replica.Ports {
		ports[p.Number] = p
	}
	for _, p := range live.Ports {
		have, ok := ports[p.Number]
		name, known := b.interfaceAt(portWord(p.Number))
		switch {
		case !ok || !known: // the step for port states reports the port
		case isLive(p) == isLive(have):
			o.Note(report.Restored, "")
		case isLive(p):
			o.Note(report.Failed, "%s: port %q was live, but is not live in the replica", b.Name, name)
		default:
			if err := s.setLink(ctx, name, "down"); err != nil {
				o.Note(report.Failed, "%s: port %q was not live, but is live in the replica: %v", b.Name, name, err)
			} else {
				o.Note(report.Approximated, "%s: port %q was not live, for a reason that was not collected or can't be set; its link is set down here", b.Name, name)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
