package restore

import (
	"context"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/replica/report"
)

// portFlagWords returns the words of ovs-ofctl mod-port by the flags of the
// config that ovs-ofctl show prints.
func portFlagWords() map[string]string {
	return map[string]string{
		"NO_STP":       "no-stp",
		"NO_RECV":      "no-receive",
		"NO_RECV_STP":  "no-receive-stp",
		"NO_FLOOD":     "no-flood",
		"NO_FWD":       "no-forward",
		"NO_PACKET_IN": "no-packet-in",
	}
}

// restorePortStates sets the configuration and the link state of ports, which no
// database holds.
func restorePortStates(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		show, ok, err := n.Recorded.show(b)
		if err != nil {
			return err
		}
		if !ok {
			o.Note(report.Unknown, "%s: no ovs-ofctl show was collected: all ports are up and forward", b.Name)
			continue
		}
		floods, err := n.Facts.Flood(ctx, b.Name)
		if err != nil {
			return err
		}
		if floods && !show.HasNoFlood && b.allows(openflow.OpenFlow10) {
			o.Note(report.Unknown, "%s: no ovs-ofctl show of OpenFlow 1.0 was collected, and no other version prints no-flood: NORMAL floods to all ports", b.Name)
		}
		for _, p := range show.Ports {
			if err := restorePortState(ctx, &n.Switch, b, p, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func restorePortState(ctx context.Context, s *Switch, b *Bridge, p openflow.Port, o *report.Outcome) error {
	name, ok := b.interfaceAt(portWord(p.Number))
	if !ok {
		o.Note(report.Unknown, "%s: port %s(%s) of ovs-ofctl show is not in the database", b.Name, portWord(p.Number), p.Name)
		return nil
	}
	for _, flag := range p.Config {
		word := portFlagWords()[flag]
		if word == "" {
			continue
		}
		if err := noteResult(ctx, o, s.modPort(ctx, b, p.Number, word), "%s: %s of port %q", b.Name, word, name); err != nil {
			return err
		}
	}
	if !p.Down() {
		return ctx.Err()
	}
	switch err := s.setLink(ctx, name, "down"); {
	case err != nil: // a patch port or a tunnel, which is down if its peer or route is missing
		o.Note(report.Unknown, "%s: port %q was down and can't be set down here", b.Name, name)
	case slices.Contains(p.Config, "PORT_DOWN"):
		o.Note(report.Restored, "")
	default: // a dummy's carrier follows its administrative state; only ovs-ofctl show distinguishes them
		o.Note(report.Restored, "%s: port %q had no link (LINK_DOWN); here it shows PORT_DOWN as well", b.Name, name)
	}
	return ctx.Err()
}
