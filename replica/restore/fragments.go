package restore

import (
	"context"
	"strings"

	"ovs-offline/replica/report"
)

// restoreFragments sets how a bridge handles IP fragments: no database holds
// it, ovs-ofctl show tells it (ovs-ofctl(8), set-frags).
func restoreFragments(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		show, _, err := n.show(b)
		if err != nil {
			return err
		}
		if show.Fragments == "" || show.Fragments == "normal" {
			continue
		}
		version, err := n.speaks(ctx, b)
		if err != nil {
			return err
		}
		if _, err := n.ofctl(ctx, nil, version, b, "set-frags", show.Fragments); err != nil {
			o.Note(report.Failed, "%s: fragments %q: %v", b.Name, show.Fragments, err)
			continue
		}
		out, err := n.ofctl(ctx, nil, version, b, "get-frags")
		if err != nil || strings.TrimSpace(string(out)) != show.Fragments {
			o.Note(report.Failed, "%s: fragments are %q, not %q (%v)", b.Name, strings.TrimSpace(string(out)), show.Fragments, err)
			continue
		}
		o.Note(report.Restored, "")
	}
	return ctx.Err()
}
