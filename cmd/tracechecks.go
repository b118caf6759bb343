package cmd

import (
	"context"
	"fmt"
	"io"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/terminal"
	"ovs-offline/trace"
	"ovs-offline/trace/answer"
)

// readChecks reads the file of --file.
func (o *traceOptions) readChecks(ctx context.Context) ([]trace.Check, error) {
	var in io.Reader = interrupt.Pipe(ctx, o.In)
	if o.file != "-" {
		f, err := interrupt.Open(ctx, o.file)
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
		undetermined = undetermined || c.Answer != nil && (c.Expect == "" && c.Answer.IsIncomplete() || c.Answer.Trust.InDoubt())
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
	if c.Family != 0 {
		what += " over " + familyText(c.Family)
	}
	if c.Flow != "" {
		what = c.Node + " " + c.Flow
	}
	mark := "ok  "
	if !c.Passed() {
		mark = "FAIL"
	}
	if _, err := fmt.Fprintf(p.Out, "%s  %s: %s\n", mark, terminal.Escape(what), terminal.Escape(whatBecomes(c.Answer, c.Error))); err != nil {
		return err
	}
	return p.writeMore(c.Answer)
}

// runCapture follows the packets of --pcap.
func (o *traceOptions) runCapture(ctx context.Context, s *trace.Session, args []string) error {
	f, err := interrupt.Open(ctx, o.pcap)
	if err != nil {
		return err
	}
	defer f.Close()
	q := o.question
	q.From = args[0]
	if len(args) > 1 {
		q.To = args[1]
	}
	c, err := s.Capture(ctx, q, f)
	if err != nil {
		return questionError(fmt.Errorf("%s: %w", o.pcap, err))
	}
	if c.Unread > 0 {
		o.warn("%d packets of %s can't be read", c.Unread, o.pcap)
	}
	if c.Others > 0 {
		o.warn("%d packets of %s are of other senders: they count only for the connections of %s", c.Others, o.pcap, q.From)
	}
	if c.Elsewhere > 0 {
		o.warn("%d packets of %s are not for %s: they are left out", c.Elsewhere, o.pcap, q.To)
	}
	if c.Cut {
		o.warn("%s ends within a packet, as where tcpdump was interrupted: the answers are about the packets before it", o.pcap)
	}
	if err := o.printCapture(c); err != nil {
		return err
	}
	return o.judgeCapture(c)
}

// printCapture prints what becomes of the packets of --pcap.
func (o *traceOptions) printCapture(c *trace.Captured) error {
	var err error
	if emitErr := o.emit(c, func() {
		for _, sent := range c.Sent {
			fmt.Fprintf(o.Out, "%5d  %s\n       %s\n", sent.Packets, terminal.Escape(describeSent(sent)), terminal.Escape(whatBecomes(sent.Answer, sent.Error)))
			if err = o.writeMore(sent.Answer); err != nil {
				return
			}
		}
	}); emitErr != nil {
		return emitErr
	}
	return err
}

// describeSent describes a packet of a capture in a line.
func describeSent(s *trace.Sent) string {
	text := fmt.Sprintf("%d bytes", s.MinSize)
	if s.MaxSize > s.MinSize {
		text = fmt.Sprintf("%d to %d bytes", s.MinSize, s.MaxSize)
	}
	if s.From != "" {
		text = s.From + ", " + text
	}
	return s.Flow + " (" + text + ")"
}

// judgeCapture returns a failure if a packet has another verdict than --expect expects, and
// errIncomplete if an answer leaves something open.
func (o *traceOptions) judgeCapture(c *trace.Captured) error {
	failed, open := 0, c.Cut || c.Unread > 0
	for _, sent := range c.Sent {
		if !o.isExpected(sent.Answer) {
			failed++
		}
		open = open || sent.Answer == nil || o.leavesOpen(sent.Answer)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d packets are not %s", failed, len(c.Sent), o.expect)
	case open:
		return errIncomplete
	}
	return nil
}

// whatBecomes describes an answer, or why there is none, in a line.
func whatBecomes(a *answer.Answer, why string) string {
	if a == nil {
		return why
	}
	return string(a.Verdict) + "  " + a.Headline()
}
