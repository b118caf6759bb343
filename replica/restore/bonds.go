package restore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// liveBond is a bond of the database as bond/show recorded it.
type liveBond struct {
	appctl.Bond
	memberNames
}

// memberNames are the names of a port's members in a recorded text.
type memberNames struct {
	members []string     // the members that the database has, sorted
	unknown unknownNames // the others
}

// restoreBonds restores LACP partners, and enabled and active members.
//
// Cause: no database holds which members of a bond are enabled, and which one is
// active. In a replica all members are enabled, or with LACP none.
//
// Remedy: the causes that had disabled a member are restored first: its link (port
// states), BFD, CFM, LACP. While the clock is stopped, members that wait for an updelay
// or downdelay keep waiting. bond/ commands set the rest.
//
// Source: ovs-vswitchd(8), BOND COMMANDS. bond/disable-member has no effect
// where a bond has no updelay (measured with OVS 3.1).
func restoreBonds(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	bonds, unknown, err := recordedBonds(sw, rec)
	if err != nil {
		return err
	}
	aggregates, err := readLACP(sw, rec)
	if err != nil {
		return err
	}
	if len(bonds)+unknown.count+len(aggregates.ports)+aggregates.unknown.count == 0 && !hasBonds(sw) {
		return nil
	}
	if err := sw.stopClock(ctx); err != nil {
		outcome.Note(report.Failed, "the clock can't be stopped, so bonds will change: %v", err)
	}
	if err := aggregates.restore(ctx, sw, outcome); err != nil {
		return err
	}
	unknown.note(outcome, workdir.RecordedBond, "bonds")
	var live []*liveBond
	for _, bridge := range sw.Bridges {
		for _, port := range bridge.Ports {
			if bond := bonds[port.Name]; bond != nil {
				live = append(live, bond)
			} else if len(port.Interfaces) > 1 {
				outcome.Note(report.Unknown, "%s: bond %q: no bond/show was collected: all members whose link is up are enabled", bridge.Name, port.Name)
			}
		}
	}
	if err := restoreMembers(ctx, sw, live, outcome); err != nil {
		return err
	}
	return sw.forgetPackets(ctx, outcome)
}

// recordedBonds reads bond/show and returns the bonds that the database has. A text
// with several sections for one bond was pieced together by hand; the last section
// counts.
func recordedBonds(sw *Switch, rec *Recorded) (bonds map[string]*liveBond, unknown unknownNames, err error) {
	text, err := rec.text(workdir.RecordedBond)
	if err != nil {
		return nil, unknown, err
	}
	ports := portsByName(sw)
	bonds = map[string]*liveBond{}
	for bond := range appctl.Bonds(text) {
		port := ports[bond.Name]
		if port == nil {
			unknown.add(bond.Name)
			continue
		}
		bonds[bond.Name] = &liveBond{bond, port.members(maps.Keys(bond.Members))}
	}
	return bonds, unknown, nil
}

func portsByName(sw *Switch) map[string]*Port {
	ports := map[string]*Port{}
	for _, bridge := range sw.Bridges {
		for _, port := range bridge.Ports {
			ports[port.Name] = port
		}
	}
	return ports
}

// members splits names into the port's members and other names.
func (p *Port) members(names iter.Seq[string]) (m memberNames) {
	for _, name := range slices.Sorted(names) {
		if p.hasInterface(name) {
			m.members = append(m.members, name)
		} else {
			m.unknown.add(name)
		}
	}
	return m
}

// hasInterface reports whether the port has an interface of that name.
func (p *Port) hasInterface(name string) bool {
	return slices.ContainsFunc(p.Interfaces, func(iface *Interface) bool { return iface.Name == name })
}

// hasBonds reports whether any port has several members or LACP.
func hasBonds(sw *Switch) bool {
	for _, port := range portsByName(sw) {
		if len(port.Interfaces) > 1 || port.LACP != "" && port.LACP != "off" {
			return true
		}
	}
	return false
}

// restoreMembers restores all bonds together, because ovs-vswitchd takes some time for
// each change, and some changes never happen.
func restoreMembers(ctx context.Context, sw *Switch, live []*liveBond, outcome *report.Outcome) error {
	have, err := settledBonds(ctx, sw, live)
	for _, change := range []func(context.Context, *Switch, *liveBond, appctl.Bond, *report.Outcome) (changed bool){enableMembers, cutLinks, activateMember, migrateHashes} {
		changed := false
		for _, bond := range live {
			if err != nil {
				return err
			}
			if h, ok := have[bond.Name]; ok {
				changed = change(ctx, sw, bond, h, outcome) || changed
			}
			err = ctx.Err()
		}
		if changed && err == nil {
			have, err = settledBonds(ctx, sw, live)
		}
	}
	if err != nil {
		return err
	}
	for _, bond := range live {
		h, ok := have[bond.Name]
		if !ok {
			outcome.Note(report.Failed, "bond %q is missing on the replica", bond.Name)
			continue
		}
		differences := bond.differences(h)
		for _, difference := range differences {
			outcome.Note(report.Failed, "bond %q: %s", bond.Name, difference)
		}
		if len(differences) == 0 {
			outcome.Note(report.Restored, "")
		}
	}
	return nil
}

