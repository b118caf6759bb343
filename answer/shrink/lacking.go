package shrink

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/drift"
	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// lacking is an entry that drift finds missing or altered on a node. A database shows it if OVN computes the entry from it.
type lacking struct {
	question *Question
	node     snapshot.Member
	wanted   *drift.Wanted
	content  string          // of the entry, as flowdiff.Names.Content has it; "" for a logical flow
	logical  string          // the logical flow that the entry was made from last, as ovn-sbctl lflow-list prints it; "" for none
	attached map[string]bool // logical ports that have an interface on the node
	remarks  []string
}

func (l *lacking) noteError(error) bool { return false }

// before compares the nodes, one after the other, until one lacks such an entry.
func (l *lacking) before(ctx context.Context) error {
	var said []string
	for _, node := range l.question.Deployment.Nodes {
		report, err := drift.Check(ctx, node.Dir, drift.Options{Runtime: l.question.Runtime, Runtimes: l.question.Runtimes, Northd: true, Chosen: l.question.Chosen,
			Progress: func(text string) { l.question.progress("%s: %s", node.Name, text) }})
		if err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
		if l.wanted = report.Wanted(l.question.Drift); l.wanted != nil {
			l.node = node
			l.remark(report)
			l.attached, err = attachedTo(ctx, node)
			return err
		}
		said = append(said, node.Name+": "+report.Summary())
	}
	return fmt.Errorf("%w: drift finds no missing or altered entry with %q (an extra one is computed from no database): %s", ErrNothing, l.question.Drift, strings.Join(said, "; "))
}

// remark notes what the databases do not say about the entry.
func (l *lacking) remark(report *drift.Report) {
	l.remarks = slices.Concat(report.Doubts, report.Remarks)
	if slices.Contains([]string{"MAC_Binding", "FDB", "ECMP_Nexthop"}, l.wanted.Row) {
		l.remarks = append(l.remarks, fmt.Sprintf("the flow is made from a row of %s of the SB database, which the commands do not make", l.wanted.Row))
	}
}

// first finds the entry among what is computed from the collected databases.
func (l *lacking) first(_ context.Context, session *whatif.Session) error {
	entry := l.wanted.Entry
	if entry.Kind != flowdiff.KindLogicalFlow {
		_, names, err := session.Installed(l.node.Name)
		if err != nil {
			return err
		}
		l.content = names.Content(entry.Kind, entry.Computed)
	}
	is, err := l.isComputed(session)
	if err == nil && !is {
		err = fmt.Errorf("%w: %s is computed from the SB database of the node, and not from its NB database: drift --northd compares these", ErrNothing, entry.Computed)
	}
	return err
}

// isShown reports whether the daemons compute the entry from another NB database.
func (l *lacking) isShown(ctx context.Context, session *whatif.Session, nb string) (bool, error) {
	if err := session.Put(ctx, nb); err != nil {
		return false, err
	}
	return l.isComputed(session)
}

// isComputed reports whether the daemons have computed the entry now, and notes the logical flow that it is made from.
func (l *lacking) isComputed(session *whatif.Session) (bool, error) {
	uuid, isThere, err := l.find(session)
	if err != nil || uuid == "" {
		return isThere, err
	}
	row, _, err := session.SB().Row(ovn.LogicalFlowTable, uuid)
	l.logical = fmt.Sprintf("match=(%s), action=(%s)", row.String("match"), row.String("actions"))
	return true, err
}

// find reports whether the entry is there now, and returns the UUID of the logical flow that it is made from, "" for none.
func (l *lacking) find(session *whatif.Session) (uuid string, isThere bool, err error) {
	entry := l.wanted.Entry
	if entry.Kind == flowdiff.KindLogicalFlow {
		uuid, err = entry.LogicalIn(session.SB())
		return uuid, uuid != "", err
	}
	state, names, err := session.Installed(l.node.Name)
	if err != nil {
		return "", false, err
	}
	flow := names.Find(state, entry.Kind, l.content)
	if flow == "" {
		return "", false, nil
	}
	cause, _, err := names.CauseOf(flow)
	if cause.Row == ovn.LogicalFlowTable {
		uuid = cause.UUID
	}
	return uuid, true, err
}

func (l *lacking) text() string {
	return strings.Join([]string{l.wanted.NorthboundUUID, l.wanted.Name, l.wanted.String(), l.content, l.logical}, "\n")
}

func (l *lacking) nodes([]snapshot.Member) []snapshot.Member { return []snapshot.Member{l.node} }

func (l *lacking) describe(found *Result, smallest *file.Whole) {
	entry, who := l.wanted.Entry, l.node.Name
	if entry.Kind == flowdiff.KindLogicalFlow {
		who = "the SB database of " + who
	}
	found.Headline = fmt.Sprintf("%s lacks a %s that OVN computes", who, entry.Kind)
	if entry.Recorded != "" {
		found.Headline = fmt.Sprintf("%s has another %s than OVN computes", who, entry.Kind)
	}
	found.Question, found.Verdict, found.Rule = "drift "+l.question.Drift, drifted, l.wanted.What
	found.Flow, found.LogicalFlow = l.content, l.logical
	found.Remarks = append(found.Remarks, l.remarks...)
	found.bind(smallest, func(port string) string {
		if l.attached[port] {
			return l.node.Name
		}
		return ""
	})
}

// attachedTo returns the logical ports that have an interface on a node.
func attachedTo(ctx context.Context, node snapshot.Member) (map[string]bool, error) {
	index, err := node.Dir.Index(ctx, node.Dir.SwitchDatabase())
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node.Name, err)
	}
	defer index.Close()
	ports := map[string]bool{}
	for row, err := range index.Rows("Interface", "external_ids") {
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", node.Name, err)
		}
		if id := row.Map("external_ids")["iface-id"]; id != "" {
			ports[id] = true
		}
	}
	return ports, nil
}
