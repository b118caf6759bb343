package trace

import (
	"errors"

	"ovs-offline/answer/trace/answer"
)

// errReplaced is the error of a question during which replicas were lost each time.
var errReplaced = errors.New("the question has no answer: each time that it was asked, a replica was lost and started again meanwhile")

// askUndisturbed asks a question again if a replica was lost and started again meanwhile: the
// new replica does not know the recirculations of the lost one, or has others with the same
// numbers.
func (s *Session) askUndisturbed(ask func() (*answer.Answer, error)) (*answer.Answer, error) {
	const maxTries = 10 // the nodes of a pod are started again one after the other
	for range maxTries {
		before := s.replacements()
		result, err := ask()
		if s.replacements() == before {
			return result, err
		}
	}
	return nil, errReplaced
}

// replacements returns a number that changes when a replica is started again.
func (s *Session) replacements() (sum int) {
	for _, n := range s.nodes {
		sum += n.Replaced()
	}
	return sum
}
