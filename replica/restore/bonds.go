package restore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
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
	members []*bondMember
	byName  map[string]*bondMember
	others  strangers // members that are not asked for
}

type bondMember struct {
	name      string
	enabled   bool
	mayEnable bool
	hashes    [bondHashes]bool // those that it had carried
}

// bondHashes is how many hashes a bond has (lib/ovs/bond.c, BOND_MASK).
const bondHashes = 256

var (
	// member matches "member p1: enabled"; older versions say slave.
	member = regexp.MustCompile(`^(?:member|slave) (.*): (enabled|disabled)$`)
	// carried matches "hash 12: 3 kB load".
	carried = regexp.MustCompile(`^hash (\d+): \d+ kB load$`)
)

// bonds is what bond/show tells. It tells of each once: a text that does so
// more often was put together, and its last word counts.
type bonds struct {
	asked  portNames // for these; nil for all
	byName map[string]*bond
	others strangers   // that are not asked for
	bond   *bond       // whose lines follow; nil for none that is asked for
	member *bondMember // whose lines follow; nil before a bond's first
}

func newBonds(asked portNames) *bonds { return &bonds{asked: asked, byName: map[string]*bond{}} }

// read takes the next line of bond/show.
func (s *bonds) read(line string) {
	line = strings.TrimSpace(line)
	if m := section.FindStringSubmatch(line); m != nil {
		s.begin(m[1])
	} else if s.bond == nil {
		return
	} else if m := member.FindStringSubmatch(line); m != nil {
		s.beginMember(m[1], m[2] == "enabled")
	} else if s.member == nil {
		s.bond.read(line)
	} else {
		s.bond.readMember(s.member, line)
	}
}

func (s *bonds) begin(name string) {
	s.bond, s.member = nil, nil
	if !s.asked.has(name) {
		s.others.add(name)
		return
	}
	s.bond = &bond{name: name, byName: map[string]*bondMember{}}
	s.byName[name] = s.bond
}

func (s *bonds) beginMember(name string, enabled bool) {
	b := s.bond
	s.member = b.byName[name]
	if s.member == nil {
		s.member = &bondMember{}
		if s.asked.hasMember(b.name, name) {
			b.members, b.byName[name] = append(b.members, s.member), s.member
		} else {
			b.others.add(name)
		}
	}
	*s.member = bondMember{name: name, enabled: enabled}
}

func (b *bond) read(line string) {
	switch label, value, _ := strings.Cut(line, ": "); label {
	case "bond_mode":
		b.mode = value
	case "lacp_status":
		b.lacp = value
	}
}

func (b *bond) readMember(m *bondMember, line string) {
	label, value, _ := strings.Cut(line, ": ")
	switch {
	case line == "active member" || line == "active slave":
		b.active = m.name
	case label == "may_enable":
		m.mayEnable = value == "true"
	default:
		if h := carried.FindStringSubmatch(line); h != nil {
			if hash, err := strconv.Atoi(h[1]); err == nil && hash < bondHashes {
				m.hashes[hash] = true
			}
		}
	}
}

// recordedBonds reads what bond/show said on the live node of the bonds that
// the database has.
func (n *Node) recordedBonds() (*bonds, error) {
	told := newBonds(n.portNames())
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedBond), func(line string) error {
		told.read(line)
		return nil
	})
	return told, err
}

// bonds asks the replica.
func (n *Node) bonds(ctx context.Context) (map[string]*bond, error) {
	out, err := n.appctl(ctx, "bond/show")
	told := newBonds(nil)
	for line := range strings.Lines(string(out)) {
		told.read(line)
	}
	return told.byName, err
}

// restoreBonds gives each bond the members and the active member it had.
func restoreBonds(ctx context.Context, n *Node, o *report.Outcome) error {
	told, err := n.recordedBonds()
	if err != nil {
		return err
	}
	aggregates, err := n.recordedLACP()
	if err != nil {
		return err
	}
	if !n.aggregating() && told.none() && aggregates.none() {
		return nil
	}
	if err := n.holdClock(ctx); err != nil {
		o.Note(report.Failed, "the clock can't be stopped, so bonds don't stay as they are: %v", err)
	}
	if err := n.restoreLACP(ctx, aggregates, o); err != nil {
		return err
	}
	told.others.tell(o, workdir.RecordedBond, "bonds")
	var live []*bond
	for _, b := range n.Bridges {
		for _, p := range b.Ports {
			if one := told.byName[p.Name]; one != nil {
				live = append(live, one)
			} else if len(p.Interfaces) > 1 {
				o.Note(report.Unknown, "%s: bond %q: no bond/show was collected: all members whose link is up are enabled", b.Name, p.Name)
			}
		}
	}
	if err := n.restoreToldBonds(ctx, live, o); err != nil {
		return err
	}
	return n.forgetPackets(ctx, o)
}

func (s *bonds) none() bool { return len(s.byName) == 0 && s.others.count == 0 }

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
func (n *Node) forgetPackets(ctx context.Context, o *report.Outcome) error {
	if _, err := n.appctl(ctx, "revalidator/purge"); err != nil {
		o.Note(report.Approximated, "dpctl/dump-flows shows what this restore sent: %v", err)
	}
	return ctx.Err()
}

