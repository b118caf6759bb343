package restore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// A dump can lack what its bridge had: OpenFlow 1.0 has no words for meters and
// for most of what came later, and says nothing of it; a dump that was cut off
// or that ovs-ofctl could not decode ends early. The same flows are told by
// dumps in other versions and by bridge/dump-flows, so each flow is taken from
// where it is told best.

// words are the actions of flows, by table, priority and match.
type words map[string]string

// readWords reads what tells flows better than the dump that is restored: dumps
// of higher OpenFlow versions, and bridge/dump-flows, which shows what the
// switch held. nil where the dump itself is in a version that says everything.
func (l *loader) readWords() (words, error) {
	used := l.node.dumpVersion(l.bridge, workdir.Flows)
	if used >= "OpenFlow13" {
		return nil, nil
	}
	w := words{}
	all := versions()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i] <= used {
			continue
		}
		if err := l.each(l.node.Workdir.OtherDump(l.bridge.Name, workdir.Flows, all[i]), func(f openflow.Flow) { w[f.Place()] = f.Actions() }); err != nil {
			return nil, err
		}
	}
	err := l.each(l.node.Workdir.BridgeRecorded(l.bridge.Name, workdir.RecordedBridgeFlows), func(f openflow.Flow) { w[f.Place()] = f.Actions() })
	return w, err
}

// each calls do for every flow of a recorded dump, if there is one.
func (l *loader) each(path string, do func(openflow.Flow)) error {
	f, ok, err := l.node.recorded(path)
	if !ok {
		return err
	}
	defer f.Close()
	for flow, problem := range openflow.Flows(f) {
		if problem == nil {
			do(flow)
		}
	}
	return nil
}

// better returns a flow with the actions that another source tells more fully.
func (w words) better(f openflow.Flow) (text string, ok bool) {
	if len(w) == 0 {
		return "", false
	}
	actions, ok := w[f.Place()]
	if !ok || actions == f.Actions() {
		return "", false
	}
	return f.WithActions(actions), true
}

// tellWorded says how many flows were told better elsewhere.
func (l *loader) tellWorded() {
	if l.worded > 0 {
		l.remark("%d flows take their actions from bridge/dump-flows or a dump of a higher OpenFlow version, which say more than the dump", l.worded)
	}
}

func (l *loader) remark(format string, args ...any) {
	l.node.Report.Remark(l.bridge.Name + ": " + fmt.Sprintf(format, args...))
}

// damaged tells whether the dump held flows in lines that can't be used.
func (l *loader) damaged() bool {
	return l.more > 0 || slices.ContainsFunc(l.problems, func(p openflow.Problem) bool { return p.Lost })
}

// makeUp adds the flows that a damaged dump lacks, from wherever they are told,
// and says what the damage cost.
func (l *loader) makeUp(ctx context.Context) error {
	if err := l.blame(); err != nil {
		return err
	}
	missing, err := l.missing()
	if err != nil {
		return err
	}
	l.node.Report.Counts(l.bridge.Name, workdir.Flows).Collected += len(missing)
	var ready, loads []pending
	for _, f := range missing {
		if p := l.prepare(f); p.version == l.version {
			ready = append(ready, p)
		} else {
			loads = append(loads, p)
		}
	}
	for _, list := range [][]pending{ready, loads} {
		if err := l.push(ctx, list); err != nil {
			return err
		}
	}
	l.tellWorded()
	return l.readBackPlaces(ctx)
}

// missing are the flows that the dump lacks and another source has: dumps of
// other versions, the best first, and then bridge/dump-flows.
func (l *loader) missing() ([]openflow.Flow, error) {
	seen := map[string]bool{}
	if err := l.each(l.node.Workdir.DumpFile(l.bridge.Name, workdir.Flows), func(f openflow.Flow) { seen[f.Place()] = true }); err != nil {
		return nil, err
	}
	var missing []openflow.Flow
	take := func(path, name string, keep func(openflow.Flow) bool) error {
		before := len(missing)
		err := l.each(path, func(f openflow.Flow) {
			if place := f.Place(); !seen[place] && keep(f) {
				seen[place] = true
				missing = append(missing, openflow.Flow{Text: strings.Replace(f.Text, "table_id=", "table=", 1)})
			}
		})
		if n := len(missing) - before; n > 0 {
			l.remark("%d flows that its dump lacks are taken from %s", n, name)
		}
		return err
	}
	for _, v := range versions() {
		if err := take(l.node.Workdir.OtherDump(l.bridge.Name, workdir.Flows, v), "the dump of "+v, func(openflow.Flow) bool { return true }); err != nil {
			return nil, err
		}
	}
	err := take(l.node.Workdir.BridgeRecorded(l.bridge.Name, workdir.RecordedBridgeFlows), "bridge/dump-flows, which doesn't tell cookies", isDumped)
	return missing, err
}

// isDumped tells the flows of bridge/dump-flows that ovs-ofctl dumps as well:
// not the hidden ones, nor those of the table for internal use.
func isDumped(f openflow.Flow) bool {
	table, rest, _ := strings.Cut(f.Place(), "|")
	priority, _, _ := strings.Cut(rest, "|")
	p, err := strconv.Atoi(priority)
	return err == nil && p <= 65535 && table != "254"
}

// blame puts the lines aside that can't be used. Where bridge/dump-flows told
// all that the switch held, nothing is lost by them.
func (l *loader) blame() error {
	f, whole, err := l.node.recorded(l.node.Workdir.BridgeRecorded(l.bridge.Name, workdir.RecordedBridgeFlows))
	if err != nil {
		return err
	}
	if whole {
		defer f.Close()
		for _, problem := range openflow.Flows(f) {
			whole = whole && (problem == nil || !problem.Lost)
		}
	}
	for _, p := range l.problems {
		if whole && p.Lost {
			l.remark("%s: made up for by bridge/dump-flows", p)
		} else {
			l.node.problem(l.bridge, workdir.Flows, p)
		}
	}
	if l.more > 0 && whole {
		l.remark("%d more lines can't be used: made up for by bridge/dump-flows", l.more)
	} else if l.more > 0 {
		l.node.Report.RejectUnnamed(l.bridge.Name, workdir.Flows, l.more)
	}
	return nil
}

// readBackPlaces compares by table, priority and match: a damaged dump's words
// and those that make up for it don't come from one OpenFlow version.
func (l *loader) readBackPlaces(ctx context.Context) error {
	var err error
	have := map[string]bool{}
	for f, problem := range l.node.dumpFlows(ctx, l.version, l.spelling, l.bridge, &err) {
		if problem == nil {
			have[f.Place()] = true
		}
	}
	if err != nil {
		return err
	}
	counts := l.node.Report.Counts(l.bridge.Name, workdir.Flows)
	compare := func(f openflow.Flow) {
		mended, _ := openflow.Apply(f.Text)
		if have[f.Place()] || have[(openflow.Flow{Text: mended}).Place()] {
			counts.Restored++
		} else {
			counts.Different++
		}
	}
	aside := l.node.asideLines(l.bridge, workdir.Flows)
	err = l.each(l.node.Workdir.DumpFile(l.bridge.Name, workdir.Flows), func(f openflow.Flow) {
		if !aside[f.Line] {
			compare(f)
		}
	})
	for _, f := range l.madeUp {
		compare(f)
	}
	return err
}
