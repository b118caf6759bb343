package whatif

import (
	"errors"

	"ovs-offline/trace/answer"
	"ovs-offline/trace/names"
)

// Traces are what becomes of a packet without and with the change. The change can add or
// remove what the question is about, so that one of the answers is nil.
type Traces struct {
	Verdict string         `json:"verdict"` // both, as "UNREACHABLE -> REACHABLE"
	Before  *answer.Answer `json:"before"`
	After   *answer.Answer `json:"after"`
	// BeforeProblem and AfterProblem say why there is no answer.
	BeforeProblem string `json:"before_problem,omitempty"`
	AfterProblem  string `json:"after_problem,omitempty"`
}

// IsIncomplete reports whether something is missing to know what becomes of the packet.
func (t *Traces) IsIncomplete() bool {
	return t.Before != nil && t.Before.IsIncomplete() || t.After != nil && t.After.IsIncomplete()
}

// side is an answer without or with the change, or why there is none.
type side struct {
	answer *answer.Answer
	err    error
}

// traces joins the answers without and with the change. The error is that of a packet that
// neither has, or of one that could not be followed.
func traces(before, after side) (*Traces, error) {
	t := &Traces{Verdict: before.verdict() + " -> " + after.verdict(), Before: before.answer, After: after.answer,
		BeforeProblem: before.problem(), AfterProblem: after.problem()}
	switch {
	case before.err != nil && before.lacks() == "":
		return t, before.err
	case after.err != nil && (after.lacks() == "" || before.err != nil):
		return t, after.err
	}
	return t, nil
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

// lacks says what the deployment lacks for the question, "" for an error of another kind.
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
