package shrink

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/answer/whatif"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/replica/scratch"
)

// isLogged reports whether an error of daemons is the message that is looked for: one that has ended says why.
func (s *search) isLogged(err error) bool {
	return err != nil && s.question.Log != "" && strings.Contains(err.Error(), s.question.Log)
}

// firstMessage looks for the message in what the daemons log about the collected database.
func (s *search) firstMessage(ctx context.Context, session *whatif.Session) error {
	found, err := s.logged(ctx, session)
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("%w: neither ovn-northd nor an ovn-controller logs %q about the collected database", ErrNothing, s.question.Log)
	}
	s.message, s.of = found.Text, found.Node
	return nil
}

// keepsMessage reports whether a program logs the message now.
func (s *search) keepsMessage(ctx context.Context) (bool, error) {
	found, err := s.logged(ctx, s.session)
	if s.isLogged(err) {
		return true, ctx.Err()
	}
	if err != nil {
		return false, s.refused(ctx, err)
	}
	return found != nil, nil
}

// logged returns the message that contains the text, nil if there is none.
func (s *search) logged(ctx context.Context, session *whatif.Session) (*scratch.Complaint, error) {
	complaints, err := session.Complaints(ctx)
	for i := range complaints {
		if strings.Contains(complaints[i].Text, s.question.Log) {
			return &complaints[i], err
		}
	}
	return nil, err
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
