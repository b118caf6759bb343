package restore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/workdir"
)

// Bonds
//
// Cause: which members of a bond are enabled, and which one is active, is in no
// database; in a replica all are, or with LACP none (lacp.go).
//
// Remedy: what had disabled a member on the live node comes back first: its
// link (port states), BFD, CFM, LACP. With the clock standing still, members
// that were waiting for an updelay or downdelay keep waiting. Then
// bond/enable-member, bond/disable-member and bond/set-active-member set the
// rest, and bond/migrate puts the hashes that had carried something on the
// members that had carried them (balance-slb alone can be told so).
//
// Source: ovs-vswitchd(8), BOND COMMANDS; measured: bond/disable-member alone
// is undone at once where no updelay is set.

// bond is what bond/show tells of one.
type bond struct {
	name    string
	mode    string
	lacp    string // off, configured, negotiated
	active  string
	members []bondMember
}

type bondMember struct {
	name      string
	enabled   bool
	mayEnable bool
	hashes    []string // those that it had carried, by number
}

var (
	// member matches "member p1: enabled"; older versions say slave.
	member = regexp.MustCompile(`^(?:member|slave) (.*): (enabled|disabled)$`)
	// carried matches "hash 12: 3 kB load".
	carried = regexp.MustCompile(`^hash (\d+): \d+ kB load$`)
)

// bonds reads bond/show.
func bonds(text string) []bond {
	var list []bond
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := section.FindStringSubmatch(line); m != nil {
			list = append(list, bond{name: m[1]})
			continue
		}
		if len(list) == 0 {
			continue
		}
		b := &list[len(list)-1]
		if m := member.FindStringSubmatch(line); m != nil {
			b.members = append(b.members, bondMember{name: m[1], enabled: m[2] == "enabled"})
		} else {
			b.read(line)
		}
	}
	return list
}

func (b *bond) read(line string) {
	label, value, _ := strings.Cut(line, ": ")
	if len(b.members) == 0 {
		switch label {
		case "bond_mode":
			b.mode = value
		case "lacp_status":
			b.lacp = value
		}
		return
	}
	m := &b.members[len(b.members)-1]
	switch {
	case line == "active member" || line == "active slave":
		b.active = m.name
	case label == "may_enable":
		m.mayEnable = value == "true"
	default:
		if h := carried.FindStringSubmatch(line); h != nil {
			m.hashes = append(m.hashes, h[1])
		}
	}
}

// member finds one by name.
func (b *bond) member(name string) (bondMember, bool) {
	for _, m := range b.members {
		if m.name == name {
			return m, true
		}
	}
	return bondMember{}, false
}

// restoreBonds gives each bond the members and the active member it had.
func restoreBonds(ctx context.Context, n *Node, o *outcome) error {
	text, err := n.text(n.Workdir.Recorded(workdir.RecordedBond))
	if err != nil {
		return err
	}
	live := bonds(text)
	aggregates, err := n.recordedLACP()
	if err != nil {
		return err
	}
	if !n.aggregating() && len(live) == 0 && len(aggregates) == 0 {
		return nil
	}
	if err := n.holdClock(ctx); err != nil {
		o.note(Failed, "the clock can't be stopped, so bonds don't stay as they are: %v", err)
	}
	if err := n.restoreLACP(ctx, aggregates, o); err != nil {
		return err
	}
	there := n.portNames()
	known := map[string]bool{}
	var gone []string
	for i := range live {
		if !there[live[i].name] {
			gone = append(gone, live[i].name)
			continue
		}
		known[live[i].name] = true
		if err := n.restoreBond(ctx, &live[i], o); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		o.note(Failed, "bond/show tells of %d bonds that the database has no port for; the first: %q", len(gone), gone[0])
	}
	for _, b := range n.Bridges {
		for _, p := range b.Ports {
			if len(p.Interfaces) > 1 && !known[p.Name] {
				o.note(Unknown, "%s: bond %q: no bond/show was collected: all members whose link is up are enabled", b.Name, p.Name)
			}
		}
	}
	return n.forgetPackets(ctx, o)
}

// portNames is the set of the ports that the database has.
func (n *Node) portNames() map[string]bool {
	names := map[string]bool{}
	for _, b := range n.Bridges {
		for _, p := range b.Ports {
			names[p.Name] = true
		}
	}
	return names
}

// aggregating tells whether the node has anything that this step is for.
func (n *Node) aggregating() bool {
	for _, b := range n.Bridges {
		for _, p := range b.Ports {
			if len(p.Interfaces) > 1 || p.LACP != "" && p.LACP != "off" {
				return true
			}
		}
	}
	return false
}

// forgetPackets removes the datapath flows of the packets that steps made the
// replica receive: the live node's are not in it either.
func (n *Node) forgetPackets(ctx context.Context, o *outcome) error {
	if _, err := n.appctl(ctx, "revalidator/purge"); err != nil {
		o.note(Approximated, "dpctl/dump-flows shows what this restore sent: %v", err)
	}
	return ctx.Err()
}

// bond asks the replica for one.
func (n *Node) bond(ctx context.Context, name string) (*bond, error) {
	out, err := n.appctl(ctx, "bond/show", name)
	if err != nil {
		return nil, err
	}
	for _, b := range bonds(string(out)) {
		if b.name == name {
			return &b, nil
		}
	}
	return nil, fmt.Errorf("the replica has no bond %q", name)
}

