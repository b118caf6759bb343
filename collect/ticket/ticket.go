// Package ticket finds the outputs of recorded commands in text that people paste: Markdown,
// HTML, mails, and logs of terminals.
package ticket

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/tracetext"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// MaxBytes is the size of the longest text that Split takes.
const MaxBytes = 64 << 20

// Piece is the output of one command.
type Piece struct {
	Host string // in the prompt before the command, or where the command line has it run; "" for none
	Line int    // of the command, or of the output of an unknown one, from 1
	Run  recording.Invocation
	Text string
	// Partial is why Text is not all that the command printed, nil if it is. What Run.Filter left out is not counted.
	Partial []string
	Loose   bool // the command line is not in the text
	// Trace is what was asked about a packet and what was printed, nil for another output.
	Trace *tracetext.Trace
	// Empty reports that the next prompt follows the command line at once: the table has no rows.
	Empty bool
	// Rows is what the output tells of a table that it prints in part, nil for another output.
	Rows *Rows
}

// Text is what was found in a text.
type Text struct {
	Pieces []Piece // in their order
	// Log has the lines of logs of programs of Open vSwitch and OVN that are in no output, in their order.
	Log string
	// Unread are the command lines of Open vSwitch and OVN whose outputs nothing reads, each once.
	Unread []string
	// Seen are the outputs that print a part of each row, in their order.
	Seen []Seen
	// Unfit says of what stands below a command line and is not its output, such as an error, what it begins with.
	Unfit []string
}

// maxUnread bounds Text.Unread.
const maxUnread = 20

// Mentions reports whether a text may have pieces: a line of it names a recorded command.
func Mentions(start []byte) bool {
	for line := range strings.Lines(string(start)) {
		text, _, _ := plain(line)
		if slices.ContainsFunc(readCommands(text), func(c command) bool { return c.known }) {
			return true
		}
	}
	return false
}

// IsSectioned reports whether a text is one of supportconfig's files, whose sections name the
// command of their output. It may be far from the beginning.
func IsSectioned(start []byte) bool {
	return bytes.HasPrefix(start, []byte("#==[ ")) || bytes.Contains(start, []byte("\n#==[ "))
}

// Read finds the outputs and the lines of logs in a text. What follows a command line belongs to
// it up to the next prompt, the end of a code block, or for most commands an empty line.
func Read(text string) Text {
	if isHTML(text) {
		text = textOfHTML(text)
	}
	s := splitter{summaries: summaries(), shapes: shapes()}
	for line := range strings.Lines(text) {
		s.line++
		text, width, bare := plain(line)
		if bare && s.open != nil && s.open.dump != nil && s.open.dump.endsInArrow() {
			text = ">" + text
		}
		s.add(text, width)
	}
	s.end()
	s.dropEmpty()
	return Text{s.pieces, s.log.String(), s.unread, s.seen, s.unfit}
}

// splitter reads the lines of a text.
type splitter struct {
	line   int
	open   *running  // what the next lines belong to, nil for nothing
	next   []running // the further commands of the same line
	host   string    // the node that a heading names, "" for none
	before [2]string // the last lines that are not empty
	above  string    // the last line of no output
	pieces []Piece
	log    strings.Builder
	unread []string
	finder tracetext.Finder
	begun  string // a command line that goes on in the next line
	seen   []Seen
	// summaries are the outputs that may be seen.
	summaries []summary
	shapes    []shape // that lines without a command may have
	filter    string  // the command line before, where it prints a part of a file; "" for another one
	unfit     []string
	// variable reports that the command line before has a variable in place of a bridge, as in a loop: a line above each output may name it.
	variable bool
}

// running is a command whose output is read.
type running struct {
	Piece
	known   bool
	prose   bool // a sentence named the command
	output  strings.Builder
	dump    *dump             // nil for an output that is no dump of entries
	trace   *tracetext.Reader // nil for an output that is no trace
	words   []string          // of the command line
	shape   *shape            // nil for an output whose lines tell nothing
	wrapped entry             // the last one of an output with a shape
	others  int               // lines behind the entries of the dump that are not of it, unless an entry follows
	more    bool              // the header said that another reply follows
	indent  int               // of the command line
	fence   string            // the line that ends the block in which the output stands, "" where none or another is known
	width   int               // of the line that was written last
	braces  int               // the lines since a "{" without its "}"
	open    bool              // the line that was written last lacks its name or its value: a mail program wrapped it
	ended   bool              // an empty line was read last, which no output has that is dense
	first   string            // the first line that is not empty
}

