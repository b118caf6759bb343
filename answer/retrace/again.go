package retrace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/ovntrace"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/portmap"
	"ovs-offline/internal/tracetext"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// again asks the replica what was asked in a trace.
func (r *reader) again(ctx context.Context, t *Traced) (Again, error) {
	if t.trace.Tool == tracetext.Logical {
		return r.againLogical(ctx, t)
	}
	argv, why := switchArguments(t)
	if why != "" {
		return Again{NotAsked: why}, nil
	}
	if !r.hasSwitch() {
		return Again{NotAsked: "nothing of Open vSwitch was collected of which a replica can be made"}, nil
	}
	if r.replica == nil && r.down == nil {
		r.replica, r.down = host.Open(ctx, r.Name, r.dir)
	}
	var text string
	err := r.down
	if err == nil {
		text, err = r.replica.Ask(ctx, argv...)
	}
	refused, isRefused := unixctl.Refused(err)
	down, isDown := errors.AsType[*host.UnavailableError](err)
	switch {
	case isRefused:
		return Again{NotAsked: "the replica refuses the question: " + phrase.Shorten(refused, 400)}, nil
	case isDown:
		return Again{NotAsked: down.Text(), Start: true}, nil
	case err != nil:
		return Again{}, err
	}
	passes, err := pass.Parse(text)
	if err != nil {
		return Again{NotAsked: fmt.Sprintf("the answer of the replica can't be read: %v", err)}, nil
	}
	shown, err := r.replica.Ask(ctx, "dpif/show")
	if err != nil {
		return Again{}, err
	}
	return r.compare(ctx, t, passes, shown)
}

// switchArguments returns the command for ovs-vswitchd, or why the question can't be asked. What was pasted is never an option.
func switchArguments(t *Traced) (argv []string, why string) {
	question := t.trace.Question()
	bridge, flow := question.Bridge, question.Flow
	first := ""
	if len(t.result.passes) > 0 {
		first = t.result.passes[0].Flow.Input()
		if t.result.passes[0].Flow.Has("recirc_id") {
			return nil, "the question is about a packet that a recirculation resumes, which only that ovs-vswitchd knows"
		}
	}
	switch {
	case question.Actions != "":
		return nil, "the question is about actions of its own (ofproto/trace-packet-out)"
	case bridge == "" || tracetext.CheckFlow(flow) != nil:
		bridge, flow = t.Bridge, first // a flow of the datapath, or no command line
	}
	if err := tracetext.CheckFlow(flow); err != nil {
		return nil, fmt.Sprintf("its flow can't be asked: %v", err)
	}
	if bridge == "" || strings.HasPrefix(bridge, "-") || strings.ContainsAny(bridge, "\n\x00") {
		return nil, "its bridge is not known"
	}
	argv = []string{"ofproto/trace", bridge, flow}
	for _, state := range question.States {
		argv = append(argv, "--ct-next", state)
	}
	if t.hasNames() {
		argv = append(argv, "--names")
	}
	return argv, ""
}

// hasNames reports whether a trace has the names of ports in place of their numbers (--names).
func (t *Traced) hasNames() bool {
	if t.trace.Question().Names || len(t.result.passes) == 0 {
		return t.trace.Question().Names
	}
	port := t.result.passes[0].Flow.Get("in_port")
	_, err := strconv.ParseUint(port, 0, 32)
	return err != nil && port != "" && port != strings.ToUpper(port) // LOCAL, ANY
}

// compare compares a trace with the answer of the replica, whose ports dpif/show has shown.
func (r *reader) compare(ctx context.Context, t *Traced, passes []*pass.Pass, shown string) (Again, error) {
	names := map[string]string{}
	for port := range appctl.BridgePorts(shown) {
		if port.Datapath != "none" {
			names[port.Datapath] = port.Name
		}
	}
	other := &Traced{result: follow(passes, names), trace: tracetext.Trace{}}
	if err := r.addPlaces(ctx, other); err != nil {
		return Again{}, err
	}
	found := Again{Result: Same, Verdict: other.result.verdict(), Ends: r.namedEnds(&other.result)}
	isOld := strings.HasPrefix(t.trace.Text, "Bridge: ") || strings.Contains(t.trace.Text, "\nRule: table=")
	withActions := !t.trace.Flat && !isOld && len(t.Lacks) == 0
	if !withActions {
		found.Uncompared = append(found.Uncompared, "actions of flows, which the pasted text does not show one by one")
	}
	way := other.Stages
	if isOld { // recirculations were not followed
		way = slices.DeleteFunc(slices.Clone(way), func(p Place) bool { return p.Pass > 0 })
	}
	if found.difference(t.Stages, way, withActions, len(t.Lacks) > 0 || t.Verdict == Undetermined); found.Result == Differs || t.Verdict == Undetermined {
		return found, nil
	}
	if found.Verdict != t.Verdict || !r.sameActions(&found, t, other, names) {
		found.Result, found.What = Differs, "end"
		found.Recorded, found.Replica = t.Where, other.Where
	}
	return found, nil
}

// difference finds the first stage that differs. With begins, the recorded stages may end earlier.
func (a *Again) difference(recorded, other []Place, withActions, begins bool) {
	for i := range max(len(recorded), len(other)) {
		switch {
		case i >= len(recorded):
			if !begins {
				a.Result, a.What, a.Replica = Differs, "flow", &other[i]
			}
			return
		case i >= len(other):
			a.Result, a.What, a.Recorded = Differs, "flow", &recorded[i]
			return
		case !recorded[i].isLike(other[i]):
			a.Result, a.What, a.Recorded, a.Replica = Differs, "flow", &recorded[i], &other[i]
			return
		case withActions && actionsOf(recorded[i].Actions) != actionsOf(other[i].Actions):
			a.Result, a.What, a.Recorded, a.Replica = Differs, "actions", &recorded[i], &other[i]
			return
		}
	}
}

