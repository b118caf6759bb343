package restore

import (
	"context"
	"regexp"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

var (
	section    = regexp.MustCompile(`^---- (.*) ----$`)
	forwarding = regexp.MustCompile(`^\s+Forwarding: (true|false)`)
)

// sessions is what a record tells of interfaces that the database has, by name.
type sessions struct {
	states map[string]string
	others strangers
}

// restoreBFD gives each session the state in which it forwarded, for want of
// the peers. Where bfd/show was not collected, ovs-vsctl list interface tells.
func restoreBFD(ctx context.Context, n *Node, o *report.Outcome) error {
	told, err := n.recordedBFD()
	if err != nil {
		return err
	}
	record := workdir.RecordedBFD
	if len(told.states)+told.others.count == 0 {
		record = workdir.RecordedListInterface
		if told, err = n.listedBFD(); err != nil {
			return err
		}
	}
	told.others.tell(o, record, "sessions of interfaces")
	return n.setSessions(ctx, "session", "bfd/set-forwarding", told.states, o)
}

// recordedBFD reads bfd/show.
func (n *Node) recordedBFD() (sessions, error) {
	told, has := sessions{states: map[string]string{}}, n.interfaceNames()
	name := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedBFD), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			if name = m[1]; !has[name] {
				told.others.add(name)
			}
		} else if m := forwarding.FindStringSubmatch(line); m != nil && has[name] {
			told.states[name] = m[1]
		}
		return nil
	})
	return told, err
}

// setSessions gives a command for each interface that has a state.
func (n *Node) setSessions(ctx context.Context, what, command string, states map[string]string, o *report.Outcome) error {
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			state := states[i.Name]
			if state == "" {
				continue
			}
			if _, err := n.appctl(ctx, command, i.Name, state); err != nil {
				o.Note(report.Failed, "%s of %q: %v", what, i.Name, err)
			} else {
				o.Note(report.Restored, "")
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// interfaceNames is the set of the interfaces that the database has.
func (n *Node) interfaceNames() map[string]bool {
	names := map[string]bool{}
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			names[i.Name] = true
		}
	}
	return names
}

var listedForwarding = regexp.MustCompile(`\bforwarding="?(true|false)`)

// listedBFD reads bfd_status of ovs-vsctl list interface.
func (n *Node) listedBFD() (sessions, error) {
	told, has := sessions{states: map[string]string{}}, n.interfaceNames()
	status := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedListInterface), func(line string) error {
		column, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(column) {
		case "_uuid":
			status = ""
		case "bfd_status":
			if m := listedForwarding.FindStringSubmatch(value); m != nil {
				status = m[1]
			}
		case "name":
			name := strings.Trim(strings.TrimSpace(value), `"`)
			switch {
			case status == "":
			case has[name]:
				told.states[name] = status
			default:
				told.others.add(name)
			}
		}
		return nil
	})
	return told, err
}
