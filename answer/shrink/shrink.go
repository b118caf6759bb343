// Package shrink finds the smallest northbound database that still gives the same answer to a question about a packet:
// it leaves out parts of the database, lets ovn-northd and the ovn-controllers compute the flows anew, and asks again.
package shrink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/temporary"
	"ovs-offline/internal/versions"
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
	Datapath  string   `json:"datapath,omitempty"`
	Microflow string   `json:"microflow,omitempty"`
	Remarks   []string `json:"remarks,omitempty"`
}

// Binding is a logical port with the node that has its interface.
type Binding struct {
	LogicalPort string `json:"logical_port"`
	Node        string `json:"node"`
}

// ErrNothing is wrapped if the question has no verdict that could be kept.
var ErrNothing = fault.Wrap(fault.Undetermined, errors.New("UNDETERMINED"))

// Question is what a smaller database has to show as the collected one does: the answer about the packet in Trace, or, if
// Log is not "", a message of ovn-northd or of an ovn-controller that contains this text, also that it has ended. It has
// neither a change nor another database.
type Question struct {
	whatif.Question
	Log string
}

// Find finds the smallest database for a question.
func Find(ctx context.Context, question Question) (*Result, error) {
	began := time.Now()
	folder, remove, err := temporary.Folder("ovs-offline-shrink-")
	if err != nil {
		return nil, err
	}
	found, err := find(ctx, question, folder)
	if err = errors.Join(err, remove()); err != nil {
		return nil, err
	}
	found.Seconds = time.Since(began).Seconds()
	return found, nil
}

func find(ctx context.Context, question Question, folder string) (found *Result, err error) {
	plain := filepath.Join(folder, "whole.db")
	if _, _, err := file.Standalone(ctx, question.Deployment.NB, plain); err != nil {
		return nil, err
	}
	whole, err := file.ReadWhole(ctx, plain)
	if err != nil {
		return nil, err
	}
	s := &search{question: question, whole: whole, candidate: filepath.Join(folder, "candidate.db")}
	err = question.Run(ctx, func(session *whatif.Session, _ versions.Pair) error { return s.first(ctx, session) })
	if s.isLogged(err) {
		s.message, err = err.Error(), nil
	}
	if err != nil {
		return nil, err
	}
	s.question.Deployment.Nodes, s.question.Deployment.NB = s.onTheWay(), filepath.Join(folder, "guess.db")
	if s.whole, err = s.guess(ctx); err != nil {
		return nil, err
	}
	if err := s.beginning(ctx); err != nil {
		return nil, err
	}
	err = s.question.Run(ctx, func(session *whatif.Session, running versions.Pair) error {
		s.session, s.running = session, running
		return s.reduce(ctx, whole)
	})
	if err != nil {
		return nil, err
	}
	return s.result(len(whole.Rows("")))
}

// search is the state of a search.
type search struct {
	question  Question
	whole     *file.Whole // the smallest content with the same answer so far
	candidate string      // the path of the database that is tried
	session   *whatif.Session
	running   versions.Pair
	answer    *answer.Answer // to the question, of the collected database; nil for a message
	message   string         // that was looked for
	of        string         // the node whose program logged the message, "" for ovn-northd
	wanted    signature
	steps     int
	refusals  int // databases that the programs did not accept, one after the other
}

// first asks the question of the collected database.
func (s *search) first(ctx context.Context, session *whatif.Session) (err error) {
	s.progress("asking the question of the collected database")
	if s.question.Log != "" {
		return s.firstMessage(ctx, session)
	}
	if s.answer, err = session.Trace(ctx, s.question.Question); err != nil {
		return err
	}
	if s.answer.Verdict == answer.Undetermined {
		return fmt.Errorf("%w: %s", ErrNothing, s.answer.Headline())
	}
	s.wanted = signatureOf(s.answer)
	return nil
}

// onTheWay returns the nodes that the packet and its reply pass, or whose program logged the message.
func (s *search) onTheWay() (nodes []ovn.Node) {
	if s.answer == nil {
		all := s.question.Deployment.Nodes
		i := slices.IndexFunc(all, func(node ovn.Node) bool { return node.Name == s.of })
		return all[max(0, i):][:1]
	}
	for _, node := range s.question.Deployment.Nodes {
		passes := false
		for _, a := range append([]*answer.Answer{s.answer}, returns(s.answer)...) {
			passes = passes || slices.ContainsFunc(a.Path, func(hop answer.Hop) bool { return hop.Node == node.Name }) ||
				slices.ContainsFunc(a.Outcomes, func(o answer.Outcome) bool { return o.Node == node.Name })
		}
		if passes {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func returns(a *answer.Answer) (all []*answer.Answer) {
	if a.Return != nil {
		all = append(all, a.Return)
	}
	return append(all, a.Replies...)
}

func (s *search) progress(format string, args ...any) {
	if s.question.Progress != nil {
		s.question.Progress(fmt.Sprintf(format, args...))
	}
}

// same reports whether a content gives the same answer.
func (s *search) same(ctx context.Context, content *file.Whole) (bool, error) {
	s.steps++
	s.progress("step %d: %d rows of the NB database", s.steps, len(content.Rows("")))
	if err := os.RemoveAll(s.candidate); err != nil {
		return false, err
	}
	if err := content.Write(s.candidate); err != nil {
		return false, err
	}
	if err := s.session.Put(ctx, s.candidate); s.isLogged(err) {
		return true, ctx.Err()
	} else if err != nil {
		return false, s.refused(ctx, err)
	}
	s.refusals = 0
	return s.keeps(ctx)
}

// refused returns nil for an error about a database that the programs don't accept, because the schema does not allow a
// row without a part: that part stays. If one database after the other is refused, something else is wrong.
func (s *search) refused(ctx context.Context, err error) error {
	const several = 10
	if s.refusals++; s.refusals >= several || ctx.Err() != nil {
		return err
	}
	return nil
}

// keeps reports whether the answer is the same with what is computed now.
func (s *search) keeps(ctx context.Context) (bool, error) {
	if s.question.Log != "" {
		return s.keepsMessage(ctx)
	}
	found, err := s.session.Trace(ctx, s.question.Question)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil && signatureOf(found) == s.wanted, nil // a question that can't be asked has another answer
}
