package trace

import (
	"fmt"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/terminal"
)

// Text returns the result in a line, and for a failure what decided.
func (c Checked) Text() string {
	text := fmt.Sprintf("%s: %s\n", terminal.Escape(c.Question()), terminal.Escape(describeResult(c.Answer, c.Error)))
	if c.Passed() {
		return "ok    " + text
	}
	text = "FAIL  " + text
	if c.Answer == nil {
		return text
	}
	for _, f := range c.Answer.Facts() {
		if f.Label == "reason" || f.Label == "rule" {
			text += fmt.Sprintf("        %-6s  %s\n", f.Label, terminal.Escape(strings.Join(f.Lines, "; ")))
		}
	}
	return text
}

// Question returns who is asked about, and with what, in a line.
func (c Check) Question() string {
	if c.Flow != "" {
		return c.Node + " " + c.Flow
	}
	question := c.From + " -> " + c.To
	if c.Protocol != "" {
		question += " " + c.Protocol
	}
	if c.Family != 0 {
		question += " over " + answer.FamilyText(c.Family)
	}
	return question
}

// Describe describes the packet of a capture in a line.
func (s *Sent) Describe() string {
	text := fmt.Sprintf("%d bytes", s.MinSize)
	if s.MaxSize > s.MinSize {
		text = fmt.Sprintf("%d to %d bytes", s.MinSize, s.MaxSize)
	}
	if s.From != "" {
		text = s.From + ", " + text
	}
	return s.Flow + " (" + text + ")"
}

// describeResult describes an answer, or why there is none, in a line.
func describeResult(result *answer.Answer, why string) string {
	if result == nil {
		return why
	}
	return string(result.Verdict) + "  " + result.Headline()
}

// Outcome describes what becomes of the packet in a line.
func (s *Sent) Outcome() string { return describeResult(s.Answer, s.Error) }
