// Package reach answers who reaches whom: it groups the endpoints of running replicas by
// what decides about their packets, and asks a trace for each pair of groups and each port.
package reach

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"ovs-offline/answer/trace"
	"ovs-offline/internal/fault"
)

// By is the property by which endpoints are grouped.
type By string

// The ways to group endpoints.
const (
	ByNamespace By = "namespace" // of Kubernetes
	ByGroup     By = "group"     // the port groups of a port: security groups, policies
	ByNetwork   By = "network"   // the logical switch, by the name that a user gave
	ByPort      By = "port"      // each endpoint by itself
)

// Options select what is asked.
type Options struct {
	By       By     // "" for the one that fits the deployment
	Each     bool   // ask every member, not one of each node
	Ports    []Port // none: ICMP, and the ports of ACLs and load balancers
	From, To []string
	Nodes    []string // of the senders; empty for all
	// Services adds the VIPs of load balancers, and External addresses outside, to the
	// destinations.
	Services bool
	External []string
	Family   int // 4 or 6; 0 for the one that both endpoints have, IPv4 first
	// Rules makes a comparison list pairs whose deciding rule or reason changed too, not the verdict
	// alone.
	Rules bool
}

// Matrix is a table of questions: who is asked about, and with what.
type Matrix struct {
	By        By       `json:"by"`
	From      []Group  `json:"from"`
	To        []Group  `json:"to"`
	Ports     []Port   `json:"ports"`
	Family    int      `json:"family,omitempty"` // that was asked for: 4 or 6
	Remarks   []string `json:"remarks,omitempty"`
	Questions int      `json:"questions"` // the number of questions

	sessions []*trace.Session
	each     bool
	few      bool // at most two pairs for a cell
	chosen   bool // the user chose the groups
}

// New returns the matrix of the endpoints of a session.
func New(ctx context.Context, session *trace.Session, options Options) (*Matrix, error) {
	return newMatrix(ctx, options, session)
}

// newMatrix returns the matrix of the endpoints that all sessions have.
func newMatrix(ctx context.Context, options Options, sessions ...*trace.Session) (*Matrix, error) {
	matrix := &Matrix{sessions: sessions, each: options.Each, chosen: len(options.From)+len(options.To) > 0, By: options.By, Ports: options.Ports, Family: options.Family}
	var views []*view
	for _, session := range sessions {
		view, err := newView(ctx, session.Northbound(), session.Names())
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	if matrix.By == "" {
		matrix.By = views[len(views)-1].fitting()
	}
	if len(matrix.Ports) == 0 {
		matrix.Ports = portsOf(views)
	}
	all, remarks := groups(views, matrix.By)
	matrix.Remarks = remarks
	to := slices.Clone(all)
	if options.Services {
		to = append(to, services(views)...)
	}
	outside, err := external(options.External, len(views))
	if err != nil {
		return nil, err
	}
	if matrix.From, err = chosen(all, options.From); err != nil {
		return nil, err
	}
	matrix.From, remarks = senders(onNodes(matrix.From, options.Nodes))
	matrix.Remarks = append(matrix.Remarks, remarks...)
	if matrix.To, err = chosen(to, options.To); err != nil {
		return nil, err
	}
	matrix.To = append(matrix.To, outside...)
	matrix.Remarks = append(matrix.Remarks, matrix.remarkApart()...)
	matrix.choose()
	return matrix, nil
}

// manyQuestions is the number of questions above which a cell asks about two of its pairs
// only: two cores answer some 500 questions in a second.
const manyQuestions = 50_000

// choose chooses the members that are asked, and counts the questions.
func (m *Matrix) choose() {
	m.count()
	if m.Questions > manyQuestions && !m.each {
		all := m.Questions
		m.few = true
		m.count()
		m.Remarks = append(m.Remarks, fmt.Sprintf("two pairs of members at most are asked about each pair of groups, since one for each node would be %d questions: "+
			"what differs between nodes shows in some cells only", all))
	}
	for _, list := range [][]Group{m.From, m.To} {
		for i := range list {
			list[i].describe(m.each)
		}
	}
}

func (m *Matrix) count() {
	m.Questions = 0
	for row := range m.From {
		for column, to := range m.To {
			m.Questions += len(m.pairs(row, column)) * len(to.portsOf(m.Ports))
		}
	}
}

// isApart reports whether nothing is asked about two groups because they are in different networks, one of
// which is secondary at least.
func (m *Matrix) isApart(row, column int) bool {
	return !m.chosen && !m.To[column].outside && m.From[row].secondary != m.To[column].secondary
}

// remarkApart returns a sentence about the endpoints in secondary networks, nil if they are asked about all.
func (m *Matrix) remarkApart() []string {
	var members []string
	for _, group := range m.From {
		if group.secondary != "" && !m.chosen {
			members = append(members, group.memberNames()...)
		}
	}
	return remark("are in secondary networks, which have no gateway, and are asked about their own network alone (--from or --to ask about the others)", members)
}

// pairs returns the pairs that are asked about two groups, by their indexes in From and To.
func (m *Matrix) pairs(row, column int) []pair {
	if m.isApart(row, column) {
		return nil
	}
	all := pairs(m.From[row], m.To[column], m.each)
	if !m.few || len(all) <= 2 {
		return all
	}
	return []pair{all[0], all[1+(row+column)%(len(all)-1)]}
}

// Cells asks the questions and yields the answers, row by row. It ends early if ctx does.
func (m *Matrix) Cells(ctx context.Context) iter.Seq[Cell] { return m.cells(ctx, 0) }

// cells asks the questions in one of the sessions.
func (m *Matrix) cells(ctx context.Context, at int) iter.Seq[Cell] {
	return func(yield func(Cell) bool) {
		next, stop := iter.Pull(m.sessions[at].AskAll(ctx, m.questions(at)))
		defer stop()
		for row, from := range m.From {
			for column, to := range m.To {
				asked := m.pairs(row, column)
				if len(asked) == 0 {
					continue
				}
				for _, port := range to.portsOf(m.Ports) {
					cell := Cell{From: from.Name, To: to.Name, Port: port, Row: row, Column: column}
					for _, pair := range asked {
						a, ok := next()
						if !ok {
							return
						}
						cell.add(pair, a)
					}
					if !yield(cell) {
						return
					}
				}
			}
		}
	}
}

// questions yields the questions of a session in the order of Cells.
func (m *Matrix) questions(at int) iter.Seq[trace.Between] {
	return func(yield func(trace.Between) bool) {
		for row := range m.From {
			for column, to := range m.To {
				asked := m.pairs(row, column)
				for _, port := range to.portsOf(m.Ports) {
					for _, pair := range asked {
						between := trace.Between{From: pair.from.names[at], To: pair.to.names[at]}
						between.Protocol, between.DstPort, between.Family = port.Protocol, port.Number, m.Family
						if !yield(between) {
							return
						}
					}
				}
			}
		}
	}
}

// UnknownError is the error for a pattern that no group and no endpoint matches.
type UnknownError struct{ Pattern string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no group and no endpoint matches %q", e.Pattern)
}

// Class returns that the question is wrong.
func (e *UnknownError) Class() fault.Class { return fault.Usage }
