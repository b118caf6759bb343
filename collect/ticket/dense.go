package ticket

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
)

// A dump of flows, groups or meters has one entry on each line, and no empty lines. What people paste of one has remarks and marks
// of their own, and programs have wrapped its lines or cut them.

var (
	// beginnings match how the entries of a dump begin.
	beginnings = map[openflow.Kind]*lazyregexp.Regexp{
		openflow.KindFlows:       lazyregexp.New(`(?:cookie=0x[0-9a-f]+, |duration=[0-9.]+s, |table=[^ ,]+, |priority=\d+[, ]|send_flow_rem |(?:in_port|ip|icmp|tcp|udp|arp)[=, ])`),
		openflow.KindBridgeFlows: lazyregexp.New(`(?:table_id=\d+, |duration=\d+s, )`),
		openflow.KindGroups:      lazyregexp.New(`group_id=\d+,`),
		openflow.KindMeters:      lazyregexp.New(`(?:meter=\d+ |type=(?:drop|dscp_remark) rate=)`),
	}
	// marks match what people and programs put before an entry: emphasis, arrows, numbers of lines, signs of quotations and lists.
	marks = lazyregexp.New(`^[\s*_>|+·•-]*(?:\d+[:.)]?[\s|]+)?[\s*_` + "`" + `=>+-]*$`)
	// pointers match what they put behind one: "**  <==== HERE!", "# this one".
	pointers = lazyregexp.New("(?:\\*\\*|__|`)?\\s*(?:<[-=~]{1,}|[-=]{2,}>|←|⟵|⇐)[^=,]*$|\\s+(?:#|//) .*$|(?:\\*\\*|__|`)\\s*$|\\s+(?:\\||[!?]+|\\([^=()]*\\))$")
	// sure matches the beginnings that only entries have, before which labels may stand as well.
	sure = lazyregexp.New(`^(?:cookie=0x[0-9a-f]+, |group_id=\d+,type=|duration=\d+s, n_packets=)`)
	// labels match more of what stands before an entry: "(1) ", "a) ", "[here] ", the time, "→ ", "< " of diff.
	labels = lazyregexp.New(`^(?:\s|[^\w\s=<{\[~]|\d|\dT\d|Z\b|[A-Za-z]\)|<\s|\[[^\[\]=]*\])*$`)
	// fragment matches what can be a part of an entry and is no sentence.
	fragment  = lazyregexp.New(`^\s*(?:, ?)?(?:[\w().:=\[\]<>/*+\-{}"#@%;~]+(?:, ?| actions=)?)+(?: (?:a|ac|act|acti|actio|action|actions)?)?$`)
	hasSyntax = lazyregexp.New(`[=,:()\[\]]|^\s*\d+\s*$`)
)

// maxLines and maxEntry bound an entry that a program has wrapped: no program makes more of a flow.
const (
	maxLines = 64
	maxEntry = 64 << 10 // bytes
)

// minWidth is the shortest line that a program wraps or cuts, in bytes.
const minWidth = 60

// entry is an entry of a dump as it was pasted.
type entry struct {
	text  string
	width int // of its last line, in bytes, with the blanks at its end
	first int // the width of its first line
	lines int
	blank bool   // a blank stands at its end
	rest  string // a word on the next line, which is of the entry if other lines of this width were wrapped
	cut   bool   // its end is not in the text
	// removed reports that a "-" stands before it, as diff puts it before what was removed, and people before what they list.
	removed bool
}

// dump is what was pasted of the entries of a dump.
type dump struct {
	kind    openflow.Kind
	entries []entry
	gaps    int
	strange int    // lines with entries behind words
	ending  string // a line that says that the command did not print all, "" for none
	spaced  bool   // an empty line was read last
	hunks   bool   // a line of diff's is between the entries
	headed  bool
	asked   struct { // what entryOf returned for the last line
		line, text string
		ok         bool
	}
	wrapped map[int]bool // the widths of lines that others go on
	// behind is a header behind entries that have none above them, "" for none: a text that was sorted ends with it.
	behind string
}

// belongs reports whether a line is an entry of the dump or the header above them.
func (d *dump) belongs(line string) bool {
	_, ok := d.entryOf(line)
	return ok || isHeadline(line)
}

// fields are what ovs-ofctl prints of a flow before its match, in its order.
func fields() []string {
	return []string{"cookie", "duration", "table", "n_packets", "n_bytes", "idle_timeout", "hard_timeout", "idle_age", "hard_age", "importance"}
}

// fieldOf returns the place among the fields of what a text begins with.
func fieldOf(text string) int {
	name, _, _ := strings.Cut(strings.TrimSpace(text), "=")
	if i := slices.Index(fields(), name); i >= 0 {
		return i
	}
	return len(fields())
}

