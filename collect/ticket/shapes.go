package ticket

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// shape is how the lines of an output look that no header announces.
type shape struct {
	command recording.Name
	line    *lazyregexp.Regexp // matches the beginning of an entry
	rest    *lazyregexp.Regexp // matches what can be another line of one that a program has wrapped
	end     string             // is in each whole entry; "" for nothing
	// first matches the first line where no command line is above it, nil for one that line matches. The lines of such an output are
	// no entries, and keep their indentation.
	first *lazyregexp.Regexp
	// entry matches the beginning of an entry in a line, before which marks may stand; nil for rows that are no entries.
	entry *lazyregexp.Regexp
}

// shapes returns the outputs that their lines tell, also without a command line.
func shapes() []shape {
	return []shape{
		{command: workdir.RecordedDatapathFlows, line: datapathFlow, rest: restOfFlow, end: "actions:", entry: datapathEntry},
		{command: workdir.RecordedConntrack, line: datapathConnection, rest: restOfFlow, end: "reply=(", entry: lazyregexp.New(`[a-z0-9]+,orig=\(src=`)},
		{command: workdir.NamespaceConntrack, line: kernelConnection, rest: restOfKernel, end: " use="},
		{command: workdir.HostShownNB, line: shownNetwork, first: networkRow},
		{command: workdir.HostShownSB, line: shownChassis, first: chassisRow},
	}
}

var (
	// datapathFlow matches the beginning of a flow of the datapath (lib/odp-util.c, odp_flow_format).
	datapathEntry = lazyregexp.New(`(?:ufid:[0-9a-f-]{36}|recirc_id\(|(?:skb_priority|tunnel|in_port)\(.*(?:eth|eth_type)\()`)
	datapathFlow  = lazyregexp.New(`^\s*(?:ufid:[0-9a-f-]{36},? (?:recirc_id|skb_priority|tunnel|in_port)\(|recirc_id\(|(?:skb_priority|tunnel|in_port)\(.*(?:eth|eth_type)\()`)
	restOfFlow    = lazyregexp.New(`^(?:[\w().:=/<>|+*%#{}"@;~-]|, ?)+$`)
	restOfKernel  = lazyregexp.New(`^[\w .:=\[\]-]+$`)
	// shownNetwork matches the lines of ovn-nbctl show, and shownChassis those of ovn-sbctl show.
	shownNetwork = lazyregexp.New(`^\s*(?:(?:switch|router) ` + uuid + `|port \S|nat ` + uuid + `|(?:type|parent|tag|addresses|router-port|mac|ipv6-lla|networks|gateway chassis|external ip|external port\(s\)|logical ip|logical port|external mac|type|options): )`)
	shownChassis = lazyregexp.New(`^\s*(?:Chassis \S+$|hostname: |Encap \S+$|ip: |options: \{|Port_Binding \S|\S+ port_binding )`)
	chassisRow   = lazyregexp.New(`^Chassis (?:"[^"]+"|[\w.-]+)$`)
	// flowHeading matches what dpctl/dump-flows prints above the flows of a thread.
	flowHeading = lazyregexp.New(`^flow-dump from [a-z].*:`)
	// flowStatistic matches the beginning of what is printed between the match and the actions of a flow.
	flowStatistic = lazyregexp.New(`^(?:packets|bytes|used|flags|offloaded|dp|actions):`)
	// datapathConnection matches a line of dpctl/dump-conntrack.
	datapathConnection = lazyregexp.New(`^\s*[a-z0-9()]+,orig=\(src=`)
	// kernelConnection matches a line of conntrack -L and of /proc/net/nf_conntrack.
	kernelConnection = lazyregexp.New(`^\s*(?:ipv[46] +\d+ )?[a-z0-9]+ +\d+ (?:\d+ )?(?:[A-Z0-9_]+ )?src=[0-9a-fA-F.:]+ dst=`)
)

// shapeOf returns the shape of the output of a command, nil for a command whose output has none.
func shapeOf(command recording.Name) *shape {
	for _, s := range shapes() {
		if s.command == command {
			return &s
		}
	}
	return nil
}

// begins reports whether a line begins an entry of the output.
func (s *shape) begins(line string) bool { return s.line.MatchString(line) }