// isLike reports whether two places are the same flow. Cookies are not compared: a controller that was started again
// gives others. A trace of an old release does not name the bridge behind a patch port.
func (p Place) isLike(other Place) bool {
	return (p.Bridge == other.Bridge || p.Bridge == "" || other.Bridge == "") && p.Datapath == other.Datapath && p.Pipeline == other.Pipeline && p.Table == other.Table &&
		(p.Flow == "") == (other.Flow == "") && p.match == other.match && priorityOf(p.Flow) == priorityOf(other.Flow)
}

// priorityOf returns the end of a flow with its priority.
func priorityOf(flow string) string {
	return flow[max(0, strings.LastIndex(flow, "priority")):]
}

// sameActions reports whether two traces have the same datapath actions, where the numbers of ports on the node are known by
// their names.
func (r *reader) sameActions(found *Again, t, other *Traced, names map[string]string) bool {
	if len(r.numbers) == 0 && !t.hasNames() {
		found.Uncompared = append(found.Uncompared, "ports of the datapath, whose names were not recorded (dpif/show)")
		return true
	}
	byName := map[string]string{}
	for number, name := range names {
		byName[name] = number
	}
	ports := portmap.Ports{}
	for number, name := range r.numbers {
		ports[number] = byName[name]
	}
	if len(t.result.way) != len(other.result.way) {
		return false
	}
	for i, p := range t.result.way {
		q := other.result.way[i]
		flood := p.Floods() || q.Floods()
		line := ports.Translate("Datapath actions: " + p.ActionsText)
		if odp.Normal(strings.TrimPrefix(line, "Datapath actions: "), flood, p.Flow.String()) != odp.Normal(q.ActionsText, flood, q.Flow.String()) {
			return false
		}
	}
	return true
}

// againLogical runs ovn-trace beside the replica.
func (r *reader) againLogical(ctx context.Context, t *Traced) (Again, error) {
	argv, why := logicalArguments(t)
	if why != "" {
		return Again{NotAsked: why}, nil
	}
	if r.sb == nil {
		return Again{NotAsked: "no OVN SB database was collected"}, nil
	}
	state, err := r.running.Running(ctx, r.dir)
	switch {
	case errors.Is(err, runtime.ErrNotRunning):
		return Again{NotAsked: "no replica runs", Start: true}, nil
	case err != nil:
		return Again{}, err
	case !slices.Contains(state.Kinds, workdir.SB):
		return Again{NotAsked: "the replica has no OVN SB database"}, nil
	}
	executor, err := r.running.Executor(ctx, r.dir, state, false)
	if err != nil {
		return Again{}, err
	}
	var out, failed bytes.Buffer
	command := runtime.Command{Argv: argv, Stdout: &out, Stderr: &failed, Env: replica.Scripts(r.dir, state.Kinds).Environment()}
	exit, err := executor.Exec(ctx, command)
	switch {
	case errors.Is(err, runtime.ErrNotInstalled):
		return Again{NotAsked: err.Error()}, nil
	case err != nil:
		return Again{}, err
	case exit != 0:
		return Again{NotAsked: "ovn-trace refuses the question: " + phrase.Shorten(strings.TrimSpace(failed.String()), 400)}, nil
	}
	return r.compareLogical(t, out.String())
}

// logicalArguments returns the command line of ovn-trace, or why the question can't be asked.
func logicalArguments(t *Traced) (argv []string, why string) {
	question := t.trace.Question()
	datapath, microflow := question.Datapath, question.Microflow
	if microflow == "" {
		read, err := ovntrace.Parse(t.trace.Text)
		if err != nil || t.InPort == "" || len(read.Packet.Fields()) == 0 {
			return nil, "its microflow was not pasted"
		}
		datapath, microflow = t.Bridge, trace.Microflow(t.InPort, read.Packet)
	}
	if strings.HasPrefix(datapath, "-") || strings.HasPrefix(microflow, "-") || strings.ContainsAny(datapath+microflow, "\n\x00") {
		return nil, "its microflow can't be asked"
	}
	argv = []string{"ovn-trace", "--detailed"}
	for _, state := range question.States {
		argv = append(argv, "--ct="+state)
	}
	argv = append(append(argv, question.Options...), "--")
	if datapath != "" {
		argv = append(argv, datapath)
	}
	return append(argv, microflow), ""
}

// compareLogical compares a trace with what ovn-trace prints now.
func (r *reader) compareLogical(t *Traced, text string) (Again, error) {
	other := &Traced{trace: tracetext.Trace{Tool: tracetext.Logical, Text: text}}
	if err := r.readLogical(other); err != nil {
		return Again{}, err
	}
	found := Again{Result: Same, Verdict: other.Verdict, Ends: other.Ends}
	if len(t.Stages) == 0 {
		found.Uncompared = append(found.Uncompared, "logical flows, which the pasted text does not show (--detailed)")
	} else if found.difference(t.Stages, other.Stages, true, len(t.Lacks) > 0 || t.Verdict == Undetermined); found.Result == Differs {
		return found, nil
	}
	if ends := outputSet(other); !maps.Equal(ends, outputSet(t)) && t.Verdict != Undetermined {
		found.Result, found.What = Differs, "end"
		found.Recorded, found.Replica = t.Where, other.Where
	}
	return found, nil
}

// outputSet returns where a packet leaves. The minimal form does not have the types of ports.
func outputSet(t *Traced) map[string]bool {
	set := map[string]bool{}
	for _, text := range t.result.outputs {
		text, _, _ = strings.Cut(text, " (type ")
		set[text] = true
	}
	return set
}