// splits reports whether a line begins like an entry and is the rest of the last one, which a program has wrapped before a field: no entry
// begins with a field in the middle, where others begin with an earlier one.
func (d *dump) splits(line string) bool {
	text, ok := d.entryOf(line)
	if !ok || len(d.entries) == 0 || !d.goesOn(line) {
		return false
	}
	last := d.entries[len(d.entries)-1]
	return fieldOf(text) > fieldOf(last.text) && (isOpen(d.kind, last.text) || isTerminal(last.width) && !strings.Contains(line, "actions="))
}

// isHeadline reports whether a line begins the reply to a request for a dump.
func isHeadline(line string) bool {
	kind, _ := openflow.Identify([]byte(line))
	return kind != "" && strings.Contains(line, "xid=")
}

// entryOf returns the entry in a line without the marks around it.
func (d *dump) entryOf(line string) (text string, ok bool) {
	if d.asked.line == line {
		return d.asked.text, d.asked.ok
	}
	d.asked.line, d.asked.text, d.asked.ok = line, "", false
	if at := beginnings[d.kind].FindStringIndex(line); at != nil && (marks.MatchString(line[:at[0]]) || sure.MatchString(line[at[0]:]) && labels.MatchString(line[:at[0]])) {
		d.asked.text, d.asked.ok = withoutAliases(withoutPointers(line[at[0]:])), true
	}
	return d.asked.text, d.asked.ok
}

// withoutPointers returns a line without what people put behind an entry, and without blanks at its end.
func withoutPointers(line string) string {
	if strings.Contains(line, "->") || strings.Contains(line, "=>") || strings.Contains(line, " #") || strings.Contains(line, " //") ||
		strings.ContainsAny(line, "<←⟵⇐") || line != "" && strings.IndexByte("|!?)", line[len(line)-1]) >= 0 || strings.HasSuffix(line, "**") || strings.HasSuffix(line, "__") || strings.HasSuffix(line, "`") {
		line = pointers.ReplaceAllString(line, "")
	}
	return strings.TrimRight(line, " \t")
}

// alias matches a flow table with a second name behind it, where a flow or an action has a table: table=0(classifier).
var alias = lazyregexp.New(`\b(table=|goto_table:|resubmit\([^,()]*,)([\w.-]+)\([\w .-]+\)`)

// withoutAliases returns a flow in which each table has one number or name, as ovs-ofctl takes it.
func withoutAliases(line string) string {
	if !strings.Contains(line, "table=") || !strings.Contains(line, "(") {
		return line
	}
	return alias.ReplaceAllString(line, "$1$2")
}

// goesOn reports whether a line can be the rest of the last entry, which a program has wrapped.
func (d *dump) goesOn(line string) bool {
	if len(d.entries) == 0 || !fragment.MatchString(line) {
		return false
	}
	last := d.entries[len(d.entries)-1]
	if last.lines >= maxLines || len(last.text)+len(line) > maxEntry || d.kind != openflow.KindGroups && strings.Contains(line, "actions=") && strings.Contains(last.text, "actions=") {
		return false
	}
	if !hasSyntax.MatchString(line) && !isTerminal(last.width) {
		return strings.HasSuffix(last.text, "actions=") && slices.Contains([]string{"drop", "NORMAL", "FLOOD", "ALL", "LOCAL", "IN_PORT"}, line)
	}
	return !last.cut && (isOpen(d.kind, last.text) || last.width >= minWidth)
}

// isTerminal reports whether terminals often have this width.
func isTerminal(width int) bool {
	return slices.Contains([]int{80, 100, 120, 132, 160, 200}, width)
}

// holds reports whether a line is a word that may be the end of the last entry. Then it keeps the word.
func (d *dump) holds(line string) bool {
	if len(d.entries) == 0 || !fragment.MatchString(line) || strings.ContainsRune(line, ' ') || strings.Trim(line, "-=_*~") == "" {
		return false
	}
	last := &d.entries[len(d.entries)-1]
	if last.cut || last.rest != "" || last.width < minWidth || len(last.text)+len(line) > maxEntry {
		return false
	}
	last.rest = line
	return true
}

// endsInArrow reports whether the last entry may end in the middle of "->".
func (d *dump) endsInArrow() bool {
	return len(d.entries) > 0 && strings.HasSuffix(d.entries[len(d.entries)-1].text, "-")
}

// isOpen reports whether a text is an entry without its end.
func isOpen(kind openflow.Kind, text string) bool {
	if kind == openflow.KindFlows || kind == openflow.KindBridgeFlows {
		_, actions, found := strings.Cut(text, "actions=")
		if !found || actions == "" {
			return true
		}
	}
	if kind == openflow.KindMeters { // "meter=1 kbps bands="
		return strings.HasSuffix(text, ",")
	}
	return strings.Count(text, "(") > strings.Count(text, ")") || text != "" && strings.IndexByte(",-=:>(.", text[len(text)-1]) >= 0
}

