package restore

import (
	"bufio"
	"context"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// eachLine calls do for every line of a recorded file; ok is false where there is none.
func (n *Node) eachLine(path string, do func(line string) error) (ok bool, err error) {
	f, ok, err := n.recorded(path)
	if !ok {
		return false, err
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if err := do(strings.TrimRight(scanner.Text(), "\r")); err != nil {
			return true, err
		}
	}
	return true, scanner.Err()
}

var learned = regexp.MustCompile(`^\s*(\d+|LOCAL)\s+(\d+)\s+([0-9a-f:]{17})\s+`)

// restoreFDB teaches bridges the MAC addresses that the live ones had learned,
// as static entries, which don't age.
func restoreFDB(ctx context.Context, n *Node, o *outcome) error {
	for _, b := range n.Bridges {
		ok, err := n.eachLine(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedFDB), func(line string) error {
			m := learned.FindStringSubmatch(line)
			if m == nil {
				return ctx.Err()
			}
			name, ok := b.portName(m[1])
			if !ok {
				o.note(Unknown, "%s: MAC %s was learned on port %s, which the database doesn't have", b.Name, m[3], m[1])
				return nil
			}
			if _, err := n.appctl(ctx, "fdb/add", b.Name, name, m[2], m[3]); err != nil {
				o.note(Failed, "%s: MAC %s on %q: %v", b.Name, m[3], name, err)
				return ctx.Err()
			}
			o.note(Restored, "")
			return nil
		})
		if err != nil {
			return err
		}
		if !ok {
			o.note(Unknown, "%s: no fdb/show was collected: NORMAL floods", b.Name)
		}
	}
	return nil
}

// portName finds the interface with an OpenFlow port number.
func (b *Bridge) portName(number string) (string, bool) {
	if number == "LOCAL" {
		return b.Name, true
	}
	for _, i := range b.Interfaces() {
		if strconv.Itoa(i.OfPort) == number {
			return i.Name, true
		}
	}
	return "", false
}

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

var (
	section    = regexp.MustCompile(`^---- (.*) ----$`)
	forwarding = regexp.MustCompile(`^\s+Forwarding: (true|false)`)
)

// restoreBFD gives each session the state in which it forwarded, for want of
// the peers. Where bfd/show was not collected, ovs-vsctl list interface tells.
func restoreBFD(ctx context.Context, n *Node, o *outcome) error {
	states := map[string]string{}
	name := ""
	ok, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedBFD), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if m := forwarding.FindStringSubmatch(line); m != nil && name != "" {
			states[name] = m[1]
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !ok || len(states) == 0 {
		if states, err = n.listedBFD(); err != nil {
			return err
		}
	}
	for name, state := range states {
		if _, err := n.appctl(ctx, "bfd/set-forwarding", name, state); err != nil {
			o.note(Failed, "session of %q: %v", name, err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		o.note(Restored, "")
	}
	return nil
}

var listedForwarding = regexp.MustCompile(`\bforwarding="?(true|false)`)

// listedBFD reads bfd_status of ovs-vsctl list interface.
func (n *Node) listedBFD() (map[string]string, error) {
	states := map[string]string{}
	status := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedListInterface), func(line string) error {
		column, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(column) {
		case "_uuid":
			status = ""
		case "bfd_status":
			if m := listedForwarding.FindStringSubmatch(value); m != nil {
				status = m[1]
			}
		case "name":
			if status != "" {
				states[strings.Trim(strings.TrimSpace(value), `"`)] = status
			}
		}
		return nil
	})
	return states, err
}

// restoreCFM sets the faults that connectivity checks had found.
func restoreCFM(ctx context.Context, n *Node, o *outcome) error {
	name := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedCFM), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			name = m[1]
			return nil
		}
		fault, ok := strings.CutPrefix(strings.TrimSpace(line), "fault:")
		if !ok || name == "" {
			return nil
		}
		state := "true"
		if strings.TrimSpace(fault) == "" || strings.Contains(fault, "none") || strings.TrimSpace(fault) == "false" {
			state = "false"
		}
		if _, err := n.appctl(ctx, "cfm/set-fault", name, state); err != nil {
			o.note(Failed, "monitor of %q: %v", name, err)
			return ctx.Err()
		}
		o.note(Restored, "")
		return nil
	})
	return err
}

// stopClock keeps what was restored from ageing: learned flows, BFD, LACP.
func stopClock(ctx context.Context, n *Node, o *outcome) error {
	if _, err := n.appctl(ctx, "time/stop"); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.note(Failed, "the replica's state ages: %v", err)
		return nil
	}
	o.note(Restored, "")
	return nil
}
