package restore

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// sessions are the states of BFD or CFM by interface.
type sessions struct {
	states  map[string]string
	unknown unknownNames
}

func newSessions(s *Switch) (*sessions, func(name, state string)) {
	known := map[string]bool{}
	for _, b := range s.Bridges {
		for _, i := range b.Interfaces() {
			known[i.Name] = true
		}
	}
	all := &sessions{states: map[string]string{}}
	return all, func(name, state string) {
		if known[name] {
			all.states[name] = state
		} else {
			all.unknown.add(name)
		}
	}
}

// restoreBFD sets whether each BFD session forwards: the replica has no peers.
// The state is that of bfd/show or, where that was not collected, of bfd_status
// in ovs-vsctl list interface.
func restoreBFD(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	source := workdir.RecordedBFD
	text, err := rec.text(source)
	if err != nil {
		return err
	}
	all, add := newSessions(s)
	for session := range appctl.BFDSessions(text) {
		if session.Forwarding != "" {
			add(session.Interface, session.Forwarding)
		}
	}
	if len(all.states)+all.unknown.count == 0 {
		source = workdir.RecordedListInterface
		statuses, err := rec.listed(source, "bfd_status")
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(statuses)) {
			if found := listedForwarding.FindStringSubmatch(statuses[name]); found != nil {
				add(name, found[1])
			}
		}
	}
	all.unknown.note(o, source, "BFD sessions of interfaces")
	return all.set(ctx, s, "BFD session", "bfd/set-forwarding", o)
}

// listedForwarding matches the element "forwarding" of bfd_status.
var listedForwarding = regexp.MustCompile(`\bforwarding="?(true|false)`)

// restoreCFM sets the fault of each connectivity fault monitor: the replica has
// no remote endpoints.
func restoreCFM(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	text, err := rec.text(workdir.RecordedCFM)
	if err != nil {
		return err
	}
	all, add := newSessions(s)
	for monitor := range appctl.CFMMonitors(text) {
		add(monitor.Interface, strconv.FormatBool(monitor.Fault))
	}
	all.unknown.note(o, workdir.RecordedCFM, "CFM monitors of interfaces")
	return all.set(ctx, s, "CFM monitor", "cfm/set-fault", o)
}

// set runs a command for each interface with a state.
func (all *sessions) set(ctx context.Context, s *Switch, kind, command string, o *report.Outcome) error {
	for _, b := range s.Bridges {
		for _, i := range b.Interfaces() {
			state := all.states[i.Name]
			if state == "" {
				continue
			}
			if _, err := s.appctl(ctx, command, i.Name, state); err != nil {
				o.Note(report.Failed, "%s of %q: %v", kind, i.Name, err)
			} else {
				o.Note(report.Restored, "")
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
