package restore

import (
	"context"
	"slices"

	"ovs-offline/pkg/openflow"
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
func restorePortStates(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	for _, bridge := range replica.Bridges {
		show, ok, err := replica.Recorded.show(bridge)
		if err != nil {
			return err
		}
		if !ok {
			outcome.Note(report.Unknown, "%s: no ovs-ofctl show was collected: all ports are up and forward", bridge.Name)
			continue
		}
		floods, err := replica.Facts.Flood(ctx, bridge.Name)
		if err != nil {
			return err
		}
		if floods && !show.HasNoFlood && bridge.allowsVersion(openflow.OpenFlow10) {
			outcome.Note(report.Unknown, "%s: no ovs-ofctl show of OpenFlow 1.0 was collected, and no other version prints no-flood: NORMAL floods to all ports", bridge.Name)
		}
		for _, port := range show.Ports {
			if err := restorePortState(ctx, &replica.Switch, bridge, port, outcome); err != nil {
				return err
			}
		}
	}
	return nil
}

func restorePortState(ctx context.Context, sw *Switch, bridge *Bridge, port openflow.Port, outcome *report.Outcome) error {
	name, ok := bridge.interfaceAt(portWord(port.Number))
	if !ok {
		outcome.Note(report.Unknown, "%s: port %s(%s) of ovs-ofctl show is not in the database", bridge.Name, portWord(port.Number), port.Name)
		return nil
	}
	for _, flag := range port.Config {
		word := portFlagWords()[flag]
		if word == "" {
			continue
		}
		if err := noteResult(ctx, outcome, sw.modPort(ctx, bridge, port.Number, word), "%s: %s of port %q", bridge.Name, word, name); err != nil {
			return err
		}
	}
	if !port.Down() {
		return ctx.Err()
	}
	switch err := sw.setLink(ctx, name, "down"); {
	case err != nil: // a patch port or a tunnel, which is down if its peer or route is missing
		outcome.Note(report.Unknown, "%s: port %q was down and can't be set down here", bridge.Name, name)
	case slices.Contains(port.Config, "PORT_DOWN"):
		outcome.Note(report.Restored, "")
	default: // a dummy's carrier follows its administrative state; only ovs-ofctl show distinguishes them
		outcome.Note(report.Restored, "%s: port %q had no link (LINK_DOWN); here it shows PORT_DOWN as well", bridge.Name, name)
	}
	return ctx.Err()
}
