package cmd

import (
	"context"
	"fmt"
	"strings"

	"ovs-offline/flows"
	"ovs-offline/internal/terminal"
	"ovs-offline/trace/answer"
)

// runDatapath lists the recorded flows of the datapath.
func (o *flowsOptions) runDatapath(ctx context.Context, sources []flows.Source, args []string) error {
	if len(args) > 0 || o.query.Limit < 0 {
		return fmt.Errorf("%w: --datapath takes no BRIDGE, because a datapath serves all bridges, and --limit takes a number that is not negative", errUsage)
	}
	replayed, err := flows.Replay(ctx, sources)
	if err != nil {
		return err
	}
	if most := o.query.Limit; most > 0 && len(replayed.Flows) > most {
		replayed.Flows = replayed.Flows[:most]
	}
	if err := o.emit(replayed, func() { o.printMegaflows(replayed) }); err != nil {
		return err
	}
	o.warnEach("", replayed.Remarks)
	switch {
	case replayed.Stale > 0:
		return errDrift
	case replayed.Untraced+replayed.Lost > 0:
		return errIncomplete
	}
	return nil
}

func (o *flowsOptions) printMegaflows(r *flows.Replayed) {
	fmt.Fprintf(o.Out, "%d datapath flows: %d stale, %d untraced, %d current\n", r.Stale+r.Untraced+r.Current, r.Stale, r.Untraced, r.Current)
	for _, m := range r.Flows {
		node := ""
		if m.Node != "" {
			node = "node " + m.Node + ", "
		}
		o.field(string(m.State), fmt.Sprintf("%sfrom %s: %d packets, %d bytes, used %s", node, m.From, m.Packets, m.Bytes, m.Used))
		o.field("", m.Match)
		if m.State == flows.Current {
			o.field("", "-> "+m.Actions)
			continue
		}
		o.field("recorded", m.Actions)
		if m.State == flows.Stale {
			o.field("now", m.Now)
			o.field("end", m.End)
		}
		o.field("why", m.Why)
		o.field("rules", strings.Join(m.Rules, "; "))
	}
}

// field prints a text behind its name, wrapped where it does not fit the terminal.
func (o *flowsOptions) field(name, text string) {
	const indent = 10
	if text == "" {
		return
	}
	lines := []string{terminal.Escape(text)}
	if width := terminalWidth(o.Out); width > 0 {
		lines = answer.Wrap(lines[0], max(width-indent, 2*indent))
	}
	for _, line := range lines {
		fmt.Fprintf(o.Out, "%-*s%s\n", indent, name, line)
		name = ""
	}
}
