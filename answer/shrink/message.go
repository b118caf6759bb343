package shrink

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/whatif"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
)

// message is what ovn-northd or an ovn-controller logs about a database.
type message struct {
	question *Question
	said     string // with the collected database
	of       string // the node whose ovn-controller said it, "" for ovn-northd
}

func (m *message) before(context.Context) error { return nil }

// noteError notes the message if it is in an error of the daemons: the error that one has ended says why.
func (m *message) noteError(err error) bool {
	is := err != nil && strings.Contains(err.Error(), m.question.Log)
	if is && m.said == "" {
		m.said = err.Error()
	}
	return is
}

// first looks for the message in what the daemons log about the collected database.
func (m *message) first(ctx context.Context, session *whatif.Session) error {
	m.question.progress("reading what is logged about the collected database")
	complaints, err := session.Complaints(ctx)
	if err != nil {
		return err
	}
	found := m.among(complaints)
	if found == nil {
		return fmt.Errorf("%w: neither ovn-northd nor an ovn-controller logs %q about the collected database", ErrNothing, m.question.Log)
	}
	m.said, m.of = found.Text, found.Node
	return nil
}

func (m *message) isShown(ctx context.Context, session *whatif.Session, nb string) (bool, error) {
	complaints, err := session.ComplaintsAbout(ctx, nb)
	return m.among(complaints) != nil, err
}

// among returns the message that contains the text, nil if there is none.
func (m *message) among(complaints []scratch.Complaint) *scratch.Complaint {
	for i := range complaints {
		if strings.Contains(complaints[i].Text, m.question.Log) {
			return &complaints[i]
		}
	}
	return nil
}

func (m *message) text() string { return m.said }

// nodes returns the node whose ovn-controller logged the message, or any one for a message of ovn-northd.
func (m *message) nodes(all []snapshot.Member) []snapshot.Member {
	i := slices.IndexFunc(all, func(node snapshot.Member) bool { return node.Name == m.of })
	return all[max(0, i):][:1]
}

func (m *message) describe(found *Result, _ *file.Whole) {
	found.Question, found.Verdict, found.Headline = "log "+m.question.Log, logged, m.said
}
