package tracetext

import (
	"fmt"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
)

// Finder finds the lines with which outputs begin whose command lines were not pasted.
type Finder struct{ before string } // the line before

// Next returns a reader of the output that a line begins, nil if none does.
func (f *Finder) Next(line string) *Reader {
	before := f.before
	f.before = line
	if len(line) > maxLine {
		return nil
	}
	if at := strings.Index(line, "Flow: "); at >= 0 && isPacket(line[at+len("Flow: "):]) && isPrefix(line[:at]) {
		r := &Reader{tool: Switch, prefix: line[:at]}
		if above, ok := r.withoutPrefix(before); ok && strings.HasPrefix(above, "Bridge: ") {
			r.add(above, len(above))
		}
		r.Take(line)
		return r
	}
	if at := max(strings.Index(line, "# "), strings.Index(line, `ingress(dp="`)); at >= 0 && beginsLogical(line[at:]) && isPrefix(line[:at]) {
		r := &Reader{tool: Logical, prefix: line[:at]}
		r.Take(line)
		return r
	}
	return nil
}

// New returns a reader of the output of a command line. Text before its first line is passed over.
func New(tool Tool) *Reader { return &Reader{tool: tool, waits: true} }

// separator stands above and below the heading of a further pass.
var separator = strings.Repeat("=", 79)

const (
	maxLine   = 64 << 10 // bytes: a flow with the bytes of its packet is longer than most lines
	maxPrefix = 200
	maxWait   = 12 // lines of other text between a command line and its output
)

// isPacket reports whether a text is a packet as ofproto/trace prints it: more than a word.
func isPacket(text string) bool {
	packet, err := flow.Parse(text)
	if at := strings.LastIndexByte(text, ','); err != nil && at > 0 { // a terminal may have wrapped it
		packet, err = flow.Parse(text[:at])
	}
	return err == nil && len(packet.Fields()) > 1 && (packet.Has("in_port") || packet.Has("recirc_id") || packet.Has("dl_src"))
}

// beginsLogical reports whether an output of ovn-trace begins with a line.
func beginsLogical(line string) bool {
	if strings.HasPrefix(line, `ingress(dp="`) {
		return true
	}
	packet, err := flow.Parse(strings.TrimPrefix(line, "# "))
	return strings.HasPrefix(line, "# ") && err == nil && packet.Has("reg14") && packet.Has("dl_src")
}

// isPrefix reports whether a program may have put a text before a line.
func isPrefix(text string) bool {
	return len(text) <= maxPrefix && (text == "" || strings.ContainsAny(text[len(text)-1:], " \t|:>]"))
}

// Reader takes the lines of one output.
type Reader struct {
	tool    Tool
	prefix  string // before each line; digits stand for any number
	waits   bool   // for the first line
	waited  int
	lines   []string
	widths  []int
	gaps    int
	blank   bool // the line before was empty
	doubled bool // an empty line follows each
	ended   bool // the datapath actions were printed
	goesOn  bool // the heading of a further pass was printed
	staged  bool // a flow was printed
	indents bool // a line has the indentation of an action
	bare    bool // the lines after the first have no prefix
	old     bool
	taken   int // lines that are not empty
	limit   int // the width at which lines are wrapped, 0 if none is
}

var (
	stageLine = lazyregexp.New(`^ {0,1}\d{1,3}\. (?:\S|$)`)
	// switchLine matches the lines of ofproto/trace that have no indentation.
	switchLine = lazyregexp.New(`^(?:Flow: |Bridge: |bridge\("|-{3,}$|={20,}$|Final flow: |Megaflow: |Relevant fields: |Datapath actions: |Rule: |OpenFlow actions=|Resubmitted |No match|recirc\(|Translation failed|This flow is handled)`)
	// logicalLine matches the lines of ovn-trace that have none.
	logicalLine = lazyregexp.New(`^(?:[a-z_0-9]+(?: \{|\(.*|)$|-{3,}$|\d{1,3}\. |/\*|\*\*\*|\};?$|select: |LOG: )|[;{]$|\*/$`)
	tailLine    = lazyregexp.New(`^(?:This flow is handled by the userspace|\s*- .*\.$|Translation failed|={20,}$|recirc\(|Trace reached the rec|Queued but not| ?Replacing src/dst| ?(?:Initial|Modified) flow:)`)
	// headLine matches the lines of the heading of a further pass below its first.
	headLine = lazyregexp.New(`^ ?(?:Replacing src/dst|Initial flow:|Modified flow:)`)
	// gapLine matches what stands for lines that were left out.
	gapLine = lazyregexp.New(`(?i)^\W*(?:\.{3,}|…|(?:snip|snipped|truncated|skipped|omitted|--more--)\b.*)\W*$`)
	// flatAction matches the actions and remarks of a trace that has lost its indentation.
	flatAction = lazyregexp.New(`^(?:\S+$|->|>>|[a-z_0-9]+[(:=]|\S+ <<<<$|Restoring actions|Resuming from|bucket |skipping output|suppressing side)`)
)

