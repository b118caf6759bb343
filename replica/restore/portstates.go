package restore

import (
	"context"
	"slices"
	"strconv"

	"ovs-offline/internal/openflow"
	"ovs-offline/replica/report"
)

// portFlags maps the flags of ovs-ofctl show's config to the words of mod-port.
func portFlags(flag string) string {
	switch flag {
	case "NO_STP":
		return "no-stp"
	case "NO_RECV":
		return "no-receive"
	case "NO_RECV_STP":
		return "no-receive-stp"
	case "NO_FLOOD":
		return "no-flood"
	case "NO_FWD":
		return "no-forward"
	case "NO_PACKET_IN":
		return "no-packet-in"
	}
	return ""
}

// restorePortStates sets the configuration and the link state that ports had,
// which no database holds.
func restorePortStates(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		show, ok, err := n.show(b)
		if err != nil {
			return err
		}
		if !ok {
			o.Note(report.Unknown, "%s: no ovs-ofctl show was collected: all ports are up and forward", b.Name)
			continue
		}
		for _, p := range show.Ports {
			if err := n.restorePortState(ctx, b, p, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// modPort sets one flag of a port, by its number: ovs-ofctl takes no "LOCAL"
// here. Versions after OpenFlow 1.0 have no bits for flooding and spanning
// trees, and drop them without a word, so 1.0 it is where the bridge allows it.
func (n *Node) modPort(ctx context.Context, b *Bridge, number int, flag string) error {
	version := openflow.OpenFlow10.String()
	if !openflow.OpenFlow10.In(b.Protocols) {
		var err error
		if version, err = n.speaks(ctx, b); err != nil {
			return err
		}
	}
	_, err := n.ofctl(ctx, nil, version, b, "mod-port", strconv.Itoa(number), flag)
	return err
}

func (n *Node) restorePortState(ctx context.Context, b *Bridge, p openflow.Port, o *report.Outcome) error {
	number := strconv.Itoa(p.Number)
	if p.Number == openflow.PortLocal {
		number = "LOCAL"
	}
	name, ok := b.portName(number)
	if !ok {
		o.Note(report.Unknown, "%s: port %s(%s) of ovs-ofctl show is not in the database", b.Name, number, p.Name)
		return nil
	}
	for _, flag := range p.Config {
		word := portFlags(flag)
		if word == "" {
			continue
		}
		if err := n.modPort(ctx, b, p.Number, word); err != nil {
			o.Note(report.Failed, "%s: %s of port %q: %v", b.Name, word, name, err)
			continue
		}
		o.Note(report.Restored, "")
	}
	if !p.Down() {
		return ctx.Err()
	}
	if _, err := n.appctl(ctx, "netdev-dummy/set-admin-state", name, "down"); err != nil {
		// patch ports and tunnels are no dummies; they are down when their peer or route is missing
		o.Note(report.Unknown, "%s: port %q was down and can't be taken down here", b.Name, name)
		return ctx.Err()
	}
	if slices.Contains(p.Config, "PORT_DOWN") {
		o.Note(report.Restored, "")
	} else {
		// A dummy has no carrier of its own. Nothing but ovs-ofctl show tells the two apart (ofproto's may_enable is of the carrier).
		o.Note(report.Restored, "%s: port %q had no link (LINK_DOWN); here it shows as PORT_DOWN as well", b.Name, name)
	}
	return ctx.Err()
}
