// Package phrase writes counts, lists and long texts in few words.
package phrase

import (
	"fmt"
	"strings"
	"time"
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

// Duration rounds a duration to the largest unit that it holds several times: "26 s", "9 min",
// "72 h", "5 days".
func Duration(wait time.Duration) string {
	const day = 24 * time.Hour
	units := []struct {
		least, unit time.Duration
		name        string
	}{{4 * day, day, "days"}, {2 * time.Hour, time.Hour, "h"}, {2 * time.Minute, time.Minute, "min"}}
	for _, unit := range units {
		if wait >= unit.least {
			return fmt.Sprintf("%d %s", int(wait.Round(unit.unit)/unit.unit), unit.name)
		}
	}
	return fmt.Sprintf("%d s", int(wait.Round(time.Second)/time.Second))
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