// Take adds a line to the output, and returns false for one that does not belong to it.
func (r *Reader) Take(line string) bool {
	if len(line) > maxLine {
		return false
	}
	if r.waits {
		return r.begin(line)
	}
	plain, ok := r.withoutPrefix(line)
	if !ok {
		if r.taken > 1 || !switchLine.MatchString(line) && !beginsLogical(line) {
			return false
		}
		r.bare, plain = true, line // only the first line of a message has it
	}
	switch {
	case plain == "":
		r.addBlank()
		return true
	case gapLine.MatchString(plain):
		r.gaps++
		return true
	case r.tool == Logical:
		return r.takeLogical(plain)
	case r.ended:
		return r.takeTail(plain)
	}
	return r.takeSwitch(plain)
}

// begin looks for the first line behind the command line.
func (r *Reader) begin(line string) bool {
	var finder Finder
	found := finder.Next(line)
	switch {
	case found != nil && found.tool == r.tool:
		*r = *found
	case r.tool == Switch && strings.HasPrefix(line, "Bridge: "):
		r.waits = false
		r.add(line, len(line))
	case switchLine.MatchString(line) && r.tool == Switch && !strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "="):
		r.waits = false
		return r.Take(line) // the beginning was left out
	default:
		r.waited++
		return r.waited <= maxWait
	}
	return true
}

