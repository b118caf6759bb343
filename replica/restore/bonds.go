package restore

import (
	"context"
	"regexp"
	"strings"

	"ovs-offline/internal/workdir"
)

// bond is what bond/show tells of one.
type bond struct {
	name     string
	active   string
	disabled []string
	enabled  []string
	lacp     string
}

// member matches "member p1: enabled"; older versions say slave.
var member = regexp.MustCompile(`^(?:member|slave) (.*): (enabled|disabled)$`)

// restoreBonds gives each bond the members and the active member it had.
func restoreBonds(ctx context.Context, n *Node, o *outcome) error {
	bonds, err := n.recordedBonds()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, b := range bonds {
		known[b.name] = true
		if err := n.restoreBond(ctx, b, o); err != nil {
			return err
		}
	}
	for _, b := range n.Bridges {
		for _, p := range b.Ports {
			if len(p.Interfaces) > 1 && !known[p.Name] {
				o.note(Unknown, "%s: bond %q: no bond/show was collected: all members are enabled", b.Name, p.Name)
			}
		}
	}
	return nil
}

func (n *Node) recordedBonds() ([]bond, error) {
	var bonds []bond
	last := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedBond), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			bonds = append(bonds, bond{name: m[1]})
			return nil
		}
		if len(bonds) == 0 {
			return nil
		}
		b := &bonds[len(bonds)-1]
		if m := member.FindStringSubmatch(line); m != nil {
			last = m[1]
			if m[2] == "enabled" {
				b.enabled = append(b.enabled, last)
			} else {
				b.disabled = append(b.disabled, last)
			}
		}
		if status, ok := strings.CutPrefix(line, "lacp_status: "); ok {
			b.lacp = status
		}
		if text := strings.TrimSpace(line); text == "active member" || text == "active slave" {
			b.active = last
		}
		return nil
	})
	return bonds, err
}

func (n *Node) restoreBond(ctx context.Context, b bond, o *outcome) error {
	do := func(args ...string) error {
		if _, err := n.appctl(ctx, args...); err != nil {
			o.note(Failed, "bond %q: %s: %v", b.name, args[0], err)
		} else {
			o.note(Restored, "")
		}
		return ctx.Err()
	}
	for _, m := range b.enabled {
		if err := do("bond/enable-member", b.name, m); err != nil {
			return err
		}
	}
	for _, m := range b.disabled {
		if err := do("bond/disable-member", b.name, m); err != nil {
			return err
		}
	}
	if b.active != "" {
		if err := do("bond/set-active-member", b.name, b.active); err != nil {
			return err
		}
	}
	if b.lacp == "negotiated" {
		o.note(Approximated, "bond %q had negotiated LACP with a partner that the replica lacks", b.name)
	}
	return nil
}