// settledBonds returns the replica's bonds once links and LACP let members carry
// packets as on the live node, or after a bounded time.
func settledBonds(ctx context.Context, sw *Switch, live []*liveBond) (have map[string]appctl.Bond, err error) {
	if len(live) == 0 {
		return nil, nil
	}
	err = retryUntil(ctx, func() (bool, error) {
		out, err := sw.appctl(ctx, "bond/show")
		have = map[string]appctl.Bond{}
		for bond := range appctl.Bonds(out) {
			have[bond.Name] = bond
		}
		return !slices.ContainsFunc(live, func(bond *liveBond) bool { return !bond.settled(have) }), err
	})
	return have, err
}

func (l *liveBond) settled(have map[string]appctl.Bond) bool {
	return !slices.ContainsFunc(l.members, func(name string) bool {
		member, ok := have[l.Name].Members[name]
		return ok && member.MayEnable != l.Members[name].MayEnable
	})
}

// enableMembers enables and disables members without regard to delays.
func enableMembers(ctx context.Context, sw *Switch, live *liveBond, have appctl.Bond, outcome *report.Outcome) (changed bool) {
	for _, name := range live.members {
		member, ok := have.Members[name]
		enabled := live.Members[name].Enabled
		if !ok || member.Enabled == enabled {
			continue // differences reports a missing member
		}
		verb := "disable"
		if enabled {
			verb = "enable"
		}
		if err := bondCommand(ctx, sw, verb, live.Name, name); err != nil {
			outcome.Note(report.Failed, "bond %q: member %q can't be %sd: %v", live.Name, name, verb, err)
		}
		changed = true
	}
	return changed
}

// cutLinks takes the link of members that were disabled and are still enabled.
func cutLinks(ctx context.Context, sw *Switch, live *liveBond, have appctl.Bond, outcome *report.Outcome) (changed bool) {
	for _, name := range live.members {
		if live.Members[name].Enabled || !have.Members[name].Enabled {
			continue
		}
		if err := sw.setLink(ctx, name, "down"); err != nil {
			outcome.Note(report.Failed, "bond %q: the link of member %q can't be set down: %v", live.Name, name, err)
			continue
		}
		outcome.Note(report.Approximated, "bond %q: member %q was disabled for an unrecorded reason; its link is set down here", live.Name, name)
		changed = true
	}
	return changed
}

func activateMember(ctx context.Context, sw *Switch, live *liveBond, have appctl.Bond, outcome *report.Outcome) (changed bool) {
	if live.Active == "" || live.Active == have.Active {
		return false
	}
	if err := bondCommand(ctx, sw, "set-active", live.Name, live.Active); err != nil {
		outcome.Note(report.Failed, "bond %q: member %q can't be made the active one: %v", live.Name, live.Active, err)
	}
	return true
}

// migrateHashes assigns hashes to the members that carried them. A trace shows the
// choice by hash only with balance-slb: with balance-tcp the datapath chooses.
func migrateHashes(ctx context.Context, sw *Switch, live *liveBond, _ appctl.Bond, outcome *report.Outcome) (changed bool) {
	if live.Mode != "balance-slb" {
		return false
	}
	enabled := 0
	for _, name := range live.members {
		if live.Members[name].Enabled {
			enabled++
		}
		for _, hash := range live.Members[name].Hashes {
			if _, err := sw.appctl(ctx, "bond/migrate", live.Name, strconv.Itoa(hash), name); err != nil {
				outcome.Note(report.Failed, "bond %q: hash %d can't be assigned to member %q: %v", live.Name, hash, name, err)
				return changed
			}
			changed = true
		}
	}
	if enabled > 1 {
		outcome.Note(report.Approximated, "bond %q: balance-slb assigns each new source MAC address to the next member in turn; "+
			"which member is next is not recorded, so for addresses without a load in bond/show a trace may show another member than on the live node", live.Name)
	}
	return changed
}

// bondCommand runs a command like bond/enable-member (before OVS 2.15
// bond/enable-slave).
func bondCommand(ctx context.Context, sw *Switch, verb string, args ...string) error {
	_, err := sw.appctl(ctx, append([]string{"bond/" + verb + "-member"}, args...)...)
	var failed *command.Error
	if errors.As(err, &failed) && strings.Contains(failed.Stderr, "not a valid command") {
		_, err = sw.appctl(ctx, append([]string{"bond/" + verb + "-slave"}, args...)...)
	}
	return err
}

// differences describes how the replica's bond differs from the live one.
func (l *liveBond) differences(have appctl.Bond) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if l.LACP != have.LACP {
		add("its lacp_status was %s, in the replica %s", l.LACP, have.LACP)
	}
	if l.Active != have.Active {
		add("its active member was %q, in the replica %q", l.Active, have.Active)
	}
	if l.unknown.count > 0 {
		add("%d members are not in the database; the first: %q", l.unknown.count, l.unknown.first)
	}
	for _, name := range l.members {
		m := l.Members[name]
		h, ok := have.Members[name]
		switch {
		case !ok:
			add("the replica has no member %q", name)
		case h.Enabled != m.Enabled:
			add("member %q: enabled was %v, in the replica %v", name, m.Enabled, h.Enabled)
		case h.MayEnable != m.MayEnable:
			add("member %q: may_enable was %v, in the replica %v", name, m.MayEnable, h.MayEnable)
		}
	}
	return list
}
