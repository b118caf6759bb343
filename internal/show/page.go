// Package show prints documents for people: tables, headlines, texts in lines, and warnings
// beside them. The package that makes a document prints it.
package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/versions"
)

// Page is what a command prints. Texts from outside have to be escaped; Warn does that itself.
type Page struct {
	Out   io.Writer // the document
	Err   io.Writer // warnings
	Width int       // of the terminal that Out is, in columns; 0 for none
	Call  Call      // makes the command lines of the program

	ErrWidth int // of the terminal that Err is, 0 for none

	warnings int // so far
}

// Printf prints a text.
func (p *Page) Printf(format string, args ...any) { fmt.Fprintf(p.Out, format, args...) }

// Text prints sentences, each in lines that fit the terminal: those that follow its first one have four blanks more before them.
func (p *Page) Text(format string, args ...any) {
	for line := range strings.SplitSeq(strings.TrimSuffix(fmt.Sprintf(format, args...), "\n"), "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		p.Printf("%s\n", Fold(line, p.Width, indent+"    "))
	}
}

// Headline prints a line with a line of asterisks below it.
func (p *Page) Headline(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	p.Printf("%s\n%s\n", line, strings.Repeat("*", len(line)))
}

// Lines prints texts as a list below a title, if there are any.
func (p *Page) Lines(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.Printf("%s:\n", terminal.Escape(title))
	for _, l := range lines {
		p.Printf("%s\n", Fold("  - "+terminal.Escape(l), p.Width, "    "))
	}
	p.Printf("\n")
}

// Warn prints a warning. The text comes from a source, which can cause any number of warnings of
// any length: both are bounded.
func (p *Page) Warn(format string, args ...any) {
	const maxWarnings, maxBytes = 500, 4096
	p.warnings++
	switch {
	case p.warnings < maxWarnings:
		p.Note("warning: %s", phrase.Shorten(fmt.Sprintf(format, args...), maxBytes))
	case p.warnings == maxWarnings:
		fmt.Fprintln(p.Err, "warning: further warnings are not printed")
	}
}

// Note prints a text beside the document, in lines that fit the terminal.
func (p *Page) Note(format string, args ...any) {
	for line := range strings.SplitSeq(terminal.EscapeLines(fmt.Sprintf(format, args...)), "\n") {
		fmt.Fprintln(p.Err, Fold(line, p.ErrWidth, "    "))
	}
}

// WarnIfAny prints a text as a warning unless it is empty.
func (p *Page) WarnIfAny(text string) {
	if text != "" {
		p.Warn("%s", text)
	}
}

// WarnEach prints a warning for each text.
func (p *Page) WarnEach(prefix string, texts []string) {
	for _, text := range texts {
		p.Warn("%s%s", prefix, text)
	}
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./@%+=:,-]+$`)

// IsPlain reports whether a word has no meaning of its own to a shell or a terminal.
func IsPlain(word string) bool { return plainWord.MatchString(word) }

// Word quotes a path, which may contain a bridge's name, for pasting into a shell. It escapes
// control characters; the result no longer names the file then.
func Word(path string) string {
	if IsPlain(path) {
		return path
	}
	return "'" + strings.ReplaceAll(terminal.Escape(path), "'", `'\''`) + "'"
}

// Versions returns versions for a line of text.
func Versions(v versions.Pair) string { return cmp.Or(terminal.Escape(v.String()), "unknown") }

// Time formats a time in UTC, in which Open vSwitch and OVN log; the zero time is "".
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// MiB returns a number of bytes in MiB.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
