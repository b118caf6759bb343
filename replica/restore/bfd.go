package restore

import (
	"context"
	"regexp"
	"strings"

	"ovs-offline/internal/workdir"
)

var (
	section    = regexp.MustCompile(`^---- (.*) ----$`)
	forwarding = regexp.MustCompile(`^\s+Forwarding: (true|false)`)
)

// restoreBFD gives each session the state in which it forwarded, for want of
// the peers. Where bfd/show was not collected, ovs-vsctl list interface tells.
func restoreBFD(ctx context.Context, n *Node, o *outcome) error {
	states := map[string]string{}
	name := ""
	ok, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedBFD), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if m := forwarding.FindStringSubmatch(line); m != nil && name != "" {
			states[name] = m[1]
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !ok || len(states) == 0 {
		if states, err = n.listedBFD(); err != nil {
			return err
		}
	}
	for name, state := range states {
		if _, err := n.appctl(ctx, "bfd/set-forwarding", name, state); err != nil {
			o.note(Failed, "session of %q: %v", name, err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		o.note(Restored, "")
	}
	return nil
}

var listedForwarding = regexp.MustCompile(`\bforwarding="?(true|false)`)

// listedBFD reads bfd_status of ovs-vsctl list interface.
func (n *Node) listedBFD() (map[string]string, error) {
	states := map[string]string{}
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
			if status != "" {
				states[strings.Trim(strings.TrimSpace(value), `"`)] = status
			}
		}
		return nil
	})
	return states, err
}
