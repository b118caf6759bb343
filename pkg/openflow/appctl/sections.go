// Package appctl reads the output of ovs-appctl commands of an ovs-vswitchd. The
// formats are those of OVS 2.13 to 3.5. Parsers skip lines that they do not know, so of
// the output of a newer version only what is new is lost.
package appctl

import (
	"iter"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// section matches the heading of a section.
var section = lazyregexp.New(`^---- (.*) ----$`)

// each yields the result of read for each line that a pattern matches, with the text up
// to the next such line.
func each[T any](text string, pattern *lazyregexp.Regexp, read func(found []string, body string) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for found, body := range parts(text, pattern) {
			if !yield(read(found, body)) {
				return
			}
		}
	}
}

// parts yields the submatches of a pattern for each line that it matches, with the text
// up to the next such line. The pattern sees lines without the space around them.
func parts(text string, pattern *lazyregexp.Regexp) iter.Seq2[[]string, string] {
	return func(yield func(found []string, body string) bool) {
		var found []string
		begin, end := 0, 0
		for line := range strings.Lines(text) {
			if next := pattern.FindStringSubmatch(strings.TrimSpace(line)); next != nil {
				if found != nil && !yield(found, text[begin:end]) {
					return
				}
				found, begin = next, end+len(line)
			}
			end += len(line)
		}
		if found != nil {
			yield(found, text[begin:])
		}
	}
}

// fields yields the labels and values of lines "label: value".
func fields(text string) iter.Seq2[string, string] {
	return func(yield func(label, value string) bool) {
		for line := range strings.Lines(text) {
			label, value, _ := strings.Cut(line, ":")
			if !yield(strings.TrimSpace(label), strings.TrimSpace(value)) {
				return
			}
		}
	}
}