// maxOthers is how many lines of other text may stand between the entries of a dump.
const maxOthers = 3

func (s *splitter) add(line string, width int) {
	if line, width = s.whole(line, width); s.begun != "" {
		return
	}
	defer s.remember(line)
	prompt := isPrompt(line) && !isRemark(line)
	if prompt {
		s.filter = filterOf(line)
	}
	if commands := readCommands(line); commands != nil {
		s.filter = ""
		s.variable = slices.ContainsFunc(commands, func(c command) bool { return c.known && c.run.Argument == "" && dumpOf(c.run.Command.Name) != nil })
		s.close()
		s.next = nil
		for _, c := range commands {
			if !c.known && c.unread != "" {
				s.see(c)
			}
			s.next = append(s.next, running{Piece: Piece{Host: cmp.Or(c.host, s.host), Line: s.line, Run: c.run}, known: c.known, prose: c.prose, indent: indentOf(line), fence: ruleOf(s.above),
				dump: dumpOf(c.run.Command.Name), trace: traceOf(c.run.Command), words: c.words, shape: shapeOf(c.run.Command.Name)})
		}
		s.advance()
		s.above = ""
		return
	}
	if next := slices.IndexFunc(s.next, func(r running) bool { return r.begins(line) }); next >= 0 && s.open.isOver(line, s.next[next]) {
		s.end()
		s.next = s.next[next:] // what the others printed can't be told from what is before it
		s.advance()
	}
	if s.beginTrace(line) {
		return
	}
	if s.open != nil && s.open.first == "" && !prompt && !isFence(line) {
		s.open.first = strings.TrimSpace(line)
	}
	switch {
	case s.open == nil:
		s.above = cmp.Or(line, s.above)
		s.addLoose(line, width)
	case s.open.fence != "" && line == s.open.fence:
		s.end()
		s.above = ""
	case prompt, isSection(line):
		s.close()
		s.next = nil
	case s.open.dump != nil:
		s.addToDump(line, width)
	case s.open.trace != nil:
		s.addToTrace(line, width)
	case s.open.shape != nil:
		s.addShaped(line, width)
	case s.open.isStatus() && (nodeOfHeading(line) != "" || recording.IsLogLine(line)),
		s.open.ended && nodeOfHeading(line) != "", s.open.ended && isDense(s.open.Run.Command) && !s.open.goesOn(line):
		s.end()
		s.addLoose(line, width)
	case isFence(line) && s.open.output.Len() > 0:
		s.end()
	case isFence(line), line == "" && s.open.output.Len() == 0:
	case line == "" && isDense(s.open.Run.Command):
		s.open.ended = true
	case s.open.listsPorts() && isGap(line, s.open.ended):
		s.open.Partial = []string{"lines were left out"}
	case s.open.Run.Command.Name == workdir.RecordedSwitchShow && s.open.output.Len() > 0 && shownUUID.MatchString(strings.TrimSpace(line)):
		s.beginAgain(s.open.Run, "") // of another node
		s.open.write(line, width)
	default:
		s.open.write(line, width)
	}
}

// write adds a line to the output of a command that is no dump. It joins what a program has wrapped, where brackets show that.
func (r *running) write(line string, width int) {
	joins := !r.ended && line != "" && r.braces > 0 && r.braces <= maxLines
	r.ended = line == ""
	switch {
	case r.output.Len() == 0:
	case r.open && line != "":
		r.output.WriteByte(' ')
		line = strings.TrimLeft(line, " ")
	case joins && isTerminal(r.width):
	case joins:
		r.output.WriteByte(' ')
		line = strings.TrimLeft(line, " ")
	default:
		r.output.WriteByte('\n')
	}
	if r.Run.Command.Name == workdir.RecordedSwitchShow && strings.Count(line, "{") != strings.Count(line, "}") || r.braces > 0 {
		r.braces++
		if strings.Contains(line, "}") {
			r.braces = 0
		}
	}
	r.width, r.open = width, r.Run.Command.Name == workdir.RecordedSwitchShow && openRow.MatchString(line)
	line = withoutIndent(line, r.indent)
	if isDense(r.Run.Command) { // both shows are indented by blanks
		line = withoutPointers(unmarked(line))
		bare := strings.TrimLeft(line, "\t")
		line = strings.Repeat("    ", len(line)-len(bare)) + bare
	}
	if r.Run.Command.Name == workdir.RecordedShow && shownPort.MatchString(line) {
		line = " " + strings.TrimLeft(line, " ")
	}
	r.output.WriteString(line)
}

