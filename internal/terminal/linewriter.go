package terminal

import (
	"bytes"
	"fmt"
	"io"
)

// LineWriter escapes what is written to it line by line. A line is held back
// until it is complete: a write may end within a character.
type LineWriter struct {
	out  io.Writer
	rest []byte
}

// NewLineWriter returns a LineWriter that writes to out.
func NewLineWriter(out io.Writer) *LineWriter { return &LineWriter{out: out} }

// Write implements io.Writer.
func (w *LineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		if _, err := fmt.Fprintln(w.out, Escape(string(line))); err != nil {
			return 0, err
		}
		w.rest = rest
	}
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
