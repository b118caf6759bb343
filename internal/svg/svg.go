// Package svg writes pictures whose texts can't become markup, and measures these texts.
package svg

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"ovs-offline/internal/terminal"
)

// CharWidth is the width of a character, in pixels of a monospaced font of 12 pixels.
const CharWidth = 7.23

// Writer writes the elements of a picture. Its Flush method returns the first error.
type Writer struct{ *bufio.Writer }

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) Writer { return Writer{bufio.NewWriter(w)} }

// Printf writes markup. Texts from outside among args must have passed Escape.
func (w Writer) Printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// Text writes a text that begins at x on the baseline y.
func (w Writer) Text(x, y float64, class, text string) {
	w.Printf(`<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, class, Escape(text))
}

// Rect writes a rectangle with rounded corners.
func (w Writer) Rect(x, y, width, height, radius float64, class string) {
	w.Printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.0f" class="%s"/>`+"\n", x, y, width, height, radius, class)
}

// Escape returns a text for XML, as one line. Characters that can't be seen, or that change
// the direction of a text, are written as their number.
func Escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(terminal.Escape(text))) // writing to a Builder never fails
	return b.String()
}

// Width returns the number of columns that a text takes in a monospaced font.
func Width(text string) int { return runewidth.StringWidth(text) }

// Shorten cuts a text in its middle, because names differ at both ends.
func Shorten(text string, limit int) string {
	if Width(text) <= limit {
		return text
	}
	half := (limit - 1) / 2
	head := runewidth.Truncate(text, half, "")
	runes := []rune(text)
	tail, width := len(runes), 0
	for tail > 0 && width+runewidth.RuneWidth(runes[tail-1]) <= limit-1-half {
		tail--
		width += runewidth.RuneWidth(runes[tail])
	}
	return head + "\u2026" + string(runes[tail:])
}