// openRow matches a line of ovs-vsctl show whose name or value is in the next line.
var openRow = lazyregexp.New(`^\s*(?:Bridge|Port|Interface|Controller|Manager|[a-z_]+:)$`)

// advance opens the next command of the line that was read last.
func (s *splitter) advance() {
	first := s.next[0]
	s.open, s.next = &first, s.next[1:]
	if !first.known && len(s.next) == 0 {
		s.open = nil
	}
}

// shownLine matches the lines of `ovs-vsctl show` and of `ovs-ofctl show` but for the first.
var shownLine = lazyregexp.New(`^(?:\s+[a-z_]+: |\s*(?:(?:Manager|Bridge|Controller|Port|Interface) (?:"[^"]*"|\S+)$|(?:is_connected|fail_mode|datapath_type|tag|trunks|type|options|error|ovs_version): |` +
	`n_tables:|capabilities:|actions: |OFPST_|(?:\d+|LOCAL)\([^)]+\): |(?:config|state|current|advertised|supported|peer|speed): |OFPT_GET_CONFIG_REPLY))`)

// goesOn reports whether a line behind an empty one is still of the output: people and programs double newlines.
func (r *running) goesOn(line string) bool { return line == "" || shownLine.MatchString(line) }

// isOver reports whether a line with which the output of another command of the same line can begin is not of the open one.
func (r *running) isOver(line string, next running) bool {
	switch {
	case !r.begins(line):
		return true
	case r.Run.Command.Name == next.Run.Command.Name && r.dump != nil:
		return r.hasEntries() && isHeadline(line) && !r.more
	}
	same := r.Run.Command.Name == next.Run.Command.Name || r.isStatus() && next.isStatus()
	return r.output.Len() > 0 && same && next.Run.Command.Name != workdir.RecordedConntrack
}

// begins reports whether a line is the first of the command's output.
func (r *running) begins(line string) bool {
	kind, _ := openflow.Identify([]byte(line))
	switch name := r.Run.Command.Name; {
	case !r.known:
		return false
	case name == recording.Name(kind):
		return true
	case name == workdir.RecordedSwitchShow:
		return shownUUID.MatchString(line)
	case name == workdir.RecordedShow:
		return strings.HasPrefix(line, "OFPT_FEATURES_REPLY")
	case r.shape != nil:
		return r.shape.begins(line)
	case name == workdir.RecordedFDB:
		return shownFDB.MatchString(line)
	case name == recording.LogicalFlows:
		return strings.HasPrefix(line, "Datapath: ")
	case r.Run.Part != nil:
		return r.Run.Part.List == "" && !r.Run.Part.NoHeadings && strings.HasPrefix(line, append(slices.Clone(r.Run.Part.Columns), "_uuid")[0])
	case r.Run.Command.Prints != "":
		return strings.HasPrefix(line, "_uuid ")
	default:
		return strings.HasPrefix(string(name), "cluster.status") && shownServer.MatchString(line)
	}
}

