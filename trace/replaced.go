package trace

import (
	"errors"

	"ovs-offline/trace/answer"
)

// errReplaced is the error of a question during which replicas were lost each time.
var errReplaced = errors.New("the question has no answer: each time that it was asked, a replica was lost and started anew meanwhile")

// whole asks a question again if a replica was lost and started anew meanwhile: the other
// replica does not know the recirculations of the lost one, or has other ones of the same
// numbers.
func (s *Session) whole(ask func() (*answer.Answer, error)) (*answer.Answer, error) {
	const most = 10 // the nodes of a pod are started anew one after the other
	for range most {
		before := s.replaced()
		a, err := ask()
		if s.replaced() == before {
			return a, err
		}
	}
	return nil, errReplaced
}

// replaced returns a number that changes when a replica is started anew.
func (s *Session) replaced() (sum int) {
	for _, n := range s.nodes {
		sum += n.Replaced()
	}
	return sum
}
