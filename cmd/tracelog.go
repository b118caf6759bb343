package cmd

import (
	"context"
	"fmt"

	"ovs-offline/answer/trace"
	"ovs-offline/internal/fault"
)

// runLog follows the packets that ACLs logged in --log. It returns a failure if the flows do not explain the
// verdict of one, and errIncomplete if that is not known of one, or if lines are left out.
func (o *traceOptions) runLog(ctx context.Context, session *trace.Session) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	file, err := o.openInput(reading, o.log)
	if err != nil {
		return err
	}
	defer file.Close()
	logged, err := trace.ReadACLLog(ctx, file)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fault.Usagef("%s: %w", o.log, err)
	}
	o.page().WarnEach(o.log+": ", logged.Remarks)
	list := o.list()
	counts := map[string]int{}
	for replayed := range session.Replay(ctx, logged.Packets) {
		counts[replayed.Result]++
		if err := list.Add(replayed, func() string { return replayed.Text(o.page().Width) }); err != nil {
			return err
		}
		if o.format == formatTable {
			o.writeMore(replayed.Answer)
		}
	}
	if err := list.End(nil); err != nil {
		return err
	}
	unused := session.CheckBucket()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case unused != nil:
		return unused
	case counts[trace.Differs] > 0:
		return fmt.Errorf("the flows do not explain %d of %d logged packets", counts[trace.Differs], list.Count)
	}
	return incompleteIf(logged.Lost || counts[trace.Unexplained] > 0)
}
