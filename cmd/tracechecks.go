package cmd

import (
	"context"
	"fmt"
	"io"
	"os"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/terminal"
	"ovs-offline/trace"
	"ovs-offline/trace/answer"
)

// readChecks reads the file of --file.
func (o *traceOptions) readChecks(ctx context.Context) ([]trace.Check, error) {
	var in io.Reader = interrupt.Pipe(ctx, o.In)
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	checks, err := trace.ReadChecks(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errUsage, o.file, err)
	}
	return checks, nil
}

// runChecks asks the questions of --file and prints the verdicts. It returns errIncomplete
// if a verdict is undetermined, and a failure if one is not as expected.
func (o *traceOptions) runChecks(ctx context.Context, s *trace.Session) error {
	checks, err := o.readChecks(ctx)
	if err != nil {
		return err
	}
	p := checkPrinter{traceOptions: o}
	failed, undetermined := 0, false
	for c := range s.Run(ctx, checks) {
		if !c.Passed() {
			failed++
		}
		undetermined = undetermined || c.Expect == "" && c.Answer != nil && c.Answer.IsIncomplete()
		if err := p.print(c); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	case undetermined:
		return errIncomplete
	}
	return nil
}

// checkPrinter prints results as they come: a line, or a document, for each.
type checkPrinter struct {
	*traceOptions
}

func (p checkPrinter) print(c trace.Checked) error {
	switch p.format {
	case "json":
		return terminal.WriteJSON(p.Out, c)
	case "yaml":
		fmt.Fprintln(p.Out, "---")
		return terminal.WriteYAML(p.Out, c)
	}
	what := c.From + " -> " + c.To
	if c.Protocol != "" {
		what += " " + c.Protocol
	}
	if c.Flow != "" {
		what = c.Node + " " + c.Flow
	}
	mark := "ok  "
	if !c.Passed() {
		mark = "FAIL"
	}
	_, err := fmt.Fprintf(p.Out, "%s  %s: %s\n", mark, terminal.Escape(what), terminal.Escape(whatBecomes(c.Answer, c.Error)))
	return err
}

// runCapture follows the packets of --pcap.
func (o *traceOptions) runCapture(ctx context.Context, s *trace.Session, args []string) error {
	f, err := os.Open(o.pcap)
	if err != nil {
		return err
	}
	defer f.Close()
	q := o.question
	q.From = args[0]
	if len(args) > 1 {
		q.To = args[1]
	}
	c, err := s.Capture(ctx, q, interrupt.Reader(ctx, f))
	if err != nil {
		return questionError(fmt.Errorf("%s: %w", o.pcap, err))
	}
	if c.Unread > 0 {
		o.warn("%d packets of %s can't be read", c.Unread, o.pcap)
	}
	if c.Others > 0 {
		o.warn("%d packets of %s are of other senders: they are left out", c.Others, o.pcap)
	}
	undetermined := false
	err = o.emit(c, func() {
		for _, sent := range c.Sent {
			fmt.Fprintf(o.Out, "%5d  %s\n       %s\n", sent.Packets, terminal.Escape(sent.Flow), terminal.Escape(whatBecomes(sent.Answer, sent.Error)))
		}
	})
	for _, sent := range c.Sent {
		undetermined = undetermined || sent.Answer == nil || sent.Answer.IsIncomplete()
	}
	if err == nil && undetermined {
		return errIncomplete
	}
	return err
}

// whatBecomes describes an answer, or why there is none, in a line.
func whatBecomes(a *answer.Answer, why string) string {
	if a == nil {
		return why
	}
	return string(a.Verdict) + "  " + a.Headline()
}
