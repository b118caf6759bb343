package cmd

import (
	"context"

	"github.com/spf13/pflag"

	"ovs-offline/answer/retrace"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot"
)

// runRecorded says what the traces mean that were pasted. It returns errFound if the replica says something else than one of
// them, and errIncomplete if a verdict is undetermined or an output was not whole.
func (o *traceOptions) runRecorded(ctx context.Context, selected *set.Set) error {
	document, err := retrace.Read(ctx, selected.Snapshot, func(node *snapshot.Node) retrace.Replica { return selected.Node(node) })
	if err != nil {
		return err
	}
	err = o.emit(document, func(page *show.Page) {
		document.Print(page, retrace.Options{Detail: o.detail, Raw: o.session.Raw, Start: o.self("start")})
	})
	return worst(err, foundIf(document.Differs()), incompleteIf(document.IsIncomplete()))
}

// checkRecordedFlags refuses the flags that mean nothing for traces that were pasted.
func (o *traceOptions) checkRecordedFlags(flags *pflag.FlagSet) error {
	for _, name := range []string{"ttl", "source-port", "size", "ipv4", "ipv6", "network", "expect", "ct", "bucket"} {
		if flags.Changed(name) {
			return fault.Usagef("--%s does not go with --recorded: each trace has its own packet and options", name)
		}
	}
	if o.format == "svg" || o.format == formatHTML {
		return fault.Usagef("-o %s draws one answer, and --recorded reads several traces", o.format)
	}
	return nil
}
