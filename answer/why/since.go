package why

import (
	"cmp"
	"context"
	"strings"

	"ovs-offline/answer/history"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// lastChange says when the ACL that drops the packet was last changed, and by whom, as the log of the OVN NB database has it.
// It adds nothing if the log begins later. Where the nodes have one such database, a next step is to bisect its log.
func (d *Document) lastChange(ctx context.Context, all *snapshot.Snapshot, between trace.Between) error {
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
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.Unjudged = append(d.Unjudged, "when the ACL was last changed: "+err.Error())
		return nil
	}
	if last != nil && !last.Base {
		by, _, _ := strings.Cut(cmp.Or(last.Comment, "a transaction without a comment"), "\n")
		d.Evidence = append(d.Evidence, "the ACL was last changed at "+last.Time.UTC().Format(history.TimeFormat)+": "+by)
	}
	if len(sources) == 1 && sources[0].File != "" {
		bisect := rule.Ask("bisect", between.From, between.To)
		if between.Protocol != "" {
			bisect.Args = append(bisect.Args, between.Protocol)
		}
		d.Next = append(d.Next, bisect)
	}
	return nil
}
