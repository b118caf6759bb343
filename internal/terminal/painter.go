package terminal

import (
	"io"
	"os"

	"ovs-offline/internal/lazyregexp"
)

// HasColours reports whether texts for a terminal have colours: not where TERM names none, and not where
// the user does not want them (https://no-color.org).
func HasColours() bool {
	term := os.Getenv("TERM")
	return term != "" && term != "dumb" && os.Getenv("NO_COLOR") == ""
}

// Painter colours the words for verdicts and severities in what it writes to a terminal.
type Painter struct {
	out    io.Writer
	inWord bool // the last text that was written ends within a word
}

// NewPainter returns a Painter that writes to out.
func NewPainter(out io.Writer) *Painter { return &Painter{out: out} }

var (
	coloured = lazyregexp.New(`(?m)\b(?:ERROR|UNREACHABLE|ONE-WAY|explicit drop|missing flow)\b|(?:^|- )error\b|(?:^|: )drift:|` +
		`\b(?:WARNING|UNDETERMINED|AMBIGUOUS|MIXED)\b|(?:^|- )warning\b|` +
		`\bREACHABLE\b|(?:^|: )no drift:`)
	red    = lazyregexp.New(`(?i)error|unreachable|one-way|explicit drop|missing flow|^(?:: )?drift`)
	yellow = lazyregexp.New(`(?i)warning|undetermined|ambiguous|mixed`)
	first  = lazyregexp.New(`^[0-9A-Za-z_]+`)
)

// Write implements io.Writer.
func (p *Painter) Write(text []byte) (int, error) {
	rest, painted := text, []byte{}
	if p.inWord {
		begun := first.FindString(string(text))
		rest, painted = text[len(begun):], []byte(begun)
	}
	painted = append(painted, coloured.ReplaceAllStringFunc(string(rest), paint)...)
	if len(text) > 0 {
		p.inWord = first.MatchString(string(text[len(text)-1:]))
	}
	if _, err := p.out.Write(painted); err != nil {
		return 0, err
	}
	return len(text), nil
}

// paint returns a word in its colour.
func paint(word string) string {
	colour := "32"
	switch {
	case red.MatchString(word):
		colour = "31"
	case yellow.MatchString(word):
		colour = "33"
	}
	return "\x1b[" + colour + "m" + word + "\x1b[0m"
}
