// Package lines compares and checks printed lines for tests.
package lines

import (
	"slices"
	"testing"
	"unicode"
)

// Difference compares two lists in any order, and returns what only one of them
// has, sorted. A line that occurs twice counts twice.
func Difference(want, have []string) (missing, extra []string) {
	count := map[string]int{}
	for _, line := range have {
		count[line]++
	}
	for _, line := range want {
		if count[line] == 0 {
			missing = append(missing, line)
			continue
		}
		count[line]--
	}
	for line, n := range count {
		for range n {
			extra = append(extra, line)
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	return missing, extra
}

// Harmless fails the test if a printed text can control a terminal.
func Harmless(tb testing.TB, printed string) {
	tb.Helper()
	for _, r := range printed {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			tb.Errorf("%q has %U", printed, r)
		}
	}
}

// Words returns the words of a line. Double quotes join words, and \" is a quote.
func Words(line string) []string {
	var words []string
	word, quoted, started := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			word, started = word+string(line[i]), true
		case c == '"':
			quoted, started = !quoted, true
		case c == ' ' && !quoted:
			if started {
				words = append(words, word)
			}
			word, started = "", false
		default:
			word, started = word+string(c), true
		}
	}
	if started {
		words = append(words, word)
	}
	return words
}
