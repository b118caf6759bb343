package ticket

import (
	"slices"
	"strings"

	"ovs-offline/internal/tracetext"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// traceOf returns an empty reader for a command that asks about a packet, nil for another.
func traceOf(command recording.Command) *tracetext.Reader {
	switch command.Name {
	case workdir.RecordedTraces:
		return tracetext.New(tracetext.Switch)
	case workdir.RecordedLogicalTraces:
		return tracetext.New(tracetext.Logical)
	}
	return nil
}

// whole joins the lines of a command line that goes on in the next line, behind a "\" or a "|". While s.begun is not empty, the
// command line has no end yet.
func (s *splitter) whole(line string, width int) (string, int) {
	start, goesOn := strings.CutSuffix(line, "\\")
	if !goesOn && strings.HasSuffix(line, "|") && !strings.HasPrefix(strings.TrimSpace(line), "|") {
		start, goesOn = line+" ", true
	}
	if s.begun == "" && !isTraced(line) && !(goesOn && readCommands(line) != nil) || len(s.begun)+len(line) > maxTraced {
		line, s.begun = s.begun+line, ""
		return line, width
	}
	if goesOn {
		s.begun += start
		return "", 0
	}
	line, s.begun = s.begun+strings.TrimLeft(line, " \t"), ""
	return line, width
}

// beginTrace opens an output whose command line was not pasted, if the line begins one.
func (s *splitter) beginTrace(line string) bool {
	if s.open != nil && s.open.trace != nil {
		return false
	}
	found := s.finder.Next(line)
	if found == nil {
		return false
	}
	name := recording.Name(workdir.RecordedTraces)
	if found.Tool() == tracetext.Logical {
		name = workdir.RecordedLogicalTraces
	}
	command, ok := recording.Find(name)
	if !ok {
		return false
	}
	s.end()
	if len(s.next) > 0 && s.next[0].Run.Command.Name == name { // of several commands on a line
		s.advance()
		s.open.trace = found
		return true
	}
	s.next = nil
	s.open = &running{Piece: Piece{Host: s.host, Line: s.line, Run: recording.Invocation{Command: command}, Loose: true}, known: true, trace: found}
	return true
}

// addToTrace adds a line to the open trace, or ends that.
func (s *splitter) addToTrace(line string, width int) {
	switch {
	case isFence(line) && s.open.trace.IsEmpty():
	case isFence(line):
		s.end()
	case !s.open.trace.Take(line):
		s.end()
		if !s.beginTrace(line) {
			s.addLoose(line, width)
		}
	}
}

// endTrace ends the open trace. A command line without an output that can be read is named.
func (s *splitter) endTrace() {
	r := s.open
	s.open = nil
	if r.trace.IsEmpty() {
		if line := strings.Join(r.words, " "); !r.prose && len(s.unread) < maxUnread && !slices.Contains(s.unread, line) {
			s.unread = append(s.unread, line)
		}
		return
	}
	trace := r.trace.Trace()
	trace.Words = r.words
	if r.Run.Filter != "" {
		trace.Lacks = append(trace.Lacks, "it is limited to: "+r.Run.Filter)
	}
	r.Text, r.Piece.Trace = trace.Text, &trace
	s.pieces = append(s.pieces, r.Piece)
}