// restoreToldBonds brings all bonds forward side by side: what the replica
// takes up by itself takes its time, and some of it never comes.
func (n *Node) restoreToldBonds(ctx context.Context, live []*bond, o *report.Outcome) error {
	have, err := n.settledBonds(ctx, live)
	for _, step := range []func(ctx context.Context, live, have *bond, o *report.Outcome) bool{n.switchMembers, n.cutLinks, n.activateMember, n.migrateHashes} {
		changed := false
		for _, b := range live {
			if err != nil {
				return err
			}
			if h := have[b.name]; h != nil {
				changed = step(ctx, b, h, o) || changed
			}
			err = ctx.Err()
		}
		if changed && err == nil {
			have, err = n.settledBonds(ctx, live)
		}
	}
	if err != nil {
		return err
	}
	for _, b := range live {
		b.judge(have[b.name], o)
	}
	return nil
}

// settledBonds asks the replica until what it takes up by itself (links, LACP)
// is as it was live, or nothing comes of waiting.
func (n *Node) settledBonds(ctx context.Context, live []*bond) (have map[string]*bond, err error) {
	if len(live) == 0 {
		return nil, nil
	}
	err = n.until(ctx, func() (bool, error) {
		have, err = n.bonds(ctx)
		for _, b := range live {
			if h := have[b.name]; h != nil && !b.settled(h) {
				return false, err
			}
		}
		return true, err
	})
	return have, err
}

func (b *bond) settled(have *bond) bool {
	for _, m := range b.members {
		if h := have.byName[m.name]; h != nil && h.mayEnable != m.mayEnable {
			return false
		}
	}
	return true
}

// judge says how alike the replica's bond is.
func (b *bond) judge(have *bond, o *report.Outcome) {
	if have == nil {
		o.Note(report.Failed, "bond %q: the replica has no such bond", b.name)
		return
	}
	differ := b.differences(have)
	for _, d := range differ {
		o.Note(report.Failed, "bond %q: %s", b.name, d)
	}
	if len(differ) == 0 {
		o.Note(report.Restored, "")
	}
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

// switchMembers makes members enabled or disabled whatever the delays say. Like
// the steps after it, it tells whether it changed anything.
func (n *Node) switchMembers(ctx context.Context, live, have *bond, o *report.Outcome) (changed bool) {
	for _, m := range live.members {
		h := have.byName[m.name]
		if h == nil || h.enabled == m.enabled {
			continue // a missing one is told at the end
		}
		verb := "disable"
		if m.enabled {
			verb = "enable"
		}
		if err := n.bondDo(ctx, verb, live.name, m.name); err != nil {
			o.Note(report.Failed, "bond %q: member %q can't be made %sd: %v", live.name, m.name, verb, err)
		}
		changed = true
	}
	return changed
}

// cutLinks takes down members that had been disabled for a reason that was not
// collected: without a link they stay so.
func (n *Node) cutLinks(ctx context.Context, live, have *bond, o *report.Outcome) (changed bool) {
	for _, m := range live.members {
		h := have.byName[m.name]
		if h == nil || m.enabled || !h.enabled {
			continue
		}
		if _, err := n.appctl(ctx, "netdev-dummy/set-admin-state", m.name, "down"); err != nil {
			o.Note(report.Failed, "bond %q: member %q can't be taken down: %v", live.name, m.name, err)
			continue
		}
		o.Note(report.Approximated, "bond %q: member %q was disabled; why was not collected: its link is down here", live.name, m.name)
		changed = true
	}
	return changed
}

func (n *Node) activateMember(ctx context.Context, live, have *bond, o *report.Outcome) (changed bool) {
	if live.active == "" || live.active == have.active {
		return false
	}
	if err := n.bondDo(ctx, "set-active", live.name, live.active); err != nil {
		o.Note(report.Failed, "bond %q: member %q can't be made the active one: %v", live.name, live.active, err)
	}
	return true
}

// migrateHashes puts hashes on the members that had carried them. A trace shows
// what a hash picks in balance-slb alone; balance-tcp leaves it to the datapath.
func (n *Node) migrateHashes(ctx context.Context, live, _ *bond, o *report.Outcome) (changed bool) {
	if live.mode != "balance-slb" {
		return false
	}
	enabled := 0
	for _, m := range live.members {
		if m.enabled {
			enabled++
		}
		for hash, had := range m.hashes {
			if !had {
				continue
			}
			if _, err := n.appctl(ctx, "bond/migrate", live.name, strconv.Itoa(hash), m.name); err != nil {
				o.Note(report.Failed, "bond %q: hash %d can't be put on member %q: %v", live.name, hash, m.name, err)
				return changed
			}
			changed = true
		}
	}
	if enabled > 1 {
		o.Note(report.Approximated, "bond %q: a balance-slb bond gives a MAC address that sends for the first time the next member in turn; "+
			"whose turn it was is not recorded, so for addresses without a load in bond/show a trace may name another member than the live one did", live.name)
	}
	return changed
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
	if b.others.count > 0 {
		add("%d members are not in the database; the first: %q", b.others.count, b.others.first)
	}
	for _, m := range b.members {
		h := have.byName[m.name]
		switch {
		case h == nil:
			add("the replica has no member %q", m.name)
		case h.enabled != m.enabled:
			add("member %q: enabled was %v, in the replica %v", m.name, m.enabled, h.enabled)
		case h.mayEnable != m.mayEnable:
			add("member %q: may_enable was %v, in the replica %v", m.name, m.mayEnable, h.mayEnable)
		}
	}
	return list
}
