package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/drift"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/phrase"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// drift compares the flows of each node with what OVN computes.
func (m *maker) drift(ctx context.Context) error {
	m.options.Progress("comparing flows with what OVN computes")
	outcomes := snapshot.Each(ctx, m.snapshot, func(ctx context.Context, n *snapshot.Node, wd *workdir.Dir) (*drift.Report, error) {
		return m.options.Programs.Drift(ctx, wd, func(text string) { m.options.Progress("%s: %s", n.Name, text) })
	})
	for i, outcome := range outcomes {
		if outcome.Err == nil {
			m.Nodes[i].Drift, m.Nodes[i].Drifted = bounded(outcome.Value), outcome.Value.Summary()
			m.failed = m.failed || outcome.Value.Verdict == drift.Undetermined || len(outcome.Value.Doubts) > 0
		}
	}
	return errors.Join(snapshot.Failures(m.snapshot, outcomes)...)
}

// maxDifferences bounds the entries of a difference, of which a page shows the first.
const maxDifferences = 100

// bounded returns a report whose differences have their first entries only. They say how many they are.
func bounded(r *drift.Report) *drift.Report {
	for _, list := range [][]drift.Difference{r.Missing, r.Extra, r.Altered, r.Either, r.Changing} {
		for i := range list {
			list[i].Entries = list[i].Entries[:min(maxDifferences, len(list[i].Entries))]
		}
	}
	return r
}

// ask asks the running replicas: who reaches whom, and the questions of the user.
func (m *maker) ask(ctx context.Context) error {
	session, err := trace.OpenSet(ctx, m.snapshot, trace.Options{})
	if err != nil && !slices.ContainsFunc(joinedIn(err), func(one error) bool { return !isUnavailable(one) }) {
		m.notRunning(err)
		return nil
	}
	if err != nil {
		return err
	}
	defer session.Close()
	m.failed = m.failed || len(session.Doubts()) > 0
	m.Remarks = append(m.Remarks, session.Doubts()...)
	m.Remarks = append(m.Remarks, session.Remarks()...)
	if err := m.traces(ctx, session); err != nil {
		return err
	}
	defer m.someNotRunning(session)
	return m.matrix(ctx, session)
}

// notRunning notes that no replica can be asked.
func (m *maker) notRunning(err error) {
	why, next := reasonOf(err), m.options.Call.Line("", "start")
	m.Absent = append(m.Absent, Absent{Part: partMatrix, Why: why, Next: next})
	if len(m.options.Checks) > 0 {
		m.failed = true
		m.Absent = append(m.Absent, Absent{Part: "Traces", Why: why, Next: next})
	}
}

// someNotRunning notes the nodes of a session whose replicas could not be asked.
func (m *maker) someNotRunning(session *trace.Session) {
	var errs []error
	for _, down := range session.Unavailable() {
		errs = append(errs, down)
	}
	if len(errs) > 0 {
		m.failed = true
		m.Absent = append(m.Absent, Absent{Part: partMatrix, Why: reasonOf(errors.Join(errs...)) + "; verdicts that depend on them are UNDETERMINED", Next: m.options.Call.Line("", "start")})
	}
}

// partMatrix is the heading of the matrix.
const partMatrix = "Who reaches whom"

// isUnavailable reports whether an error says that a replica can't be asked.
func isUnavailable(err error) bool {
	_, down := errors.AsType[*host.UnavailableError](err)
	return down
}

// joinedIn returns the errors that an error joins, or that error.
func joinedIn(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// reasonOf returns the causes of an error, each once, with the nodes whose replicas can't be asked for it.
func reasonOf(err error) string {
	var causes []string
	nodes := map[string][]string{}
	for _, one := range joinedIn(err) {
		cause, node := one.Error(), ""
		if down, ok := errors.AsType[*host.UnavailableError](one); ok {
			cause, node = down.Cause.Error(), down.Node
		}
		if !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
		if node != "" {
			nodes[cause] = append(nodes[cause], node)
		}
	}
	for i, cause := range causes {
		if names := nodes[cause]; len(names) > 0 {
			causes[i] = "on " + phrase.FirstNames(names) + ": " + cause
		}
	}
	return strings.Join(causes, "; ")
}

func (m *maker) traces(ctx context.Context, session *trace.Session) error {
	for checked := range session.Run(ctx, slices.Values(m.options.Checks)) {
		shown := Trace{Question: checked.Question(), Expected: string(checked.Expect), Passed: checked.Passed(), Error: checked.Error}
		if checked.Answer != nil {
			shown.Verdict, shown.Headline = string(checked.Answer.Verdict), checked.Answer.Headline()
			shown.Element = fmt.Sprintf("trace-%d", len(m.Traces))
		}
		m.failed = m.failed || checked.Answer == nil
		m.Traces, m.answers = append(m.Traces, shown), append(m.answers, withoutRaw(checked.Answer))
		m.options.Progress("asked %d of %d questions of the user", len(m.Traces), len(m.options.Checks))
	}
	return ctx.Err()
}

// withoutRaw returns an answer without what ofproto/trace printed, which is the largest part of it.
func withoutRaw(a *answer.Answer) *answer.Answer {
	for shown := a; shown != nil; shown = shown.Return {
		for i := range shown.Path {
			shown.Path[i].Raw = ""
		}
	}
	return a
}

// maxQuestions bounds the questions of the matrix: two cores answer some 500 in a second.
const maxQuestions = 20_000

// matrix asks who reaches whom.
func (m *maker) matrix(ctx context.Context, session *trace.Session) error {
	matrix, err := reach.New(ctx, session, reach.Options{Services: true})
	if err != nil {
		return err
	}
	if matrix.Questions > maxQuestions {
		m.Absent = append(m.Absent, Absent{Part: partMatrix, Why: fmt.Sprintf("%d questions are too many for this page", matrix.Questions), Next: m.options.Call.Line("", "reach", "-o", "html")})
		return nil
	}
	document := &reach.Document{Matrix: matrix, Cells: []reach.Cell{}}
	for cell := range matrix.Cells(ctx) {
		document.Count(cell)
		document.Cells = append(document.Cells, cell)
		m.options.Progress("who reaches whom: asked %d of %d questions", document.Answered, matrix.Questions)
	}
	m.Matrix = document
	return ctx.Err()
}
