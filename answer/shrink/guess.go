package shrink

import (
	"context"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
)

// guess returns the collected content with few rows: those that the text names, those that such rows name, and those that
// refer to them. This small content often shows the same as the collected one.
func (s *search) guess(ctx context.Context) (*file.Whole, error) {
	text := s.text()
	named := wordsOf(text)
	kept := map[string]bool{}
	for range 3 { // a port names its peer, and an ACL a port group
		for _, row := range s.whole.Rows("") {
			if kept[row.UUID] || isAlways(row) || !named[row.UUID] && !named[s.whole.Name(row)] && !s.isQuoted(row, text) {
				continue
			}
			kept[row.UUID] = true
			for _, column := range s.whole.Columns(row) {
				if slices.Contains([]string{"match", "options", "peer", "nexthop", "type", "name"}, column.Column) {
					for word := range wordsOf(s.whole.Text(column)) {
						named[word] = true
					}
				}
			}
		}
	}
	removed := map[file.Part]bool{}
	for _, row := range s.whole.Rows("") {
		if !isAlways(row) && !kept[row.UUID] && !s.whole.RefersTo(row, kept) {
			removed[row] = true
		}
	}
	return s.whole.Without(ctx, removed)
}

// isQuoted reports whether a text holds the match of a row.
func (s *search) isQuoted(row file.Part, text string) bool {
	match := s.whole.Row(row).String("match")
	return match != "" && strings.Contains(text, match)
}

// isAlways reports whether a row belongs to each database.
func isAlways(row file.Part) bool { return row.Table == "NB_Global" }

// wordsOf returns the words of a text that can be names: of letters, digits, and what stands between them in names.
func wordsOf(text string) map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(char rune) bool { return strings.ContainsRune(" \t\n\"\\,;=(){}[]$@!&|<>", char) }) {
		if len(word) > 1 {
			words[word] = true
		}
	}
	return words
}
