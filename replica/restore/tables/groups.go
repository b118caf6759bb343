package tables

import (
	"context"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// Groups adds groups, and before them placeholders for the entries of any table
// that flows and groups refer to and that were not collected.
func (t *Tables) Groups(ctx context.Context, o *report.Outcome) error {
	for _, b := range t.Bridges {
		list, err := t.entries(b, workdir.Groups, openflow.Groups)
		if err != nil {
			return err
		}
		version, err := t.Switch.Version(ctx, b.Name)
		if err != nil {
			return err
		}
		if err := t.addPlaceholders(ctx, b, version, list, o); err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		collected := t.dumpVersion(b, workdir.Groups)
		names, err := t.addGroups(ctx, b, version, list)
		if err != nil {
			return err
		}
		back := readBackVersion(b, collected, version)
		if err := t.compare(ctx, b, back, names, workdir.Groups, "dump-groups", openflow.Groups, list); err != nil {
			return err
		}
		o.Note(report.Restored, "")
		// In OpenFlow 1.0 ovs-ofctl dumps groups by Nicira's extension, which holds as much as OpenFlow 1.5.
		isSelect := func(e openflow.Entry) bool { return strings.Contains(e.Text, "type=select") }
		if collected != openflow.OpenFlow10 && collected < openflow.OpenFlow15 && slices.ContainsFunc(list, isSelect) {
			o.Note(report.Approximated, "%s: its groups were dumped in %s, which has no selection methods: the bucket that a trace takes may differ", b.Name, collected)
		}
	}
	return nil
}

// addGroups adds every group that can be added, in any order, because a switch
// takes groups that refer to missing ones, and rejects the others. It returns
// the ovs-ofctl option by which the replica prints the groups as they were
// collected.
func (t *Tables) addGroups(ctx context.Context, b Bridge, version openflow.Version, list []openflow.Entry) (names string, err error) {
	names = NoNames
	p := pusher{
		send: func(ctx context.Context, list []entry) error {
			used, err := t.sendNamed(ctx, b, "add-groups", list)
			if err == nil && used == withNames {
				names = withNames
			}
			return err
		},
		sent: func(g entry) { t.reportRewrite(b, workdir.Groups, g) },
		failed: func(_ context.Context, bad entry, cause error, rest []entry) ([]entry, error) {
			t.Report.Reject(t.item(b, workdir.Groups, bad.line, bad.collected, Reason(cause)))
			return rest, nil
		},
	}
	groups := make([]entry, len(list))
	for i, g := range list {
		groups[i] = entry{line: g.Line, collected: g.Text, version: version}
		groups[i].text, groups[i].rewrites = openflow.Rewrite(g.Text)
	}
	together := len(groups)
	if !hasBundles(version) { // a list could be added in part
		together = 1
	}
	for some := range slices.Chunk(groups, together) {
		if err := p.push(ctx, some); err != nil {
			return "", err
		}
	}
	return names, nil
}
