package restore

import (
	"context"
	"maps"
	"slices"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreBFD sets whether each BFD session forwards, because the replica has no peers.
// The state comes from bfd/show or, for a session that it lacks, from bfd_status in
// ovs-vsctl list interface.
func restoreBFD(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	source := workdir.RecordedListInterface
	statuses, err := rec.listed(source, "bfd_status")
	if err != nil {
		return err
	}
	states := map[string]string{}
	for name, status := range statuses {
		if state := listedMap(status)["forwarding"]; state == "true" || state == "false" {
			states[name] = state
		}
	}
	text, err := rec.text(workdir.RecordedBFD)
	if err != nil {
		return err
	}
	for name, state := range appctl.BFDSessions(text) {
		source, states[name] = workdir.RecordedBFD, state
	}
	for _, i := range s.interfaces() {
		if !i.BFD { // the status is that of a session which the interface has no longer
			delete(states, i.Name)
		}
	}
	return setSessions(ctx, s, states, source, "BFD session", "bfd/set-forwarding", o)
}

// restoreCFM sets the fault of each CFM monitor: the replica has no remote endpoints.
func restoreCFM(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	text, err := rec.text(workdir.RecordedCFM)
	if err != nil {
		return err
	}
	return setSessions(ctx, s, appctl.CFMMonitors(text), workdir.RecordedCFM, "CFM monitor", "cfm/set-fault", o)
}

// setSessions runs a command for each interface with a state, and reports the names in
// states that no interface has.
func setSessions(ctx context.Context, s *Switch, states map[string]string, source, kind, command string, o *report.Outcome) error {
	for _, i := range s.interfaces() {
		state := states[i.Name]
		if state == "" {
			continue
		}
		delete(states, i.Name)
		_, err := s.appctl(ctx, command, i.Name, state)
		if err := noteResult(ctx, o, err, "%s of %q", kind, i.Name); err != nil {
			return err
		}
	}
	var unknown unknownNames
	for _, name := range slices.Sorted(maps.Keys(states)) {
		unknown.add(name)
	}
	unknown.note(o, source, kind+"s of interfaces")
	return nil
}