// bare returns a line without the marks that people put round an entry.
func (s *shape) bare(line string) string {
	if s.entry == nil {
		return line
	}
	text := unmarked(line)
	at := s.entry.FindStringIndex(text)
	if at == nil || at[0] > 0 && !labels.MatchString(text[:at[0]]) {
		return line
	}
	return strings.TrimRight(pointers.ReplaceAllString(text[at[0]:], ""), " |")
}

// addShaped adds a line to an open output whose lines have a shape, or ends that. Other text may stand between its lines.
func (s *splitter) addShaped(line string, width int) {
	r := s.open
	if bare := r.shape.bare(line); bare != line {
		line, width = bare, width-(len(line)-len(bare))
	}
	spaced := r.ended
	r.ended = line == ""
	switch {
	case r.shape.first != nil && r.shape.begins(line):
		r.output.WriteString(line + "\n")
	case r.shape.begins(line):
		r.endEntry()
		r.wrapped = entry{text: strings.TrimSpace(line), width: width, lines: 1}
	case r.wraps(line):
		r.joinEntry(line, width)
	case flowHeading.MatchString(line):
		r.endEntry()
		r.output.WriteString(line + "\n")
	case isGap(line, spaced) || isBreak(line) && r.wrapped.lines > 0:
		r.Partial = []string{"lines were left out"}
	case isHeadline(line), nodeOfHeading(line) != "", recording.IsLogLine(line), s.shapeFor(line) != nil:
		s.end()
		s.addLoose(line, width)
	case isFence(line) && r.output.Len() > 0:
		s.end()
	}
}

// wraps reports whether a line can be the rest of the last entry, which a program has wrapped.
func (r *running) wraps(line string) bool {
	e := r.wrapped
	if r.shape.rest == nil || e.lines == 0 || e.lines >= maxLines || len(e.text)+len(line) > maxEntry || !r.shape.rest.MatchString(line) {
		return false
	}
	return !r.shape.isWhole(e.text) || isTerminal(e.width)
}

// isWhole reports whether a text can be all of an entry.
func (s *shape) isWhole(text string) bool {
	_, last, found := strings.Cut(text, s.end)
	return found && last != "" && strings.Count(text, "(") <= strings.Count(text, ")") && !strings.HasSuffix(text, ",")
}

// joinEntry adds a line to the last entry. Terminals wrap inside of words, mail programs between them.
func (r *running) joinEntry(line string, width int) {
	e := &r.wrapped
	rest := strings.TrimLeft(line, " ")
	between := r.shape.rest == restOfKernel && !isTerminal(e.width) || flowStatistic.MatchString(rest) && strings.HasSuffix(e.text, ",")
	if between || e.lines == 1 && e.width > len(e.text) && isTerminal(e.width) && r.shape.rest == restOfKernel {
		e.text += " "
	}
	e.text += rest
	e.width, e.lines = width, e.lines+1
}

// endEntry adds the last entry to the output.
func (r *running) endEntry() {
	if r.wrapped.lines > 0 {
		r.output.WriteString(r.wrapped.text + "\n")
	}
	r.wrapped = entry{}
}

// shapeFor returns the shape whose output a line begins, nil for none.
func (s *splitter) shapeFor(line string) *shape {
	if !strings.ContainsAny(line, "(=") && !strings.HasPrefix(line, "Chassis ") && !strings.HasPrefix(line, "switch ") && !strings.HasPrefix(line, "router ") {
		return nil
	}
	for _, one := range s.shapes {
		if one.first == nil && one.begins(one.bare(line)) || one.first != nil && one.first.MatchString(line) && (s.open == nil || s.open.shape == nil || s.open.shape.command != one.command) {
			return &one
		}
	}
	return nil
}

// beginShaped opens an output whose command is not in the text with its first line.
func (s *splitter) beginShaped(of *shape, line string, width int) {
	s.beginLoose(line, of.command)
	if s.open == nil {
		return
	}
	s.open.output.Reset()
	s.open.shape = of
	s.addShaped(line, width)
}

// fits reports whether a text has a whole entry of the shape, or the heading of a list without entries.
func (s *shape) fits(text string) bool {
	if s.first != nil {
		line, _, _ := strings.Cut(text, "\n")
		return s.begins(line)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if s.begins(line) && s.isWhole(line) && (s.command != workdir.RecordedDatapathFlows || strings.Contains(line, ", packets:")) {
			return true
		}
	}
	return s.command == workdir.RecordedDatapathFlows && flowHeading.MatchString(text)
}
