// Package bisect finds since when a packet has its verdict, and which transaction of the OVN NB database changed it: it
// computes the flows of the nodes from the states that the database's log holds, and halves between them.
package bisect

import (
	"context"
	"fmt"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// Document is the answer to bisect, as `bisect -o json` prints it.
type Document struct {
	Question string `json:"question"`
	// Verdict is the verdict of trace with the collected databases, or what these lack, as "no such endpoint".
	Verdict string `json:"verdict"`
	// Changes lists the transactions that changed the verdict, the newest first.
	Changes []Change `json:"changes"`
	// Begins is the time of the oldest state that was looked at.
	Begins time.Time `json:"begins,omitzero"`
	// States is the number of states in the log that can have different verdicts. For Computed of them the verdict was computed;
	// Logical more were compared with these by ovn-trace.
	States   int           `json:"states"`
	Computed int           `json:"computed"`
	Logical  int           `json:"logical"`
	Running  versions.Pair `json:"running"` // the versions that computed the flows
	Remarks  []string      `json:"remarks,omitempty"`
}

// Change is a transaction that changed the verdict.
type Change struct {
	Before Side           `json:"before"`
	After  Side           `json:"after"`
	Event  *history.Event `json:"event"`
}

// Side is what happens to the packet before or after a transaction.
type Side struct {
	Verdict string         `json:"verdict"`
	Trace   *answer.Answer `json:"trace"` // nil if the databases lack what the question names
}

// line returns the verdict, and where the packet ends.
func (s Side) line() string {
	if s.Trace == nil {
		return s.Verdict
	}
	return s.Verdict + ": " + s.Trace.Headline()
}

// notComputed is the verdict of a state from which the daemons compute no flows, as of one before ovn-northd has begun.
const notComputed = "not computed"

// isUnknown reports whether the verdict is not known.
func (s Side) isUnknown() bool {
	return s.Verdict == notComputed || s.Trace != nil && s.Trace.IsIncomplete()
}

// IsIncomplete reports whether a verdict that decides the answer is not known.
func (d *Document) IsIncomplete() bool {
	for _, c := range d.Changes {
		if c.Before.isUnknown() || c.After.isUnknown() {
			return true
		}
	}
	return d.Verdict == string(answer.Undetermined)
}

// Run finds the changes of the verdict about the packet of a question. Its daemons run below the workdir of the first node,
// and end before it returns.
func Run(ctx context.Context, question whatif.Question) (d *Document, err error) {
	states, remarks, err := statesOf(ctx, question.Deployment.NB)
	if err != nil {
		return nil, err
	}
	d = &Document{Question: question.Trace.From + " -> " + question.Trace.To, States: len(states), Begins: states[0].Time,
		Remarks: append(question.Deployment.Remarks, remarks...), Changes: []Change{}}
	return d, question.Run(ctx, func(session *whatif.Session, running versions.Pair) error {
		s := &search{session: session, question: question, states: states, known: map[int]Side{}, logical: map[logicalKey]string{}, seen: map[int]bool{}}
		d.Running = running
		err := s.all(ctx)
		d.Computed, d.Logical = len(s.known), s.logicalOnly()
		d.Verdict = s.known[len(states)-1].Verdict
		d.Changes = append(d.Changes, s.changes()...)
		d.Remarks = append(d.Remarks, s.remarks...)
		return err
	})
}

// statesOf returns the transactions of a database that can change what becomes of a packet, the oldest first. The first one
// is the state with which the log begins, or to which it was last converted.
func statesOf(ctx context.Context, path string) (states []*history.Event, remarks []string, err error) {
	source := history.Source{Title: workdir.NB.Title(), Schema: ovsdb.NB, File: path}
	results, err := history.Read(ctx, []history.Source{source}, history.Query{Brief: true}, func(event *history.Event) error {
		switch {
		case event.Schema != "":
			states = []*history.Event{event}
			remarks = []string{fmt.Sprintf("what was before the conversion to schema %s is not looked at", event.Schema)}
		case len(states) == 0 || event.Base || len(keysOf(event)) > 0:
			states = append(states, event)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(states) == 0 {
		return nil, nil, fmt.Errorf("%w: the OVN NB database has no transactions", whatif.ErrUndetermined)
	}
	for _, result := range results {
		remarks = append(remarks, result.Remarks...)
	}
	return states, remarks, nil
}
