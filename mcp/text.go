package mcp

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"

	"ovs-offline/internal/terminal"
)

// LineParams choose among the lines of an output.
type LineParams struct {
	Head           int  `json:"head,omitempty" jsonschema:"return only the first N lines (default 100 if tail is not given)"`
	Tail           int  `json:"tail,omitempty" jsonschema:"return only the last N lines"`
	ApplyTailFirst bool `json:"apply_tail_first,omitempty" jsonschema:"with both head and tail: apply tail before head"`
	Skip           int  `json:"skip,omitempty" jsonschema:"leave out the first N lines, to go on where a result was cut"`
}

// PatternParams choose lines by a regular expression.
type PatternParams struct {
	Pattern string `json:"pattern,omitempty" jsonschema:"return only lines that match this regular expression (RE2)"`
}

// Excerpt is the part of an output that a result holds.
type Excerpt struct {
	Lines int    `json:"matching_lines" jsonschema:"number of lines that match in the whole output"`
	More  string `json:"more,omitempty" jsonschema:"what was left out, and how to get it"`
}

// Limits of lines.
const (
	usualHead  = 100
	maxLines   = 10000   // of head and tail
	maxLine    = 8 << 10 // bytes of a line in a result
	maxPattern = 1 << 10 // bytes
)

// chooser keeps the lines of a stream that were asked for; it implements io.Writer. It
// holds as much as a result can have, however long the stream is.
type chooser struct {
	LineParams
	pattern *regexp.Regexp    // nil for all lines
	also    func(string) bool // nil for all lines
	partial []byte            // the line that is not complete yet
	long    bool              // it is longer than a result takes
	seen    int               // matching lines
	kept    []string
}

func newChooser(lines LineParams, pattern PatternParams) (*chooser, error) {
	if min(lines.Head, lines.Tail, lines.Skip) < 0 || max(lines.Head, lines.Tail) > maxLines {
		return nil, fmt.Errorf("head, tail and skip are not negative, and head and tail at most %d", maxLines)
	}
	c := &chooser{LineParams: lines}
	if lines.Head == 0 && lines.Tail == 0 {
		c.Head = usualHead
	}
	if pattern.Pattern == "" {
		return c, nil
	}
	if len(pattern.Pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	var err error
	c.pattern, err = regexp.Compile(pattern.Pattern)
	return c, err
}

func (c *chooser) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		if room := maxLine - len(c.partial); len(line) > room {
			c.partial, c.long = append(c.partial, line[:max(room, 0)]...), true
		} else {
			c.partial = append(c.partial, line...)
		}
		if complete {
			c.endLine()
		}
		rest = after
	}
	return len(text), nil
}

// endLine keeps the line that is complete now, if it was asked for.
func (c *chooser) endLine() {
	line := string(c.partial)
	if c.long {
		for !utf8.ValidString(line) && len(line) > maxLine-utf8.UTFMax {
			line = line[:len(line)-1]
		}
		line += "... (cut)"
	}
	c.partial, c.long = c.partial[:0], false
	if line == "" || c.pattern != nil && !c.pattern.MatchString(line) || c.also != nil && !c.also(line) {
		return
	}
	c.seen++
	if c.seen <= c.Skip {
		return
	}
	last := c.Tail > 0 && (c.Head == 0 || c.ApplyTailFirst)
	switch {
	case !last && len(c.kept) == c.Head:
		return
	case last && len(c.kept) == 2*c.Tail:
		c.kept = append(c.kept[:0], c.kept[c.Tail:]...)
	}
	c.kept = append(c.kept, terminal.Escape(line))
}

// lines returns the lines that were asked for, as many as a result takes, and what was left
// out.
func (c *chooser) lines() ([]string, Excerpt) {
	if len(c.partial) > 0 {
		c.endLine()
	}
	kept, first := c.kept, c.Skip // first is the number of matching lines before kept
	if c.Tail > 0 && (c.Head == 0 || c.ApplyTailFirst) {
		kept = kept[max(0, len(kept)-c.Tail):]
	}
	switch {
	case c.Tail > 0 && c.Head > 0 && c.ApplyTailFirst:
		first, kept = c.seen-len(kept), kept[:min(c.Head, len(kept))]
	case c.Tail > 0 && c.Head > 0:
		cut := max(0, len(kept)-c.Tail)
		first, kept = first+cut, kept[cut:]
	case c.Tail > 0:
		first = c.seen - len(kept)
	}
	size := 0
	for i, line := range kept {
		if size += len(line) + 1; size > maxOutput {
			kept = kept[:i]
			break
		}
	}
	excerpt := Excerpt{Lines: c.seen}
	if next := first + len(kept); next < c.seen {
		excerpt.More = fmt.Sprintf("these are the lines %d to %d of %d: call again with skip=%d, or with a pattern", first+1, next, c.seen, next)
	}
	return append([]string{}, kept...), excerpt
}

// chooseLines returns the lines that were asked for of the text that write writes.
func chooseLines(lines LineParams, pattern PatternParams, write func(io.Writer) error) ([]string, Excerpt, error) {
	c, err := newChooser(lines, pattern)
	if err != nil {
		return nil, Excerpt{}, err
	}
	if err := write(c); err != nil {
		return nil, Excerpt{}, err
	}
	kept, excerpt := c.lines()
	return kept, excerpt, nil
}
