package whatif

import (
	"errors"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
)

// Traces are the answers to a question about a packet without and with the change. The change can add
// or remove what the question is about, so that one of the answers is nil.
type Traces struct {
	Verdict string         `json:"verdict"` // both, as "UNREACHABLE -> REACHABLE"
	Before  *answer.Answer `json:"before"`
	After   *answer.Answer `json:"after"`
	// BeforeProblem and AfterProblem are the reasons why there is no answer.
	BeforeProblem string `json:"before_problem,omitempty"`
	AfterProblem  string `json:"after_problem,omitempty"`
}

// IsIncomplete reports whether something is missing to know where the packet ends.
func (t *Traces) IsIncomplete() bool {
	return t.Before != nil && t.Before.IsIncomplete() || t.After != nil && t.After.IsIncomplete()
}

// side is an answer without or with the change, or the reason why there is none.
type side struct {
	answer *answer.Answer
	err    error
}

// joinTraces joins the answers without and with the change. It returns an error if neither side has
// such a packet, or if one could not be followed.
func joinTraces(before, after side) (*Traces, error) {
	both := &Traces{Verdict: before.verdict() + " -> " + after.verdict(), Before: before.answer, After: after.answer,
		BeforeProblem: before.problem(), AfterProblem: after.problem()}
	switch {
	case before.err != nil && before.lacks() == "":
		return both, before.err
	case after.err != nil && (after.lacks() == "" || before.err != nil):
		return both, after.err
	}
	return both, nil
}

func (s side) verdict() string {
	if s.answer != nil {
		return string(s.answer.Verdict)
	}
	if text := s.lacks(); text != "" {
		return text
	}
	return "not known"
}

func (s side) problem() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

// lacks names what the deployment lacks for the question, "" for an error of another kind.
func (s side) lacks() string {
	var unknown *names.UnknownError
	var ambiguous *names.AmbiguousError
	var protocol *names.ProtocolError
	switch {
	case errors.As(s.err, &unknown):
		return "no such endpoint"
	case errors.As(s.err, &ambiguous):
		return "several such endpoints"
	case errors.As(s.err, &protocol):
		return "no such service"
	case errors.Is(s.err, names.ErrNotBound):
		return "not bound"
	case errors.Is(s.err, names.ErrFamily):
		return "no such address"
	case errors.Is(s.err, names.ErrNotSender), errors.Is(s.err, names.ErrNoEntry):
		return "no such packet"
	}
	return ""
}
