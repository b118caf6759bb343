package openflow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Flow is one flow of a dump.
type Flow struct {
	Line int
	At   int64 // where its line begins in the dump
	// Text is what ovs-ofctl add-flows takes: statistics and timeouts are gone.
	Text string
}

// Flows yields the flows of a dump (ovs-ofctl dump-flows, with or without
// statistics, or ovs-save's), and a Problem for each line that is neither a flow
// nor a header.
func Flows(r io.Reader) iter.Seq2[Flow, *Problem] { return FlowsWith(r) }

// FlowsWith yields what Flows does of the lines that contain one of words, and
// spends no time on others; without words, of all lines.
func FlowsWith(r io.Reader, words ...string) iter.Seq2[Flow, *Problem] {
	return func(yield func(Flow, *Problem) bool) {
		undecoded := false
		var held *Flow // the last flow, until the next line tells whether it is whole
		for n, l := range lines(r) {
			if held != nil && !isHeader(l.text) {
				if !yield(wholeOrCut(*held, l.text)) {
					return
				}
				held = nil
			}
			if !containsAny(l.text, words) {
				continue
			}
			flow, problem, skip := flowLine(n, l, undecoded)
			if skip {
				continue
			}
			if problem == nil {
				if n == 1 {
					flow.Text = strings.TrimSpace(l.text)
				}
				held = &flow
				continue
			}
			if strings.Contains(problem.Text, "***decode error") {
				undecoded = true
			}
			if !yield(flow, problem) {
				return
			}
		}
		if held != nil {
			yield(wholeOrCut(*held, ""))
		}
	}
}

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return len(words) == 0
}

// wholeOrCut judges a flow by the line behind it. The last one before the
// program was ended may have lost its end, and still read as a flow.
func wholeOrCut(f Flow, next string) (Flow, *Problem) {
	if alarm, alone := readAlarm(next); alarm && alone {
		return Flow{}, newProblem(f.Line, f.Text, "its end may have been cut off: ovs-ofctl was ended there", true)
	}
	if f.Line > 1 {
		return f, nil
	}
	return firstOrCut(f, next)
}

// firstOrCut judges the first line of a dump without a header, which may have
// lost its beginning. Flows with statistics begin with a cookie; those without
// (ovs-save's) begin with whatever is not the default.
func firstOrCut(first Flow, next string) (Flow, *Problem) {
	match, actions, _ := cutActions(first.Text)
	for _, start := range []string{"cookie=", "table="} {
		if strings.HasPrefix(match, start) {
			return Flow{Line: first.Line, Text: cleaned(match, actions)}, nil
		}
	}
	hidden := strings.HasPrefix(match, "duration=") || strings.HasPrefix(match, "table_id=") // bridge/dump-flows
	next = strings.TrimSpace(next)
	if hasStatistics(match) && !hidden || strings.HasPrefix(next, "cookie=") && hasStatistics(next) {
		return Flow{}, newProblem(first.Line, first.Text, "its beginning was cut off", true)
	}
	return Flow{Line: first.Line, Text: cleaned(match, actions)}, nil
}

func hasStatistics(text string) bool { return strings.Contains(text, "n_bytes=") }

func flowLine(n int, l line, undecoded bool) (Flow, *Problem, bool) {
	switch {
	case l.err != nil:
		return Flow{}, newProblem(n, l.err.Error(), "the dump can't be read on", true), false
	case l.tooLong:
		return Flow{}, newProblem(n, "", "longer than any flow can be", true), false
	case isHeader(l.text):
		return Flow{}, nil, true
	}
	text := strings.TrimSpace(l.text)
	if alarm, alone := readAlarm(text); alarm && !alone {
		return Flow{}, newProblem(n, text, "its end was cut off: ovs-ofctl was ended there", true), undecoded
	}
	match, actions, ok := cutActions(text)
	if !ok {
		problem := notData(n, text, "a flow")
		if n == 1 && problem.Lost && !strings.Contains(text, "***decode error") {
			problem.Reason += ": perhaps the dump's beginning was cut off"
		}
		// After a decode error comes its hexdump: nothing of it is news.
		return Flow{}, problem, undecoded
	}
	if len(match) > maxMatch {
		return Flow{}, newProblem(n, text, "its match is longer than any flow's", true), false
	}
	return Flow{Line: n, At: l.at, Text: cleaned(match, actions)}, nil, false
}

// FlowAt reads again a flow that Flows has yielded, by At.
func FlowAt(dump io.ReaderAt, at int64) (Flow, error) {
	const common = 1 << 10 // most lines are shorter
	section := io.NewSectionReader(dump, at, maxLine)
	l, _, err := readLine(bufio.NewReaderSize(section, common))
	if err != nil && !errors.Is(err, io.EOF) {
		return Flow{}, err
	}
	l.at = at
	flow, problem, skip := flowLine(2, l, false) // of the first one it was judged whether it is whole
	if problem != nil || skip {
		return Flow{}, fmt.Errorf("no flow begins at byte %d", at)
	}
	return flow, nil
}

