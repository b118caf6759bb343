package mcp

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode/utf8"

	"ovs-offline/internal/terminal"
)

// LineParams choose among the rows of a document, or the lines of an output.
type LineParams struct {
	Head           int    `json:"head,omitempty" jsonschema:"only the first N rows or lines (default 100 without tail)"`
	Tail           int    `json:"tail,omitempty" jsonschema:"only the last N"`
	ApplyTailFirst bool   `json:"apply_tail_first,omitempty" jsonschema:"with both head and tail: apply tail before head"`
	Skip           int    `json:"skip,omitempty" jsonschema:"leave out the first N, to go on where a result was cut"`
	Pattern        string `json:"pattern,omitempty" jsonschema:"only rows (as JSON) or lines that match this regular expression (RE2)"`
}

func (p LineParams) lines() LineParams { return p }

// Excerpt says what part of the rows or lines a result holds.
type Excerpt struct {
	Lines *int   `json:"matching_lines,omitempty"` // the number of all that match; nil without rows and lines
	More  string `json:"more,omitempty"`           // what was left out, and how to get it
}

// Limits of rows and lines.
const (
	usualHead  = 100
	maxLines   = 10000   // of head and tail
	maxLine    = 8 << 10 // bytes of a row or line in a result
	maxPattern = 1 << 10 // bytes
)

// chooser keeps the rows or lines that were asked for; it implements io.Writer, for the lines of a text. It
// holds as much as a result can have, however many there are.
type chooser struct {
	LineParams
	usual   bool              // nothing was asked for
	pattern *regexp.Regexp    // nil for all
	also    func(string) bool // nil for all
	partial []byte            // the line that is not complete yet
	long    bool              // it is longer than a result takes
	seen    int               // what matches
	kept    []row
}

// row is a row of a document as JSON, or a line.
type row struct {
	list int // in the document
	text string
}

// MarshalJSON implements json.Marshaler, for a row of a document.
func (r row) MarshalJSON() ([]byte, error) { return []byte(r.text), nil }

func newChooser(lines LineParams) (*chooser, error) {
	if min(lines.Head, lines.Tail, lines.Skip) < 0 || max(lines.Head, lines.Tail) > maxLines {
		return nil, fmt.Errorf("head, tail and skip are not negative, and head and tail at most %d", maxLines)
	}
	c := &chooser{LineParams: lines, usual: max(lines.Head, lines.Tail, lines.Skip) == 0}
	if lines.Head == 0 && lines.Tail == 0 {
		c.Head = usualHead
	}
	if lines.Pattern == "" {
		return c, nil
	}
	if len(lines.Pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	var err error
	c.pattern, err = regexp.Compile(lines.Pattern)
	return c, err
}

// whole asks for all lines if nothing was asked for.
func (c *chooser) whole() {
	if c.usual {
		c.Head = maxLines
	}
}

// Write implements io.Writer.
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
	if line != "" {
		c.take(row{text: line}, terminal.Escape)
	}
}

// add takes a value as a row of the first list.
func (c *chooser) add(value any) error {
	if c.pattern == nil && !c.keepsLast() && len(c.kept) == c.Head {
		c.seen++
		return nil
	}
	text, err := encode(value)
	if err == nil {
		c.take(row{text: text}, safeRow)
	}
	return err
}

// keepsLast reports whether the rows to keep are known at the end only.
func (c *chooser) keepsLast() bool { return c.Tail > 0 && (c.Head == 0 || c.ApplyTailFirst) }

// take keeps a row if it was asked for, with its text made safe.
func (c *chooser) take(row row, safe func(string) string) {
	if c.pattern != nil && !c.pattern.MatchString(row.text) || c.also != nil && !c.also(row.text) {
		return
	}
	c.seen++
	if c.seen <= c.Skip {
		return
	}
	switch {
	case !c.keepsLast() && len(c.kept) == c.Head:
		return
	case c.keepsLast() && len(c.kept) == 2*c.Tail:
		c.kept = append(c.kept[:0], c.kept[c.Tail:]...)
	}
	row.text = safe(row.text)
	c.kept = append(c.kept, row)
}

// chosen returns what was asked for, as much as size bytes take, and what was left out.
func (c *chooser) chosen(size int) ([]row, Excerpt) {
	if len(c.partial) > 0 {
		c.endLine()
	}
	kept, first := c.kept, c.Skip // first is the number of matching rows before kept
	if c.keepsLast() {
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
	for i, row := range kept {
		if size -= len(row.text) + 1; size < 0 {
			kept = kept[:i]
			break
		}
	}
	excerpt := Excerpt{Lines: &c.seen}
	if next := first + len(kept); next < c.seen {
		excerpt.More = fmt.Sprintf("these are %d to %d of %d: call again with skip=%d, or with a pattern", first+1, next, c.seen, next)
	}
	return kept, excerpt
}

// texts returns the texts of what was asked for, as much as size bytes take.
func (c *chooser) texts(size int) (texts []string, excerpt Excerpt) {
	kept, excerpt := c.chosen(size)
	for _, row := range kept {
		texts = append(texts, row.text)
	}
	return texts, excerpt
}
