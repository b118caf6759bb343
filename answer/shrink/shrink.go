// Package shrink finds the smallest northbound database that still gives the same answer to a question about a packet:
// it leaves out parts of the database, lets ovn-northd and the ovn-controllers compute the flows anew, and asks again.
package shrink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/answer/whatif"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/temporary"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// Result is the smallest database that was found.
type Result struct {
	Question string        `json:"question"`
	Verdict  string        `json:"verdict"`
	Headline string        `json:"headline"`
	Rule     string        `json:"rule,omitempty"`   // that decides, in the user's words
	Packet   string        `json:"packet,omitempty"` // for people
	Running  versions.Pair `json:"running"`
	// Rows and Kept are the numbers of rows of the database, and of the smallest one.
	Rows int `json:"rows"`
	Kept int `json:"kept"`
	// Steps is the number of databases that were tried.
	Steps int `json:"steps"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Commands are the runs of ovn-nbctl that make the database.
	Commands [][]string `json:"commands"`
	// Bindings are the logical ports of the packet's way with the nodes that have them.
	Bindings []Binding `json:"bindings"`
	// Microflow is the packet in the words of ovn-trace(8), and Datapath the switch that it enters; "" for a packet
	// that enters elsewhere.
	Datapath  string `json:"datapath,omitempty"`
	Microflow string `json:"microflow,omitempty"`
	// Flow is the flow, group or meter that drift finds, with names in the place of keys, and LogicalFlow the logical flow that
	// it is made from, as ovn-sbctl lflow-list prints its match and actions.
	Flow        string   `json:"flow,omitempty"`
	LogicalFlow string   `json:"logical_flow,omitempty"`
	Remarks     []string `json:"remarks,omitempty"`
}

// Binding is a logical port with the node that has its interface.
type Binding struct {
	LogicalPort string `json:"logical_port"`
	Node        string `json:"node"`
}

// ErrNothing is wrapped if the question has no verdict that could be kept.
var ErrNothing = fault.Wrap(fault.Undetermined, errors.New("UNDETERMINED"))

// Question says what a smaller database has to show. Exactly one of Trace, Log and Drift is set, and Change and NB are not.
type Question struct {
	whatif.Question // Trace asks for the same answer about a packet
	// Log is a part of a message that ovn-northd or an ovn-controller logs, or of the error that one of them has ended.
	Log string
	// Drift is a part of an entry that drift finds missing or altered on a node, or of its cause.
	Drift string
}

// shown is what each smaller database has to show: an answer, a message, or an entry that a node lacks.
type shown interface {
	// before prepares for the collected database: no daemon runs yet.
	before(ctx context.Context) error
	// first notes what the collected database shows; an error wraps ErrNothing if that is nothing to keep.
	first(ctx context.Context, session *whatif.Session) error
	// isShown puts another NB database into the session, and reports whether it shows the same.
	isShown(ctx context.Context, session *whatif.Session, nb string) (bool, error)
	// noteError notes an error of the daemons that shows the same, as a message about their end does, and reports whether it does.
	noteError(err error) bool
	// text returns a text with the names and UUIDs of rows that the smallest database is likely to need.
	text() string
	// nodes returns the nodes whose flows have to be computed.
	nodes(all []snapshot.Member) []snapshot.Member
	// describe adds to a result what the smallest database shows.
	describe(found *Result, smallest *file.Whole)
}

// shown returns what the question asks to keep.
func (q *Question) shown() shown {
	switch {
	case q.Log != "":
		return &message{question: q}
	case q.Drift != "":
		return &lacking{question: q}
	}
	return &packet{question: q}
}

// Find finds the smallest database for a question.
func Find(ctx context.Context, question Question) (*Result, error) {
	began := time.Now()
	folder, remove, err := temporary.Folder("shrink")
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, &question, folder)
	if err = errors.Join(err, remove()); err != nil {
		return nil, err
	}
	found.Seconds = time.Since(began).Seconds()
	return found, nil
}

func find(ctx context.Context, question *Question, folder string) (found *Result, err error) {
	plain := filepath.Join(folder, "whole.db")
	if _, _, err := file.Standalone(ctx, question.Deployment.NB, plain); err != nil {
		return nil, err
	}
	whole, err := file.ReadWhole(ctx, plain)
	if err != nil {
		return nil, err
	}
	s := &search{question: question, shown: question.shown(), whole: whole, candidate: filepath.Join(folder, "candidate.db")}
	if err := s.before(ctx); err != nil {
		return nil, err
	}
	err = question.Run(ctx, func(session *whatif.Session, _ versions.Pair) error { return s.first(ctx, session) })
	if err != nil && !s.noteError(err) {
		return nil, err
	}
	question.Deployment.Nodes, question.Deployment.NB = s.nodes(question.Deployment.Nodes), filepath.Join(folder, "guess.db")
	if s.whole, err = s.guess(ctx); err != nil {
		return nil, err
	}
	if err := s.beginning(ctx); err != nil {
		return nil, err
	}
	err = question.Run(ctx, func(session *whatif.Session, running versions.Pair) error {
		s.session, s.running = session, running
		return s.reduce(ctx, whole)
	})
	if err != nil {
		return nil, err
	}
	return s.result(len(whole.Rows(""))), nil
}

// search is the state of a search.
type search struct {
	shown
	question  *Question
	whole     *file.Whole // the smallest content that shows it so far
	candidate string      // the path of the database that is tried
	session   *whatif.Session
	running   versions.Pair
	steps     int
	refusals  int // databases that the programs did not accept, one after the other
}

// beginning writes the database with which the daemons begin: that of the guess. With one for which a daemon ends, there
// would be no session, so for a message it has nothing but the row of NB_Global.
func (s *search) beginning(ctx context.Context) error {
	first := s.whole
	if s.question.Log != "" {
		removed := map[file.Part]bool{}
		for _, row := range s.whole.Rows("") {
			removed[row] = !isAlways(row)
		}
		var err error
		if first, err = s.whole.Without(ctx, removed); err != nil {
			return err
		}
	}
	return first.Write(s.question.Deployment.NB)
}

func (q *Question) progress(format string, args ...any) {
	if q.Progress != nil {
		q.Progress(fmt.Sprintf(format, args...))
	}
}

// same reports whether a content shows the same as the collected one.
func (s *search) same(ctx context.Context, content *file.Whole) (bool, error) {
	s.steps++
	s.question.progress("step %d: %d rows of the NB database", s.steps, len(content.Rows("")))
	if err := os.RemoveAll(s.candidate); err != nil {
		return false, err
	}
	if err := content.Write(s.candidate); err != nil {
		return false, err
	}
	shows, err := s.isShown(ctx, s.session, s.candidate)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case s.noteError(err):
		return true, nil
	case err != nil:
		return false, s.refused(err)
	}
	s.refusals = 0
	return shows, nil
}

// refused returns nil for an error about a database that the programs don't accept, because the schema does not allow a
// row without a part: that part stays. If one database after the other is refused, something else is wrong.
func (s *search) refused(err error) error {
	const several = 10
	if s.refusals++; s.refusals >= several {
		return err
	}
	return nil
}