// maxMatch bounds the part before a flow's actions, in bytes. All fields that
// there are, each with a mask and as long as it can be, take half of it.
const maxMatch = 64 << 10

// cutActions splits a flow at its " actions=" (or ",actions=", as
// bridge/dump-flows has it).
func cutActions(text string) (match, actions string, ok bool) {
	i := indexOutside(text, "actions=")
	if i < 0 {
		return "", "", false
	}
	return strings.TrimRight(text[:i], " ,"), text[i+len("actions="):], true
}

// dropped are the fields of a dumped flow that are not part of what it does:
// statistics, and the timeouts, which would let the flow vanish from a replica
// that gets no packets (fidelity rule 13). Those inside learn() are actions and stay.
func dropped(key string) bool {
	switch key {
	case "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "idle_timeout", "hard_timeout",
		"n_offload_packets", "n_offload_bytes",
		// a flag of the command that added the flow, not of the flow: adding it again would fail on its neighbours
		"check_overlap":
		return true
	}
	return false
}

// cleaned is a flow without statistics and timeouts in the part before its
// actions.
func cleaned(match, actions string) string {
	var b strings.Builder
	b.Grow(len(match) + len(" actions=") + len(actions))
	for token := range eachToken(match) {
		key, _, _ := strings.Cut(token, "=")
		if dropped(key) {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(token)
	}
	b.WriteString(" actions=")
	b.WriteString(actions)
	return b.String()
}

// mostTokens is ten times what the longest flows of real nodes have.
const mostTokens = 10000

// tokens are the first of those that eachToken yields.
func tokens(text string) []string {
	list := make([]string, 0, 16)
	for token := range eachToken(text) {
		if len(list) == mostTokens {
			break
		}
		list = append(list, token)
	}
	return list
}

// eachToken splits at commas and blanks, but not within quotes or parentheses.
func eachToken(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, depth, quoted := 0, 0, false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '(':
				depth++
			case c == ')':
				depth--
			case depth <= 0 && (c == ',' || c == ' ' || c == '\t'):
				if i > start && !yield(text[start:i]) {
					return
				}
				start = i + 1
			}
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// indexOutside finds word where it begins a token outside of quotes.
func indexOutside(text, word string) int {
	if i := strings.Index(text, word); i < 0 || (i == 0 || text[i-1] == ' ' || text[i-1] == ',') && !strings.Contains(text[:i], `"`) {
		return i // nearly always: nothing is quoted before it
	}
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == word[0] && strings.HasPrefix(text[i:], word) && (i == 0 || text[i-1] == ' ' || text[i-1] == ','):
			return i
		}
	}
	return -1
}

// Actions is the part of a flow behind "actions=".
func (f Flow) Actions() string {
	_, actions, _ := cutActions(f.Text)
	return actions
}

// Words are the names of a flow's fields and flags, and those of its actions
// that stand in no other action.
func Words(text string) (fields, actions []string) {
	match, rest, _ := cutActions(text)
	return names(match), names(rest)
}

func names(text string) []string {
	list := tokens(text)
	for i, token := range list {
		if end := strings.IndexAny(token, "=:("); end >= 0 {
			list[i] = token[:end]
		}
	}
	return list
}

// WithActions is the flow with other actions.
func (f Flow) WithActions(actions string) string {
	match, _, _ := cutActions(f.Text)
	return match + " actions=" + actions
}

// Key tells the flows of a switch apart, whatever OpenFlow version they were
// dumped in: cookie, table, priority, match. The cookie is the same in every
// dump, and tells flows apart whose matches are spelled differently.
func (f Flow) Key() string {
	cookie, place := f.identity()
	return cookie + "|" + place
}

// Place is Key without the cookie, which bridge/dump-flows doesn't tell. No two
// flows of a switch are in the same place.
func (f Flow) Place() string {
	_, place := f.identity()
	return place
}

func (f Flow) identity() (cookie, place string) {
	match, _, _ := cutActions(f.Text)
	table, priority := "0", "32768"
	rest := make([]string, 0, 16)
	for token := range eachToken(match) {
		switch k, v, _ := strings.Cut(token, "="); k {
		case "cookie":
			if v != "0x0" { // which dumps without statistics leave out
				cookie = v
			}
		case "table", "table_id":
			table = v
		case "priority":
			priority = v
		case "send_flow_rem", "reset_counts", "no_packet_counts", "no_byte_counts", "importance":
		default:
			rest = append(rest, token)
		}
	}
	return cookie, table + "|" + priority + "|" + strings.Join(rest, ",")
}
