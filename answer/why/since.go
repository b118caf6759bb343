package why

import (
	"cmp"
	"context"
	"strings"

	"ovs-offline/answer/history"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// lastChange says when the ACL that drops the packet was last changed, and by whom, as the log of the OVN NB database has it.
// It adds nothing if the log begins later.
func (d *Document) lastChange(ctx context.Context, all *snapshot.Snapshot) error {
	drop := d.dropped()
	if drop == nil || drop.ACL == nil || d.Rule != "" {
		return nil
	}
	var last *history.Event
	sources, _, err := history.Sources(ctx, all, workdir.NB)
	if err == nil {
		_, err = history.ReadLast(ctx, sources, history.Query{Table: "ACL", Record: drop.ACL.UUID}, 1, func(event *history.Event) error {
			last = event
			return nil
		})
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		d.Unjudged = append(d.Unjudged, "when the ACL was last changed: "+err.Error())
	case last != nil && !last.Base:
		by, _, _ := strings.Cut(cmp.Or(last.Comment, "a transaction without a comment"), "\n")
		d.Evidence = append(d.Evidence, "the ACL was last changed at "+last.Time.UTC().Format(history.TimeFormat)+": "+by)
	}
	return nil
}
