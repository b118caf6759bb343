// Package phrase writes counts, lists and long texts in few words.
package phrase

import (
	"fmt"
	"strings"
)

// Count returns a number with a noun: "1 flow", "2 flows", "3 policies".
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s") && !strings.HasSuffix(noun, "address"):
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "switch"), strings.HasSuffix(noun, "address"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// FirstNames returns a list of the first ten names and the number of the others.
func FirstNames(names []string) string {
	const shown = 10
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// Shorten returns text, or its first n bytes with an ellipsis.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "..."
}
