// Package terminal makes text from outside safe to print: it cannot control the
// terminal, and cannot look like a message of this program.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape returns text as one line that is safe for a terminal.
func Escape(s string) string {
	var b strings.Builder
	for _, char := range s {
		switch {
		case char == '\n':
			b.WriteString(`\n`)
		case char == '\t' || unicode.IsPrint(char):
			b.WriteRune(char)
		default:
			fmt.Fprintf(&b, "\\x%02x", char)
		}
	}
	return b.String()
}

// EscapeLines escapes text of several lines. It indents all lines but the first, so
// that none of them looks like a message of this program.
func EscapeLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = Escape(lines[i])
	}
	return strings.Join(lines, "\n    ")
}

// WriteJSON writes a value as JSON that is safe for a terminal. encoding/json does not
// escape DEL, C1 controls and characters that change the direction of text.
func WriteJSON(w io.Writer, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, char := range string(raw) {
		if char == '\n' || unicode.IsPrint(char) {
			text.WriteRune(char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			fmt.Fprintf(&text, "\\u%04x", unit)
		}
	}
	_, err = fmt.Fprintln(w, text.String())
	return err
}

// LineWriter escapes text line by line as it is written. A line is held back until it
// is complete, or longer than maxHeld bytes: a write may end within a character.
type LineWriter struct {
	out  io.Writer
	rest []byte
}

const maxHeld = 1 << 20

// NewLineWriter returns a LineWriter that writes to out.
func NewLineWriter(out io.Writer) *LineWriter { return &LineWriter{out: out} }

// Write implements io.Writer.
func (w *LineWriter) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	for {
		line, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(data), w.writeLong()
		}
		if _, err := fmt.Fprintln(w.out, Escape(string(line))); err != nil {
			return 0, err
		}
		w.rest = rest
	}
}

// writeLong writes what is held back of a line that is too long, up to a character that may be
// incomplete.
func (w *LineWriter) writeLong() error {
	if len(w.rest) <= maxHeld {
		return nil
	}
	whole := len(w.rest)
	for i := 1; i < utf8.UTFMax; i++ {
		if utf8.RuneStart(w.rest[whole-i]) && !utf8.FullRune(w.rest[whole-i:]) {
			whole -= i
			break
		}
	}
	_, err := fmt.Fprint(w.out, Escape(string(w.rest[:whole])))
	w.rest = bytes.Clone(w.rest[whole:])
	return err
}

// Close writes a last line that has no newline. It does not close the underlying
// writer.
func (w *LineWriter) Close() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.Write([]byte("\n"))
	return err
}
