package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb/file"
)

// Summary describes an event in one line: the comment, and the names of the rows that were inserted,
// changed or deleted. A changed row has the names of its changed columns. Where a table has many such
// rows, it gives their number. The text is not escaped.
func (e *Event) Summary() string {
	const most = 200
	comment := strings.TrimSpace(strings.ReplaceAll(withoutCaller(e.Comment), "\n", "; "))
	switch {
	case e.Schema != "":
		return fmt.Sprintf("converted to schema %s (%d rows)", e.Schema, e.Count)
	case e.Base:
		return fmt.Sprintf("the whole content, %d rows (%s): earlier transactions are not in the file", e.Count, cmp.Or(comment, "a snapshot of the cluster's log"))
	}
	comment = strings.TrimLeft(strings.TrimPrefix(comment, e.Program), ":; ")
	var words []string
	if comment != "" {
		words = append(words, phrase.Shorten(comment, most))
	}
	words = append(words, rowWords(e.Rows)...)
	for _, request := range e.Requests {
		words = append(words, strings.TrimSpace(fmt.Sprintf("asks: %s %s %.8s", request.Operation, request.Table, request.UUID)))
	}
	const mostWords = 8
	if more := len(words) - mostWords; more > 0 {
		words = append(words[:mostWords], fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(words, "; "), "(no comment)")
}

// withoutCaller leaves out which program ran the one that wrote a comment: "ovs-vsctl (invoked by sh): ...".
func withoutCaller(comment string) string {
	before, rest, found := strings.Cut(comment, " (invoked by ")
	if _, behind, closed := strings.Cut(rest, "): "); found && closed {
		return before + ": " + behind
	}
	return comment
}

// rowWords returns a text for each row, or one for many of a table that were changed in the same way.
func rowWords(rows []Row) (words []string) {
	const most = 3
	type group struct {
		table  string
		change file.ChangeKind
	}
	rows = withoutCounters(rows)
	count := map[group]int{}
	for _, row := range rows {
		count[group{row.Table, row.Change}]++
	}
	for _, row := range rows {
		kind := group{row.Table, row.Change}
		n := count[kind]
		switch {
		case n > most:
			words = append(words, fmt.Sprintf("%s %s: %d rows", sign(row.Change), row.Table, n))
			count[kind] = 0
		case n > 0:
			words = append(words, row.words())
		}
	}
	return words
}

// words describes the change of a row.
func (r Row) words() string {
	text := fmt.Sprintf("%s %s %s", sign(r.Change), r.Table, cmp.Or(phrase.Shorten(r.Name, 80), fmt.Sprintf("%.8s", r.UUID)))
	if r.Change == file.Modified && len(r.Columns) > 0 {
		text += " (" + strings.Join(slices.Sorted(maps.Keys(r.Columns)), ", ") + ")"
	}
	return text
}

// withoutCounters leaves out the rows in which only the counters changed that programs increase with every
// change, if anything else did change.
func withoutCounters(rows []Row) []Row {
	counters := []string{"cur_cfg", "next_cfg", "nb_cfg", "sb_cfg", "hv_cfg", "nb_cfg_timestamp", "sb_cfg_timestamp", "hv_cfg_timestamp"}
	others := slices.DeleteFunc(slices.Clone(rows), func(row Row) bool {
		for column := range row.Columns {
			if !slices.Contains(counters, column) {
				return false
			}
		}
		return row.Change == file.Modified && len(row.Columns) > 0
	})
	if len(others) == 0 {
		return rows
	}
	return others
}
