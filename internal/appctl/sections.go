// Package appctl reads the texts that ovs-appctl prints of an ovs-vswitchd. The
// formats are those of OVS 2.13 to 3.5. Lines that a parser does not know are
// skipped, so text from a newer version costs what is new in it.
package appctl

import (
	"iter"
	"strings"
)

// sections yields the parts of a text whose headings are "---- NAME ----", with
// their names. Text before the first heading is skipped.
func sections(text string) iter.Seq2[string, string] {
	return func(yield func(name, body string) bool) {
		name, begin, end := "", -1, 0
		for line := range strings.Lines(text) {
			if next, ok := heading(line); ok {
				if begin >= 0 && !yield(name, text[begin:end]) {
					return
				}
				name, begin = next, end+len(line)
			}
			end += len(line)
		}
		if begin >= 0 {
			yield(name, text[begin:])
		}
	}
}

// each yields what read makes of each section.
func each[T any](text string, read func(name, body string) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for name, body := range sections(text) {
			if !yield(read(name, body)) {
				return
			}
		}
	}
}

func heading(line string) (name string, ok bool) {
	name, opened := strings.CutPrefix(strings.TrimSpace(line), "---- ")
	name, closed := strings.CutSuffix(name, " ----")
	return name, opened && closed
}

// field splits a line "label: value".
func field(line string) (label, value string) {
	label, value, _ = strings.Cut(line, ":")
	return strings.TrimSpace(label), strings.TrimSpace(value)
}
