package openflow

import (
	"strconv"
	"strings"
)

// Tables returns the flow tables that a flow names, in their order: that of the flow, and those of resubmit, goto_table and learn. They
// are numbers, or names that ovs-ofctl prints on a terminal.
func Tables(flow string) (list []string) {
	for rest := flow; ; {
		at, mark := len(rest), ""
		for _, m := range []string{"table=", "resubmit(", "goto_table:"} {
			if i := strings.Index(rest, m); i >= 0 && i < at {
				at, mark = i, m
			}
		}
		if mark == "" {
			return list
		}
		rest = rest[at+len(mark):]
		text := rest
		if mark == "resubmit(" {
			text, _, _ = strings.Cut(text, ")")
			at := IndexSeparator(text, false)
			if at == len(text) { // resubmit(PORT)
				continue
			}
			text = text[at+1:]
		}
		if name := wordOf(text); name != "" {
			list = append(list, name)
		}
	}
}

// wordOf returns the name or number with which a text begins.
func wordOf(text string) string {
	if strings.HasPrefix(text, `"`) {
		if quoted, err := strconv.QuotedPrefix(text); err == nil {
			name, _ := strconv.Unquote(quoted)
			return name
		}
	}
	if end := strings.IndexAny(text, ", ()"); end >= 0 {
		text = text[:end]
	}
	return text
}

// NamesTable reports whether a flow names a table by something else than its number. It is many times as fast as Tables.
func NamesTable(flow string) bool {
	for _, mark := range []string{"table=", "resubmit(,", "goto_table:"} {
		if at := strings.Index(flow, mark); at >= 0 && at+len(mark) < len(flow) {
			if c := flow[at+len(mark)]; c < '0' || c > '9' {
				return true
			}
		}
	}
	return false
}
