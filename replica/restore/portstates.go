package restore

import (
	"context"
	"strconv"

	"ovs-offline/internal/openflow"
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
func restorePortStates(ctx context.Context, n *Node, o *outcome) error {
	for _, b := range n.Bridges {
		show, ok, err := n.show(b)
		if err != nil {
			return err
		}
		if !ok {
			o.note(Unknown, "%s: no ovs-ofctl show was collected: all ports are up and forward", b.Name)
			continue
		}
		version, err := n.speaks(ctx, b)
		if err != nil {
			return err
		}
		for _, p := range show.Ports {
			if err := n.restorePortState(ctx, b, p, version, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *Node) restorePortState(ctx context.Context, b *Bridge, p openflow.Port, version string, o *outcome) error {
	number := strconv.Itoa(p.Number)
	if p.Number == openflow.PortLocal {
		number = "LOCAL"
	}
	name, ok := b.portName(number)
	if !ok {
		o.note(Unknown, "%s: port %s(%s) of ovs-ofctl show is not in the database", b.Name, number, p.Name)
		return nil
	}
	for _, flag := range p.Config {
		word := portFlags(flag)
		if word == "" {
			continue
		}
		if _, err := n.ofctl(ctx, nil, version, b, "mod-port", number, word); err != nil {
			o.note(Failed, "%s: %s of port %q: %v", b.Name, word, name, err)
			continue
		}
		o.note(Restored, "")
	}
	if !p.Down() {
		return ctx.Err()
	}
	if _, err := n.appctl(ctx, "netdev-dummy/set-admin-state", name, "down"); err != nil {
		// patch ports and tunnels are no dummies; they are down when their peer or route is missing
		o.note(Unknown, "%s: port %q was down and can't be taken down here", b.Name, name)
		return ctx.Err()
	}
	o.note(Restored, "")
	return ctx.Err()
}
