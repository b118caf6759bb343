package tables

import (
	"context"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// A dump can lack what its bridge had. OpenFlow 1.0 cannot express meters and most
// later actions, and silently leaves them out; a dump that was cut off, or that
// ovs-ofctl could not decode, ends early. Dumps in other versions and bridge/dump-flows
// hold the same flows, so each flow is taken from the most complete source.

// readFuller reads the sources that have more of each flow's actions than the
// dump: bridge/dump-flows, which prints what the switch held, and dumps of newer
// OpenFlow versions. There are none if the dump's version can express all actions.
func (l *loader) readFuller(ctx context.Context) error {
	version := l.dumpVersion()
	if version >= openflow.OpenFlow13 {
		return nil
	}
	paths := []string{l.Workdir.BridgeRecorded(l.bridge.Name, workdir.RecordedBridgeFlows)}
	for _, v := range openflow.Versions() {
		if v > version {
			paths = append(paths, l.Workdir.OtherDump(l.bridge.Name, workdir.Flows, v.String()))
		}
	}
	for _, path := range paths {
		index, err := indexFlows(ctx, path, openflow.Flow.Criteria)
		if err != nil {
			return err
		}
		l.fuller = append(l.fuller, index)
	}
	return nil
}

// fullerText returns a flow with its actions from a fuller source; ok is false if
// they are the same or no source has the flow.
func (l *loader) fullerText(flow openflow.Flow) (text string, ok bool) {
	text, ok = findActions(flow, l.fuller...)
	return text, ok && text != flow.Text
}

// findActions returns a flow with its actions from the first source that has it.
func findActions(flow openflow.Flow, sources ...*index) (text string, ok bool) {
	for _, index := range sources {
		if len(index.at) == 0 {
			continue
		}
		if held, ok := index.find(flow.Criteria()); ok {
			return flow.WithActions(held.Actions()), true
		}
	}
	return "", false
}

func (l *loader) remarkFuller() {
	if l.fullerUsed > 0 {
		l.remark("%d flows take their actions from bridge/dump-flows or a dump of a newer OpenFlow version, which have more of them than the dump", l.fullerUsed)
	}
}

// restoreDamaged adds the flows that a damaged dump lacks from other sources, and
// reports what is lost.
func (l *loader) restoreDamaged(ctx context.Context) error {
	if err := l.rejectLines(ctx); err != nil {
		return err
	}
	missing, err := l.missing(ctx)
	if err != nil {
		return err
	}
	l.counts().Collected += len(missing)
	byVersion := map[openflow.Version][]entry{}
	for _, flow := range missing {
		entry := l.prepareFlow(flow)
		byVersion[entry.version] = append(byVersion[entry.version], entry)
	}
	for _, version := range openflow.Versions() {
		if err := l.push(ctx, byVersion[version]); err != nil {
			return err
		}
	}
	l.remarkFuller()
	return l.readBackCriteria(ctx)
}

// rejectLines rejects the lines of the dump that cannot be used. If bridge/dump-flows
// is undamaged, no flow is lost.
func (l *loader) rejectLines(ctx context.Context) error {
	damaged := false
	path := l.Workdir.BridgeRecorded(l.bridge.Name, workdir.RecordedBridgeFlows)
	whole, err := eachFlow(ctx, path, nil, func(_ openflow.Flow, problem *openflow.Problem) {
		damaged = damaged || problem != nil && problem.Lost
	})
	if err != nil {
		return err
	}
	whole = whole && !damaged
	for _, problem := range l.problems {
		if whole && problem.Lost {
			l.remark("%s: replaced by bridge/dump-flows", problem)
		} else {
			l.rejectLine(problem)
		}
	}
	if l.more > 0 && whole {
		l.remark("%d more lines can't be used: replaced by bridge/dump-flows", l.more)
	} else if l.more > 0 {
		l.Report.RejectUnnamed(l.bridge.Name, workdir.Flows, l.more)
	}
	return nil
}

// missing returns the flows that the dump lacks and another source has: dumps of
// other versions, the newest first, and then bridge/dump-flows.
func (l *loader) missing(ctx context.Context) ([]openflow.Flow, error) {
	seen, err := indexFlows(ctx, l.path(), openflow.Flow.Criteria)
	if err != nil {
		return nil, err
	}
	var missing []openflow.Flow
	take := func(path, source string, keep func(openflow.Flow) bool) error {
		before := len(missing)
		_, err := eachFlow(ctx, path, nil, func(flow openflow.Flow, problem *openflow.Problem) {
			if problem == nil && keep(flow) && !seen.has(flow) {
				seen.add(flow)
				missing = append(missing, openflow.Flow{Text: strings.Replace(flow.Text, "table_id=", "table=", 1)})
			}
		})
		if n := len(missing) - before; n > 0 {
			l.remark("%d flows that its dump lacks are taken from %s", n, source)
		}
		return err
	}
	all := func(openflow.Flow) bool { return true }
	for _, version := range openflow.Versions() {
		if err := take(l.Workdir.OtherDump(l.bridge.Name, workdir.Flows, version.String()), "the dump of "+version.String(), all); err != nil {
			return nil, err
		}
	}
	err = take(l.Workdir.BridgeRecorded(l.bridge.Name, workdir.RecordedBridgeFlows), "bridge/dump-flows, which has no cookies", isDumpable)
	return missing, err
}

// isDumpable reports whether ovs-ofctl dumps a flow of bridge/dump-flows: it does
// not dump hidden flows and the flows of table 254, which is for internal use.
func isDumpable(flow openflow.Flow) bool {
	key, err := openflow.ParseKey(flow.Text)
	return err == nil && key.Priority <= maxPriority && key.Table != 254
}

// readBackCriteria compares flows by table, priority and match: the flows of a
// damaged dump and those from other sources were not printed in one OpenFlow version.
func (l *loader) readBackCriteria(ctx context.Context) error {
	have := newIndex("", openflow.Flow.Criteria)
	if err := l.eachPrinted(ctx, l.version, have.add); err != nil {
		return err
	}
	counts := l.counts()
	compare := func(flow openflow.Flow) {
		rewritten, _ := openflow.Rewrite(flow.Text)
		if have.has(flow) || have.has(openflow.Flow{Text: rewritten}) {
			counts.Restored++
		} else {
			counts.Different++
		}
	}
	_, err := eachFlow(ctx, l.path(), nil, func(flow openflow.Flow, problem *openflow.Problem) {
		if problem == nil && !counts.IsRejected(flow.Line) {
			compare(flow)
		}
	})
	for _, flow := range l.added {
		compare(flow)
	}
	return err
}
