package cmd

import (
	"context"
	"fmt"

	"ovs-offline/answer/trace"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// runChecks asks the questions of --file and prints the verdicts. It returns errIncomplete
// if a verdict is undetermined, and a failure if one is not as expected, or if a check can't be
// read.
func (o *traceOptions) runChecks(ctx context.Context, session *trace.Session) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	file, err := o.openInput(reading, o.file)
	if err != nil {
		return err
	}
	defer file.Close()
	wrong := func(err error) error {
		if ctx.Err() != nil {
			return err
		}
		return fault.Usagef("%s: %w", o.file, err)
	}
	checks, err := trace.ReadChecks(file)
	if err != nil {
		return wrong(err)
	}
	var unread error
	readable := func(yield func(trace.Check) bool) {
		for check, err := range checks {
			if unread = err; err != nil || !yield(check) {
				return
			}
		}
	}
	list := o.list()
	failed, undetermined := 0, false
	for checked := range session.Run(ctx, readable) {
		if !checked.Passed() {
			failed++
		}
		undetermined = undetermined || checked.Answer != nil && leavesOpen(checked.Answer, string(checked.Expect))
		if err := list.Add(checked, checked.Text); err != nil {
			stop() // a pipe may have no end
			return err
		}
		if o.format == formatTable {
			o.writeMore(checked.Answer)
		}
	}
	if err := list.End(nil); err != nil {
		return err
	}
	switch unused := session.CheckBucket(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case unread != nil:
		return wrong(unread)
	case unused != nil:
		return unused
	case failed > 0:
		return fmt.Errorf("%d of %d checks failed", failed, list.Count)
	case undetermined:
		return errIncomplete
	}
	return nil
}

// runCapture follows the packets of --pcap.
func (o *traceOptions) runCapture(ctx context.Context, session *trace.Session, args []string) error {
	file, err := interrupt.Open(ctx, o.pcap)
	if err != nil {
		return err
	}
	defer file.Close()
	question := o.question
	question.From = args[0]
	if len(args) > 1 {
		question.To = args[1]
	}
	captured, err := session.Capture(ctx, question, file)
	if err == nil {
		err = session.CheckBucket()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.pcap, err)
	}
	o.page().WarnEach("", captured.Remarks(o.pcap, question))
	if err := o.printCapture(captured); err != nil {
		return err
	}
	return o.judgeCapture(captured)
}

// printCapture prints what becomes of the packets of --pcap.
func (o *traceOptions) printCapture(captured *trace.Captured) error {
	return o.emit(captured, func(page *show.Page) {
		if len(captured.Sent) > 0 {
			page.Printf("PACKETS\n")
		}
		for _, sent := range captured.Sent {
			page.Printf("%5d  %s\n       %s\n", sent.Packets, terminal.Escape(sent.Describe()), terminal.Escape(sent.Outcome()))
			o.writeMore(sent.Answer)
		}
	})
}

// judgeCapture returns a failure if a packet has another verdict than --expect expects, and
// errIncomplete if an answer leaves something open.
func (o *traceOptions) judgeCapture(captured *trace.Captured) error {
	failed, open := 0, captured.Cut || captured.Unread > 0
	for _, sent := range captured.Sent {
		if !o.isExpected(sent.Answer) {
			failed++
		}
		open = open || sent.Answer == nil || leavesOpen(sent.Answer, o.expect)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d of %d packets are not %s", failed, len(captured.Sent), o.expect)
	case open:
		return errIncomplete
	}
	return nil
}