var (
	shownUUID   = lazyregexp.New(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	shownPort   = lazyregexp.New(`^ *(?:\d+|LOCAL)\([^)]*\): `)
	shownFDB    = lazyregexp.New(`^ *port +VLAN +MAC `)
	shownServer = lazyregexp.New(`^[0-9a-f]{4}$`)
	// namedBridge matches a line that a loop prints above the output for a bridge: "== br0", "bridge br0:".
	namedBridge = lazyregexp.New(`(?i)^\W*(?:bridge:? )?([a-z][\w.-]*?)\W*$`)
	// separator matches what Mininet's dpctl prints above the output of each switch.
	separator = lazyregexp.New(`^\*\*\* (\S+) -+$`)
	// heading matches a heading that names a node: "On node A:", "## compute-1 (hypervisor)", "**Node 2:**".
	heading = lazyregexp.New(`(?i)^\s*([#*=_+|-][\s#*=_+|-]*)?((?:on|from|at|of) )?(?:the )?(?:node|host|hypervisor|chassis|compute node|gateway node|server|machine|worker|vm)[ :]+\(?([A-Za-z0-9][\w.-]*)[)\s*:=_#-]*$`)
)

// nodeOfHeading returns the node that a heading names, "" for another line.
func nodeOfHeading(line string) string {
	if len(line) > 80 {
		return ""
	}
	match := heading.FindStringSubmatch(line)
	if match == nil || match[1]+match[2] == "" && !strings.HasSuffix(strings.TrimRight(line, " *_"), ":") {
		return "" // a part of a sentence
	}
	return strings.Trim(match[3], ".-")
}

// dumpOf returns an empty dump for a command that prints one, nil for another.
func dumpOf(name recording.Name) *dump {
	if _, ok := beginnings[openflow.Kind(name)]; !ok {
		return nil
	}
	return &dump{kind: openflow.Kind(name)}
}

func (r *running) hasEntries() bool { return r.dump != nil && len(r.dump.entries) > 0 }

// addToDump adds a line to the open dump, or ends that.
func (s *splitter) addToDump(line string, width int) {
	r := s.open
	bridge := separator.FindStringSubmatch(line)
	if spoken := unmarked(line); bridge == nil && spoken != line {
		line, width = spoken, width-(len(line)-len(spoken))
	}
	spaced := r.dump.spaced
	r.dump.spaced = line == ""
	switch {
	case bridge != nil:
		s.beginAgain(r.Run, bridge[1])
	case isHeadline(line):
		kind, version := openflow.Identify([]byte(line))
		if name := recording.Name(kind); name == r.Run.Command.Name && r.hasEntries() && !r.dump.headed && r.dump.behind == "" {
			r.dump.behind = line
			return
		} else if name != r.Run.Command.Name || r.hasEntries() && !r.more {
			s.beginLoose(line, name)
			r = s.open
		}
		if r == nil || r.dump == nil {
			return
		}
		r.more = strings.Contains(line, "flags=[more]")
		if match := namedBridge.FindStringSubmatch(s.before[1]); s.variable && r.Run.Argument == "" && match != nil {
			r.Run.Argument = match[1]
		}
		r.Run.OpenFlow = max(r.Run.OpenFlow, version)
		r.dump.add(line, width)
	case isFence(line) && r.hasEntries():
		s.end()
	case r.others == 0 && r.dump.splits(line):
		r.dump.join(line, width)
	case r.dump.belongs(line) && r.dump.behind != "":
		header := r.dump.behind
		r.dump.behind = ""
		s.end()
		s.addLoose(header, len(header))
		s.add(line, width)
	case r.dump.belongs(line):
		r.dump.add(line, width)
		r.others = 0
	case isGap(line, spaced):
		r.dump.gaps++
	case line == "(END)", s.variable && strings.HasSuffix(line, ":") && namedBridge.MatchString(line): // of less, and of a loop
	case r.hasEntries() && isBreak(line) && !recording.IsLogLine(line):
		r.dump.ending = line
	case r.others == 0 && r.dump.goesOn(line):
		r.dump.join(line, width)
	case r.others == 0 && r.dump.holds(line):
	case line == "" || isFence(line):
	case logLine(line) != "":
		s.log.WriteString(logLine(line) + "\n")
		if isBreak(line) {
			r.dump.ending = line
		}
	case strings.Contains(line, "n_packets=") && strings.Contains(line, "actions=") || strings.Contains(line, "group_id=") && strings.Contains(line, "bucket="):
		r.dump.strange++
	case nodeOfHeading(line) != "" || s.shapeFor(line) != nil:
		s.end()
		s.addLoose(line, width)
	default:
		r.dump.hunks = r.dump.hunks || isHunk(line)
		if r.others++; r.others > maxOthers {
			s.end()
		}
	}
}

// listsPorts reports whether the command prints the ports of a switch, or what these have learned, without what a dump has.
func (r *running) listsPorts() bool {
	return r.dump == nil && (isDense(r.Run.Command) || r.Run.Command.Name == workdir.RecordedFDB)
}

// beginAgain opens another output of a command, for a bridge.
func (s *splitter) beginAgain(run recording.Invocation, bridge string) {
	host := s.open.Host
	if s.open.hasEntries() || s.open.output.Len() > 0 {
		s.end()
	}
	run.Argument = bridge
	s.open = &running{Piece: Piece{Host: host, Line: s.line, Run: run}, known: true, dump: dumpOf(run.Command.Name)}
}

// beginLoose opens an output whose command is not in the text.
func (s *splitter) beginLoose(line string, name recording.Name) {
	s.end()
	command, ok := recording.Find(name)
	if !ok {
		return
	}
	s.open = &running{Piece: Piece{Host: s.host, Line: s.line, Run: recording.Invocation{Command: command, Filter: s.filter}, Loose: true}, known: true, dump: dumpOf(name)}
	if s.open.dump == nil {
		s.open.output.WriteString(line)
	}
}

// addLoose reads a line that belongs to no command. A header begins an output; entries behind the end of a dump
// are lost.
func (s *splitter) addLoose(line string, width int) {
	if node := nodeOfHeading(line); node != "" {
		s.host = node
		return
	}
	if log := logLine(line); log != "" {
		s.log.WriteString(log + "\n")
		return
	}
	if name := s.statusOf(line); name != "" {
		s.beginLoose(raft.Beginning(s.before, line), name)
		return
	}
	if isHeadline(line) {
		kind, version := openflow.Identify([]byte(line))
		s.beginLoose(line, recording.Name(kind))
		if s.open != nil && s.open.dump != nil {
			s.open.Run.OpenFlow = version
			s.open.more = strings.Contains(line, "flags=[more]")
			s.open.dump.add(line, width)
		}
		return
	}
	if of := s.shapeFor(line); of != nil {
		s.beginShaped(of, line, width)
		return
	}
	if len(s.pieces) == 0 || !strings.Contains(line, "n_packets=") {
		s.addSeen(line)
		return
	}
	last := &s.pieces[len(s.pieces)-1]
	if d := dumpOf(last.Run.Command.Name); d != nil && d.belongs(line) && len(last.Partial) < 5 {
		last.Partial = append(last.Partial, fmt.Sprintf("an entry stands behind other text, in line %d", s.line))
	}
}

// isStatus reports whether the command is cluster/status, in whose output no line of a log and no heading stands.
func (r *running) isStatus() bool {
	return strings.HasPrefix(string(r.Run.Command.Name), "cluster.status")
}

// remember keeps a line for the ones after it.
func (s *splitter) remember(line string) {
	if line != "" {
		s.before = [2]string{s.before[1], line}
	}
}

// statusOf returns the command whose output begins two or three lines before a line: cluster/status of an OVN database. It is ""
// for another line.
func (s *splitter) statusOf(line string) recording.Name {
	if !strings.HasPrefix(strings.TrimSpace(line), "Cluster ID: ") {
		return ""
	}
	switch strings.TrimSpace(s.before[1]) {
	case "Name: " + workdir.NB.Schema():
		return workdir.HostStatusNB
	case "Name: " + workdir.SB.Schema():
		return workdir.HostStatusSB
	}
	return ""
}

// end ends the open piece, and drops it if its text is not an output of its command.
func (s *splitter) end() {
	if r := s.open; r != nil && r.known {
		r.endEntry()
		r.Text = r.output.String()
		if r.Text != "" && r.shape == nil {
			r.Text += "\n"
		}
		if r.dump != nil {
			r.Text, r.Partial = r.dump.result()
		}
		if r.trace != nil {
			s.endTrace()
			return
		}
		switch {
		case r.Run.Part != nil && r.Text == "" && r.Empty && !r.prose:
			r.tellRows(nil, r.Run.Part.Rows == "" && r.Run.Part.List == "")
			s.pieces = append(s.pieces, r.Piece)
		case r.Run.Part != nil && r.readPart():
			s.pieces = append(s.pieces, r.Piece)
		case r.Run.Part == nil && r.fits(r.prose):
			r.limit()
			s.pieces = append(s.pieces, r.Piece)
			s.seeShown(&r.Piece)
		case r.isTable() && r.Text != "" && !r.prose:
			s.seeForm(&r.Piece)
		case r.first != "" && !r.prose && !r.Loose && len(s.unfit) < maxUnread:
			s.unfit = append(s.unfit, fmt.Sprintf("line %d: what stands below %s is not its output: %q", r.Line, r.Run.Command.Line, phrase.Shorten(r.first, 80)))
		}
	}
	s.open = nil
}

// fits reports whether the text can be the output of the command. Only some outputs can be
// told from prose.
func (p *Piece) fits(prose bool) bool {
	kind, version := openflow.Identify([]byte(p.Text))
	switch {
	case p.Text == "":
		return p.Empty && !prose
	case p.Run.Command.Name == recording.Name(kind):
		p.Run.OpenFlow = max(p.Run.OpenFlow, version)
		return true
	case p.Run.Command.Dump != "":
		return false
	case p.Run.Command.Name == workdir.RecordedSwitchShow:
		return shownBridge.MatchString(p.Text)
	case p.Run.Command.Name == recording.LogicalFlows:
		return strings.HasPrefix(p.Text, "Datapath: ")
	case p.isTable():
		listing, ok := ovsdb.AsListing(p.Text)
		if ok {
			p.Text, p.Empty = listing, listing == ""
		}
		return ok
	}
	if of := shapeOf(p.Run.Command.Name); of != nil {
		return of.fits(p.Text)
	}
	first, _, _ := strings.Cut(p.Text, "\n")
	return !prose || (&running{Piece: *p, known: true}).begins(first)
}

var shownBridge = lazyregexp.New(`(?m)^[ \t]*Bridge `)
