package restore

import (
	"context"
	"strings"

	"ovs-offline/replica/report"
)

// restoreFragments sets how each bridge handles IP fragments, which no database
// holds and ovs-ofctl show prints (ovs-ofctl(8), set-frags).
func restoreFragments(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	for _, b := range s.Bridges {
		show, _, err := rec.show(b)
		if err != nil {
			return err
		}
		if show.Fragments == "" || show.Fragments == "normal" {
			continue
		}
		version, err := s.newest(ctx, b)
		if err != nil {
			return err
		}
		if _, err := s.ofctl(ctx, b, version, "set-frags", show.Fragments); err != nil {
			o.Note(report.Failed, "%s: the handling of fragments can't be set to %q: %v", b.Name, show.Fragments, err)
			continue
		}
		out, err := s.ofctl(ctx, b, version, "get-frags")
		if have := strings.TrimSpace(out); err != nil || have != show.Fragments {
			o.Note(report.Failed, "%s: the handling of fragments is %q instead of %q (%v)", b.Name, have, show.Fragments, err)
			continue
		}
		o.Note(report.Restored, "")
	}
	return ctx.Err()
}