// add adds a line that belongs to the dump. width is its length before anything was taken away.
func (d *dump) add(line string, width int) {
	text, ok := d.entryOf(line)
	if !ok {
		d.headed = true
		d.entries = append(d.entries, entry{text: line, width: 0, lines: 1}) // the header
		return
	}
	text, open := strings.CutSuffix(text, "\\")
	d.entries = append(d.entries, entry{text: " " + strings.TrimRight(text, " "), width: width, first: width, lines: 1, blank: width > len(line),
		cut: !open && (strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…")), removed: isRemoved(line)})
}

// isRemoved reports whether a "-" that is no arrow stands before an entry, or the "<" of diff.
func isRemoved(line string) bool {
	line = strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "->") && !strings.HasPrefix(line, "--")
}

// join adds a line to the last entry.
func (d *dump) join(line string, width int) {
	blank := width > len(line)
	last := &d.entries[len(d.entries)-1]
	if d.wrapped == nil {
		d.wrapped = map[int]bool{}
	}
	d.wrapped[last.width] = true
	if strings.HasPrefix(line, "  ") {
		line = strings.TrimLeft(line, " ")
	}
	rest := strings.TrimRight(strings.TrimSuffix(withoutPointers(line), "\\"), " ")
	inMatch := d.kind != openflow.KindGroups && !strings.Contains(last.text, "actions=")
	if !strings.HasPrefix(rest, " ") && (last.blank || inMatch && (strings.HasPrefix(rest, "actions=") || strings.HasSuffix(last.text, ",") && (isStatistic(rest) || endsInStatistic(last.text)))) {
		last.text += " "
	}
	last.text += rest
	last.width, last.blank = width, blank
	last.lines++
}

// isStatistic reports whether a text begins with what ovs-ofctl prints before the match, each behind a blank.
func isStatistic(text string) bool {
	name, _, found := strings.Cut(text, "=")
	return found && (name == "priority" || slices.Contains(fields(), name))
}

// endsInStatistic reports whether the last field of a text is one behind which ovs-ofctl prints a blank: the match of a flow follows, whose
// priority is not printed if it is 32768.
func endsInStatistic(text string) bool {
	last := strings.TrimSuffix(text, ",")
	name, _, found := strings.Cut(last[strings.LastIndexAny(last, " ,")+1:], "=")
	return found && slices.Contains(fields(), name)
}

// result returns the dump as ovs-ofctl prints it, and why that is not all of it.
func (d *dump) result() (text string, partial []string) {
	limit, broken, removed := d.limit(), 0, 0
	listed := !d.hunks && !slices.ContainsFunc(d.entries, func(e entry) bool { return e.first > 0 && !e.removed })
	var b strings.Builder
	if d.behind != "" {
		b.WriteString(strings.TrimLeft(d.behind, " ") + "\n")
	}
	for _, e := range d.entries {
		if e.removed && !listed {
			removed++
			continue
		}
		if d.wrapped[e.width] {
			e.text += e.rest
		}
		if e.cut || e.first > 0 && isOpen(d.kind, e.text) || limit > 0 && e.lines == 1 && e.first >= limit {
			broken++
			continue
		}
		b.WriteString(e.text)
		b.WriteByte('\n')
	}
	if broken > 0 {
		partial = append(partial, fmt.Sprintf("the ends of %d of its %d lines are cut off", broken, len(d.entries)))
	}
	if d.gaps > 0 {
		partial = append(partial, fmt.Sprintf("lines were left out in %d places", d.gaps))
	}
	if d.strange > 0 {
		partial = append(partial, fmt.Sprintf("%d of its lines have an entry behind other words", d.strange))
	}
	if d.ending != "" {
		partial = append(partial, fmt.Sprintf("the command did not end: %q", phrase.Shorten(d.ending, 80)))
	}
	if removed > 0 || d.hunks {
		partial = append(partial, "it is a diff, without the lines that did not change")
	}
	return b.String(), partial
}

// limit returns the width at which a program has cut the lines, 0 if none has: several lines are as long as the longest, and at
// least one of them is without its end.
func (d *dump) limit() int {
	longest, of, open := 0, 0, false
	for _, e := range d.entries {
		if e.lines > 1 {
			return 0 // wrapped, not cut
		}
		if e.first > longest {
			longest, of, open = e.first, 0, false
		}
		if e.first == longest {
			of++
			open = open || isOpen(d.kind, e.text)
		}
	}
	if !open || longest < minWidth || of < 2 {
		return 0
	}
	return longest
}