func (n *Node) restoreBond(ctx context.Context, live *bond, o *outcome) error {
	steps := []func(context.Context, *bond, *bond, *outcome){n.switchMembers, n.cutLinks, n.activateMember, n.migrateHashes}
	for _, step := range steps {
		have, err := n.settledBond(ctx, live)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			o.note(Failed, "bond %q: %v", live.name, err)
			return nil
		}
		step(ctx, live, have, o)
	}
	have, err := n.settledBond(ctx, live)
	if err != nil {
		return err
	}
	differ := live.differences(have)
	for _, d := range differ {
		o.note(Failed, "bond %q: %s", live.name, d)
	}
	if len(differ) == 0 {
		o.note(Restored, "")
	}
	return ctx.Err()
}

// settledBond asks the replica until what it takes up by itself (links, LACP)
// is as it was live, or nothing comes of waiting.
func (n *Node) settledBond(ctx context.Context, live *bond) (have *bond, err error) {
	err = n.until(ctx, func() (bool, error) {
		have, err = n.bond(ctx, live.name)
		if err != nil {
			return false, err
		}
		for _, m := range live.members {
			if h, ok := have.member(m.name); ok && h.mayEnable != m.mayEnable {
				return false, nil
			}
		}
		return true, nil
	})
	return have, err
}

// bondDo runs one of the bond commands; before OVS 2.15 they said slave.
func (n *Node) bondDo(ctx context.Context, verb string, args ...string) error {
	_, err := n.appctl(ctx, append([]string{"bond/" + verb + "-member"}, args...)...)
	var failed *command.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "not a valid command") {
		_, err = n.appctl(ctx, append([]string{"bond/" + verb + "-slave"}, args...)...)
	}
	return err
}

// switchMembers makes members enabled or disabled whatever the delays say.
func (n *Node) switchMembers(ctx context.Context, live, have *bond, o *outcome) {
	for _, m := range live.members {
		h, ok := have.member(m.name)
		if !ok || h.enabled == m.enabled {
			continue // a missing one is told at the end
		}
		verb := "disable"
		if m.enabled {
			verb = "enable"
		}
		if err := n.bondDo(ctx, verb, live.name, m.name); err != nil {
			o.note(Failed, "bond %q: member %q can't be made %sd: %v", live.name, m.name, verb, err)
		}
	}
}

// cutLinks takes down members that had been disabled for a reason that was not
// collected: without a link they stay so.
func (n *Node) cutLinks(ctx context.Context, live, have *bond, o *outcome) {
	for _, m := range live.members {
		h, ok := have.member(m.name)
		if !ok || m.enabled || !h.enabled {
			continue
		}
		if _, err := n.appctl(ctx, "netdev-dummy/set-admin-state", m.name, "down"); err != nil {
			o.note(Failed, "bond %q: member %q can't be taken down: %v", live.name, m.name, err)
			continue
		}
		o.note(Approximated, "bond %q: member %q was disabled; why was not collected: its link is down here", live.name, m.name)
	}
}

func (n *Node) activateMember(ctx context.Context, live, have *bond, o *outcome) {
	if live.active == "" || live.active == have.active {
		return
	}
	if err := n.bondDo(ctx, "set-active", live.name, live.active); err != nil {
		o.note(Failed, "bond %q: member %q can't be made the active one: %v", live.name, live.active, err)
	}
}

// migrateHashes puts hashes on the members that had carried them. A trace shows
// what a hash picks in balance-slb alone; balance-tcp leaves it to the datapath.
func (n *Node) migrateHashes(ctx context.Context, live, have *bond, o *outcome) {
	if live.mode != "balance-slb" {
		return
	}
	enabled := 0
	for _, m := range live.members {
		if m.enabled {
			enabled++
		}
		for _, hash := range m.hashes {
			if _, err := n.appctl(ctx, "bond/migrate", live.name, hash, m.name); err != nil {
				o.note(Failed, "bond %q: hash %s can't be put on member %q: %v", live.name, hash, m.name, err)
				return
			}
		}
	}
	if enabled > 1 {
		o.note(Approximated, "bond %q: a balance-slb bond gives a MAC address that sends for the first time the next member in turn; "+
			"whose turn it was is not recorded, so for addresses without a load in bond/show a trace may name another member than the live one did", live.name)
	}
}

// differences are those to what the replica has, in words.
func (b *bond) differences(have *bond) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if b.lacp != have.lacp {
		add("its lacp_status was %s, in the replica %s", b.lacp, have.lacp)
	}
	if b.active != have.active {
		add("its active member was %q, in the replica %q", b.active, have.active)
	}
	for _, m := range b.members {
		h, ok := have.member(m.name)
		switch {
		case !ok:
			add("the replica has no member %q", m.name)
		case h.enabled != m.enabled:
			add("member %q: enabled was %v, in the replica %v", m.name, m.enabled, h.enabled)
		case h.mayEnable != m.mayEnable:
			add("member %q: may_enable was %v, in the replica %v", m.name, m.mayEnable, h.mayEnable)
		}
	}
	return list
}
