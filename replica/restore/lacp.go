package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/packet"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// lacpPorts are the ports of the database that lacp/show recorded.
//
// Cause: a replica has no LACP partners. After three seconds ("expired") members
// are detached: the bond drops packets, or falls back to active-backup.
//
// Remedy: with the clock stopped, a warp lets members without a partner time
// out, and the others receive the last LACPDU of their partner, built from the output
// of lacp/show. With the clock stopped, the partner never expires.
//
// Source: lacp/show and bond/show print the same as on a node with a real partner
// (measured with OVS 3.1).
type lacpPorts struct {
	ports   map[string]lacpPort
	unknown unknownNames
}

type lacpPort struct {
	appctl.LACP
	memberNames
}

// readLACP reads lacp/show as recordedBonds does bond/show.
func readLACP(sw *Switch, rec *Recorded) (*lacpPorts, error) {
	text, err := rec.text(workdir.RecordedLACP)
	if err != nil {
		return nil, err
	}
	ports := portsByName(sw)
	all := &lacpPorts{ports: map[string]lacpPort{}}
	for lacp := range appctl.LACPs(text) {
		port := ports[lacp.Name]
		if port == nil {
			all.unknown.add(lacp.Name)
			continue
		}
		all.ports[lacp.Name] = lacpPort{lacp, port.members(maps.Keys(lacp.Members))}
	}
	return all, nil
}

// restore sends each port the LACPDUs of its partners, and compares the result.
func (l *lacpPorts) restore(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	have, err := runningLACP(ctx, sw)
	if err != nil || len(have) == 0 {
		return err
	}
	if err := expirePartners(ctx, sw, have, outcome); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		want, ok := l.ports[name]
		if !ok {
			want = assumedPartners(have[name])
			outcome.Note(report.Unknown, "LACP of %q: no lacp/show was collected: a partner that agrees on every member is assumed", name)
		}
		for _, member := range want.members {
			m := want.Members[member]
			if m.Status == "defaulted" {
				continue
			}
			err := sw.receive(ctx, member, packet.LACPDU(m.Partner))
			if err := noteFailure(ctx, outcome, err, "LACP of %q: its partner's packet on %q", name, member); err != nil {
				return err
			}
		}
	}
	l.unknown.note(outcome, workdir.RecordedLACP, "ports")
	return l.compare(ctx, sw, outcome)
}

// runningLACP asks the replica for its ports with LACP.
func runningLACP(ctx context.Context, sw *Switch) (map[string]appctl.LACP, error) {
	out, err := sw.appctl(ctx, "lacp/show")
	ports := map[string]appctl.LACP{}
	for lacp := range appctl.LACPs(out) {
		ports[lacp.Name] = lacp
	}
	return ports, err
}

// expirePartners waits until no member is in the state "expired", in which
// ovs-vswitchd starts.
func expirePartners(ctx context.Context, sw *Switch, have map[string]appctl.LACP, outcome *report.Outcome) error {
	const timeout = "3001" // ms; three times the fast rate
	if !hasExpired(have) {
		return nil
	}
	if _, err := sw.appctl(ctx, "time/warp", timeout); err != nil {
		outcome.Note(report.Failed, "LACP: the clock can't be moved: %v", err)
		return ctx.Err()
	}
	return retryUntil(ctx, func() (bool, error) {
		have, err := runningLACP(ctx, sw)
		return !hasExpired(have), err
	})
}

func hasExpired(ports map[string]appctl.LACP) bool {
	for _, lacp := range ports {
		for _, member := range lacp.Members {
			if member.Status == "expired" {
				return true
			}
		}
	}
	return false
}

// assumedPartners describes a port whose every member has the same partner.
func assumedPartners(have appctl.LACP) lacpPort {
	const activeAndDistributing = 0x3d // activity, aggregation, synchronized, collecting, distributing
	want := lacpPort{LACP: appctl.LACP{Name: have.Name, Members: map[string]appctl.LACPMember{}}}
	want.members = slices.Sorted(maps.Keys(have.Members))
	for i, name := range want.members {
		want.Members[name] = appctl.LACPMember{Status: "current", Partner: packet.LACPInfo{SystemPriority: 65535,
			System: packet.MAC{0x02, 5: 1}, Key: 1, PortPriority: 65535, Port: uint16(i + 1), State: activeAndDistributing}}
	}
	return want
}

// compare waits until lacp/show equals the recorded one, and reports differences.
func (l *lacpPorts) compare(ctx context.Context, sw *Switch, outcome *report.Outcome) error {
	if len(l.ports) == 0 {
		return nil
	}
	var differences []string
	err := retryUntil(ctx, func() (bool, error) {
		have, err := runningLACP(ctx, sw)
		differences = l.differences(have)
		return len(differences) == 0, err
	})
	if len(differences) == 0 {
		outcome.Note(report.Restored, "")
	}
	for _, difference := range differences {
		outcome.Note(report.Failed, "LACP of %s", difference)
	}
	for _, name := range slices.Sorted(maps.Keys(l.ports)) {
		for _, member := range l.ports[name].members {
			if l.ports[name].Members[member].Status == "expired" {
				outcome.Note(report.Approximated, "LACP of %q: %q had lost its partner less than three seconds before; here it is current, but does not forward either", name, member)
			}
		}
	}
	return err
}

func (l *lacpPorts) differences(have map[string]appctl.LACP) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(l.ports)) {
		port := l.ports[name]
		add := func(format string, args ...any) {
			list = append(list, fmt.Sprintf("%q: ", name)+fmt.Sprintf(format, args...))
		}
		if port.Negotiated != have[name].Negotiated {
			add("negotiated %v, in the replica %v", port.Negotiated, !port.Negotiated)
		}
		if port.unknown.count > 0 {
			add("%d members are not in the database; the first: %q", port.unknown.count, port.unknown.first)
		}
		for _, member := range port.members {
			if h, ok := have[name].Members[member]; !ok {
				add("the replica has no member %q", member)
			} else if was, is := describeLACP(port.Members[member]), describeLACP(h); was != is {
				add("%q was %s, in the replica %s", member, was, is)
			}
		}
	}
	return list
}

// describeLACP returns the properties of a member that are compared.
func describeLACP(member appctl.LACPMember) string {
	if member.Status == "expired" {
		member.Status = "current"
	}
	return fmt.Sprintf("%s, attached %v, may_enable %v, partner %x/%d", member.Status, member.Attached, member.MayEnable, member.Partner.System, member.Partner.Port)
}
