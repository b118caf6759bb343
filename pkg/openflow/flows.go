package openflow

import (
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Flow is one flow of a dump.
type Flow struct {
	Line int   // from 1; 0 for a flow of no dump
	At   int64 // the offset of its line in the dump
	// Text is what ovs-ofctl add-flows takes, without statistics and timeouts.
	Text string
	Counters
	// Headless reports that the dump has no header above the flow, but statistics: either
	// its beginning was cut off, or ovs-ofctl ran with --names or --sort, which print no
	// header, or it is the output of bridge/dump-flows.
	Headless bool
}

// Counters are the statistics of a flow. Counted is false for a dump without them, as
// ovs-save writes it.
type Counters struct {
	Packets, Bytes uint64
	Counted        bool
	Age            time.Duration // since the flow was added, at least 1 ns; 0 if it is not known
}

// CountersOf reads the counters in a line of a dump, or in its part before the actions.
func CountersOf(match string) (c Counters) {
	var bytesKnown bool
	c.Packets, c.Counted = counter(match, "n_packets=")
	c.Bytes, bytesKnown = counter(match, "n_bytes=")
	c.Counted = c.Counted && bytesKnown
	if _, text, found := strings.Cut(match, "duration="); found && c.Counted {
		text, _, _ = strings.Cut(text, ",")
		if age, err := time.ParseDuration(text); err == nil {
			c.Age = max(age, 1)
		}
	}
	return c
}

func counter(match, name string) (n uint64, ok bool) {
	_, text, found := strings.Cut(match, name)
	if !found {
		return 0, false
	}
	if end := strings.IndexAny(text, ", "); end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// Flows yields the flows of a dump (of ovs-ofctl dump-flows with or without
// statistics, of ovs-save, or of bridge/dump-flows), and a Problem for each line
// that is neither a flow nor a header.
func Flows(r io.Reader) iter.Seq2[Flow, *Problem] {
	return FlowsIn(r, func(string) bool { return true })
}

// FlowsIn works like Flows, but parses only the lines that want accepts.
func FlowsIn(r io.Reader, want func(line string) bool) iter.Seq2[Flow, *Problem] {
	return func(yield func(Flow, *Problem) bool) {
		for e, problem := range rawFlowsIn(r, want) {
			var f Flow
			if problem == nil {
				f = e.flow()
			}
			if !yield(f, problem) {
				return
			}
		}
	}
}

// RawFlow is a flow as a dump has it, with its statistics.
type RawFlow struct {
	Line    int    // from 1
	Match   string // what precedes the actions
	Actions string
	Counters

	at       int64 // the offset of its line in the dump
	headless bool  // see Flow.Headless
}

func (e *RawFlow) flow() Flow {
	return Flow{Line: e.Line, At: e.at, Text: withoutStatistics(e.Match, e.Actions), Counters: e.Counters, Headless: e.headless}
}

// RawFlows works like Flows. It takes half of the time, because it does not compose the text
// of a flow without its statistics.
func RawFlows(r io.Reader) iter.Seq2[RawFlow, *Problem] {
	return rawFlowsIn(r, func(string) bool { return true })
}

func rawFlowsIn(r io.Reader, want func(line string) bool) iter.Seq2[RawFlow, *Problem] {
	return func(yield func(RawFlow, *Problem) bool) {
		undecoded, held := false, false
		var last RawFlow // if held: not yielded yet, because the next line shows whether it is complete
		var end ending
		for n, l := range lines(r) {
			if held && !isHeader(l.text) {
				if !yield(wholeOrCut(last, l.text)) {
					return
				}
				held = false
			}
			end.see(n, l)
			if l.err == nil && !l.tooLong && !want(l.text) {
				continue
			}
			entry, problem, skip := readFlow(n, l, undecoded)
			if skip {
				continue
			}
			if problem == nil {
				entry.headless = end.header == "" && entry.Counted
				last, held = entry, true
				continue
			}
			undecoded = undecoded || strings.Contains(problem.Text, decodeError)
			end.known = end.known || problem.Lost
			if !yield(RawFlow{}, problem) {
				return
			}
		}
		problem := end.cut()
		// The last flow of a part that was cut off may have lost its end and still look like a flow.
		if held && (problem == nil || last.Line < end.begins) && !yield(wholeOrCut(last, "")) {
			return
		}
		if problem != nil {
			yield(RawFlow{}, problem)
		}
	}
}

// wholeOrCut decides by the next line whether a flow is complete, and returns the flow
// or a problem. The last flow before ovs-ofctl was terminated may have lost its end and
// still look like a flow.
func wholeOrCut(e RawFlow, next string) (RawFlow, *Problem) {
	if found, alone := readFatalSignal(next); found && alone {
		return RawFlow{}, newProblem(e.Line, e.flow().Text, "its end may have been cut off: ovs-ofctl was terminated there", true)
	}
	if e.Line > 1 {
		return e, nil
	}
	return firstOrCut(e, next)
}

// firstOrCut decides whether the first line of a dump without a header is complete: it
// may have lost its beginning. Flows with statistics begin with a cookie, or in
// bridge/dump-flows with another field; those of ovs-save begin with the first field that
// differs from its default.
func firstOrCut(first RawFlow, next string) (RawFlow, *Problem) {
	match := first.Match
	if strings.HasPrefix(match, "cookie=") || strings.HasPrefix(match, "table=") && !hasStatistics(match) {
		return first, nil
	}
	ofBridge := strings.HasPrefix(match, "duration=") || strings.HasPrefix(match, "table_id=") // bridge/dump-flows
	next = strings.TrimSpace(next)
	if hasStatistics(match) && !ofBridge || strings.HasPrefix(next, "cookie=") && hasStatistics(next) {
		return RawFlow{}, newProblem(first.Line, match+" "+actionsWord+first.Actions, "its beginning was cut off", true)
	}
	return first, nil
}

func hasStatistics(text string) bool { return strings.Contains(text, "n_bytes=") }

// readFlow reads a line as a flow. skip is set for a header, and for the hex dump
// that follows a decode error.
func readFlow(n int, l line, undecoded bool) (e RawFlow, p *Problem, skip bool) {
	switch {
	case l.err != nil:
		return RawFlow{}, newProblem(n, l.err.Error(), "the rest of the dump can't be read", true), false
	case l.tooLong:
		return RawFlow{}, newProblem(n, "", "longer than any flow can be", true), false
	case isHeader(l.text):
		return RawFlow{}, nil, true
	}
	text := strings.Trim(l.text, blankBytes)
	if found, alone := readFatalSignal(text); found && !alone {
		return RawFlow{}, newProblem(n, text, "its end was cut off: ovs-ofctl was terminated there", true), undecoded
	}
	match, actions, ok := cutActions(text)
	if !ok {
		p = notEntry(n, text, "a flow")
		if n == 1 && p.Lost && !strings.Contains(text, decodeError) {
			p.Reason += ": perhaps the dump's beginning was cut off"
		}
		return RawFlow{}, p, undecoded
	}
	if len(match) > maxMatch {
		return RawFlow{}, newProblem(n, text, "its match is longer than any flow's", true), false
	}
	return RawFlow{Line: n, Match: match, Actions: actions, Counters: CountersOf(match), at: l.at}, nil, false
}

// FlowAt reads again, by its offset, a flow that Flows has yielded.
func FlowAt(dump io.ReaderAt, at int64) (Flow, error) {
	const common = 1 << 10 // most lines are shorter
	for _, l := range linesBy(io.NewSectionReader(dump, at, maxLine+1), common) {
		l.at = at
		// The number 2 skips the check of a first line, which Flows has made.
		if entry, problem, skip := readFlow(2, l, false); problem == nil && !skip {
			return entry.flow(), nil
		}
		break
	}
	return Flow{}, fmt.Errorf("no flow begins at byte %d", at)
}

// maxMatch bounds the part before a flow's actions, in bytes. All fields that
// exist, each with a mask and as long as it can be, take half of it.
const maxMatch = 64 << 10

// cutActions splits a flow at its " actions=", or ",actions=" in
// bridge/dump-flows.
func cutActions(text string) (match, actions string, ok bool) {
	i := indexActions(text)
	if i < 0 {
		return "", "", false
	}
	return strings.TrimRight(text[:i], " ,"), text[i+len(actionsWord):], true
}

const actionsWord = "actions="

// indexActions returns the index of the first actionsWord that begins a token
// outside of quotes, -1 for none.
func indexActions(text string) int {
	begins := func(i int) bool { return i == 0 || text[i-1] == ' ' || text[i-1] == ',' }
	if i := strings.Index(text, actionsWord); i < 0 || begins(i) && strings.IndexByte(text[:i], '"') < 0 {
		return i // nearly always the case: nothing before it is quoted
	}
	for i := 0; i < len(text); i += IndexSeparator(text[i:], true) + 1 {
		if strings.HasPrefix(text[i:], actionsWord) {
			return i
		}
	}
	return -1
}

// isStatistic reports whether a field of a dumped flow has no influence on what the
// flow does. Timeouts count as statistics: a replica gets no packets, so a timeout
// would remove the flow. Timeouts inside learn() are part of an action and stay.
func isStatistic(key string) bool {
	switch key {
	case "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "idle_timeout", "hard_timeout",
		"n_offload_packets", "n_offload_bytes",
		// a flag of the command that added the flow: adding it again would fail on overlapping flows
		"check_overlap":
		return true
	}
	return false
}

// withoutStatistics joins a flow's match and actions and leaves out the fields
// before the actions for which isStatistic holds.
func withoutStatistics(match, actions string) string {
	var b strings.Builder
	b.Grow(len(match) + len(" actions=") + len(actions))
	for token := range Tokens(match) {
		key, _, _ := strings.Cut(token, "=")
		if isStatistic(key) {
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

// Fields yields the fields of a flow before its actions, with its cookie, table and
// priority. The text may also be a match alone.
func Fields(flow string) iter.Seq[string] {
	if i := indexActions(flow); i >= 0 {
		flow = flow[:i]
	}
	return Tokens(flow)
}

// Tokens yields the parts of a match between commas and blanks that are not within quotes or
// parentheses, but for empty parts.
func Tokens(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := IndexSeparator(text, true)
			if end > 0 && !yield(text[:end]) {
				return
			}
			text = text[min(end+1, len(text)):]
		}
	}
}

// Split yields the parts of a list of actions or arguments between the commas that are not
// within quotes or parentheses, also empty ones.
func Split(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			end := IndexSeparator(text, false)
			if !yield(text[:end]) || end == len(text) {
				return
			}
			text = text[end+1:]
		}
	}
}

// blankBytes are the blanks between the fields of a flow, and around a flow.
const blankBytes = " \t\n\v\f\r"

// IndexSeparator returns the index of the first comma, or with blanks also blank,
// that is not within quotes or parentheses, and len(text) if there is none.
func IndexSeparator(text string, blanks bool) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c > ',' && !quoted: // most characters: quotes, parentheses and separators have lower codes
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth <= 0 && (c == ',' || blanks && strings.IndexByte(blankBytes, c) >= 0):
			return i
		}
	}
	return len(text)
}

// Actions returns the part of a flow after "actions=".
func (f Flow) Actions() string {
	_, actions, _ := cutActions(f.Text)
	return actions
}

// WithActions returns the text of the flow with other actions.
func (f Flow) WithActions(actions string) string {
	match, _, _ := cutActions(f.Text)
	return match + " actions=" + actions
}

// Words returns the names of a flow's fields and flags, and those of its
// outermost actions.
func Words(text string) (fields, actions iter.Seq[string]) {
	match, rest, _ := cutActions(text)
	return names(match), names(rest)
}

func names(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for token := range Tokens(text) {
			if !yield(token[:strings.IndexAny(token+"=", "=:(")]) {
				return
			}
		}
	}
}
