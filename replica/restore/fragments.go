package restore

import (
	"context"
	"strings"

	"ovs-offline/replica/report"
)

// restoreFragments sets how each bridge handles IP fragments, which no database
// holds and ovs-ofctl show prints (ovs-ofctl(8), set-frags).
func restoreFragments(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	for _, bridge := range sw.Bridges {
		show, _, err := rec.show(bridge)
		if err != nil {
			return err
		}
		if show.Fragments == "" || show.Fragments == "normal" {
			continue
		}
		version, err := sw.newest(ctx, bridge)
		if err != nil {
			return err
		}
		if _, err := sw.ofctl(ctx, bridge, version, "set-frags", show.Fragments); err != nil {
			outcome.Note(report.Failed, "%s: the handling of fragments can't be set to %q: %v", bridge.Name, show.Fragments, err)
			continue
		}
		out, err := sw.ofctl(ctx, bridge, version, "get-frags")
		if have := strings.TrimSpace(out); err != nil || have != show.Fragments {
			outcome.Note(report.Failed, "%s: the handling of fragments is %q instead of %q (%v)", bridge.Name, have, show.Fragments, err)
			continue
		}
		outcome.Note(report.Restored, "")
	}
	return ctx.Err()
}