// withoutPrefix returns a line without what stands before each line of the output.
func (r *Reader) withoutPrefix(line string) (string, bool) {
	if r.bare || r.prefix == "" {
		return line, true
	}
	at := 0
	for i := 0; i < len(r.prefix); i++ {
		switch c := r.prefix[i]; {
		case isDigit(c):
			begin := at
			for at < len(line) && isDigit(line[at]) {
				at++
			}
			for i+1 < len(r.prefix) && isDigit(r.prefix[i+1]) {
				i++
			}
			if at == begin {
				return "", strings.TrimSpace(line) == ""
			}
		case at < len(line) && line[at] == c:
			at++
		default: // an empty line has no blanks at its end
			return "", at >= len(line) && strings.TrimSpace(r.prefix[i:]) == "" || strings.TrimSpace(line) == ""
		}
	}
	return line[at:], true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (r *Reader) add(line string, width int) {
	r.lines = append(r.lines, line)
	r.widths = append(r.widths, width)
	r.blank = false
	r.taken++
}

func (r *Reader) addBlank() {
	if n := len(r.lines); n > 0 && strings.HasPrefix(r.lines[n-1], "bridge(") { // nothing empty follows the name of a bridge
		r.doubled = true
	}
	r.blank = !r.doubled
	if n := len(r.lines); n > 0 && r.lines[n-1] != "" && !r.doubled {
		r.lines = append(r.lines, "")
		r.widths = append(r.widths, 0)
	}
}

// join adds a line to the one that a terminal has wrapped, and returns false if it can't be the rest of it.
func (r *Reader) join(line string) bool {
	n := len(r.lines) - 1
	const least = 60 // bytes of the shortest line that a program wraps
	if n < 0 || r.widths[n] < least || len(r.lines[n])+len(line) > maxLine || !r.isWrapped() && strings.ContainsAny(line, " \t") && !strings.ContainsAny(line, "=0") {
		return false
	}
	if r.limit == 0 {
		r.limit = r.widths[n]
	}
	r.lines[n] += line
	r.widths[n] = len(line)
	return true
}

// isWrapped reports whether the last line is as long as the one that was found to be wrapped first.
func (r *Reader) isWrapped() bool {
	n := len(r.lines) - 1
	return n >= 0 && r.limit > 0 && r.widths[n] == r.limit && r.lines[n] != ""
}

// takeSwitch takes a line up to the datapath actions.
func (r *Reader) takeSwitch(line string) bool {
	blank := r.blank
	isTitle := switchLine.MatchString(line)
	isStage := stageLine.MatchString(line)
	indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
	switch {
	case r.isWrapped() && !isTitle && !isStage && !strings.HasPrefix(line, "    "):
		return r.join(line)
	case strings.HasPrefix(line, "Flow: ") && r.hasPacket(), strings.HasPrefix(line, "Bridge: ") && len(r.lines) > 0:
		return false // the next output
	case isTitle:
		r.old = r.old || strings.HasPrefix(line, "Rule: ") || strings.HasPrefix(line, "Bridge: ")
		r.ended = strings.HasPrefix(line, "Datapath actions: ")
	case isStage:
		r.staged = true
	case indented:
		r.indents = r.indents || r.staged
	case !r.old && (r.indents || !r.staged || r.isOpen() && strings.Contains(line, "priority") || strings.HasPrefix(line, "cookie ")):
		return r.join(line)
	case blank && r.staged, !r.old && !flatAction.MatchString(line) && !isWarning(line):
		return false
	}
	r.goesOn = false
	r.add(line, len(line))
	return true
}

// isWarning reports whether a line may be a warning of ovs-vswitchd (">> native tunnel routing failed") of which a mail or Markdown
// has taken the signs for a quotation.
func isWarning(line string) bool {
	return len(line) <= 120 && line[0] >= 'a' && line[0] <= 'z' && !strings.HasSuffix(line, ".")
}

// isOpen reports whether the last line is a flow without its priority.
func (r *Reader) isOpen() bool {
	last := r.lines[len(r.lines)-1]
	return stageLine.MatchString(last) && !strings.Contains(last, "priority ") && !strings.Contains(last, "No match")
}

// hasPacket reports whether the pass that is read has its packet already.
func (r *Reader) hasPacket() bool {
	for i := len(r.lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(r.lines[i], "Flow: ") {
			return !r.goesOn
		}
		if strings.HasPrefix(r.lines[i], "Datapath actions: ") {
			return false
		}
	}
	return false
}

// takeTail takes a line behind the datapath actions.
func (r *Reader) takeTail(line string) bool {
	isNext := strings.HasPrefix(line, "Flow: ") || strings.HasPrefix(line, "Bridge: ")
	switch {
	case isNext && !r.goesOn:
		return false
	case r.isWrapped() && !isNext && !tailLine.MatchString(line):
		return r.join(line)
	case isNext:
		r.ended = false
		r.add(line, len(line))
		return true
	case tailLine.MatchString(line):
		r.goesOn = r.goesOn || strings.HasPrefix(line, "=") || strings.HasPrefix(line, "recirc(")
		r.add(line, len(line))
		return true
	}
	return !r.blank && !r.goesOn && strings.ContainsAny(line, "(),=") && r.join(line)
}

// takeLogical takes a line of ovn-trace.
func (r *Reader) takeLogical(line string) bool {
	indented := strings.HasPrefix(line, " ")
	switch {
	case strings.HasPrefix(line, "# ") && len(r.lines) > 0:
		return false
	case strings.HasPrefix(line, "# "), indented, logicalLine.MatchString(line):
		r.indents = r.indents || indented && !stageLine.MatchString(line)
		r.staged = r.staged || stageLine.MatchString(line)
		r.add(line, len(line))
		return true
	}
	return !r.blank && r.join(line)
}

// Trace returns what was taken.
func (r *Reader) Trace() Trace {
	t := Trace{Tool: r.tool}
	for len(r.lines) > 0 && r.lines[len(r.lines)-1] == "" {
		r.lines = r.lines[:len(r.lines)-1]
	}
	t.Flat = r.tool == Switch && r.staged && !r.indents && !r.old && r.hasActions()
	var text strings.Builder
	isHead := false // in the heading of a further pass
	for _, line := range r.lines {
		if t.Flat {
			line = indent(line)
		}
		switch {
		case strings.HasPrefix(line, "=="): // Markdown and Jira take it for the line below a heading
		case strings.HasPrefix(line, "recirc("), strings.HasPrefix(line, "Trace reached the recirculation limit"):
			isHead = true
			text.WriteString(separator + "\n" + line + "\n")
		case isHead && !headLine.MatchString(line):
			isHead = false
			text.WriteString(separator + "\n" + line + "\n")
		default:
			text.WriteString(line + "\n")
		}
	}
	t.Text = text.String()
	if r.gaps > 0 {
		t.Lacks = append(t.Lacks, fmt.Sprintf("lines were left out in %d places", r.gaps))
	}
	if r.tool == Switch && !r.ended {
		t.Lacks = append(t.Lacks, "it ends before its datapath actions")
	}
	return t
}

// Tool returns the tool whose output it is.
func (r *Reader) Tool() Tool { return r.tool }

// IsEmpty reports whether nothing was taken.
func (r *Reader) IsEmpty() bool { return len(r.lines) == 0 }

// hasActions reports whether a line is neither a title nor a flow.
func (r *Reader) hasActions() bool {
	for _, line := range r.lines {
		if line != "" && !switchLine.MatchString(line) && !stageLine.MatchString(line) && !tailLine.MatchString(line) {
			return true
		}
	}
	return false
}

// indent returns a line of an output without indentation as ofproto/trace prints it. A ">" before a remark, which
// mails and Markdown take for a quotation, is put back where the remark shows that it lacks.
func indent(line string) string {
	switch {
	case line == "", switchLine.MatchString(line), tailLine.MatchString(line) && !strings.HasPrefix(line, "->"):
		return line
	case stageLine.MatchString(line):
		return fmt.Sprintf("%3s", line[:strings.IndexByte(line, '.')+1]) + line[strings.IndexByte(line, '.')+1:]
	case strings.HasSuffix(line, " <<<<"):
		return "     >>>> " + strings.TrimLeft(line, "> ")
	case strings.HasPrefix(line, "skipping output to input port"), strings.HasPrefix(line, "suppressing side effects"), !flatAction.MatchString(line):
		return "     >> " + line
	case strings.HasPrefix(line, "->"), strings.HasPrefix(line, ">>"):
		return "     " + line
	}
	return "    " + line
}
