package restore

import (
	"context"
	"maps"
	"slices"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// restoreBFD sets whether each BFD session forwards, because the replica has no peers.
// The state comes from bfd/show or, for a session that it lacks, from bfd_status in
// ovs-vsctl list interface.
func restoreBFD(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
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
	for _, iface := range sw.interfaces() {
		if !iface.BFD { // the status is left from a session that the interface no longer has
			delete(states, iface.Name)
		}
	}
	return setSessions(ctx, sw, states, source, "BFD session", "bfd/set-forwarding", outcome)
}

// restoreCFM sets the fault of each CFM monitor: the replica has no remote endpoints.
func restoreCFM(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	text, err := rec.text(workdir.RecordedCFM)
	if err != nil {
		return err
	}
	return setSessions(ctx, sw, appctl.CFMMonitors(text), workdir.RecordedCFM, "CFM monitor", "cfm/set-fault", outcome)
}

// setSessions runs a command for each interface with a state, and reports the names in
// states that no interface has.
func setSessions(ctx context.Context, sw *Switch, states map[string]string, source, kind, command string, outcome *report.Outcome) error {
	for _, iface := range sw.interfaces() {
		state := states[iface.Name]
		if state == "" {
			continue
		}
		delete(states, iface.Name)
		_, err := sw.appctl(ctx, command, iface.Name, state)
		if err := noteResult(ctx, outcome, err, "%s of %q", kind, iface.Name); err != nil {
			return err
		}
	}
	var unknown unknownNames
	for _, name := range slices.Sorted(maps.Keys(states)) {
		unknown.add(name)
	}
	unknown.note(outcome, source, kind+"s of interfaces")
	return nil
}
