// Package ticket finds the outputs of recorded commands in text that people paste: Markdown,
// HTML, mails, and logs of terminals.
package ticket

import (
	"bytes"
	"regexp"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// MaxBytes is the size of the longest text that Split takes.
const MaxBytes = 64 << 20

// Piece is the output of one command.
type Piece struct {
	Host string // in the prompt before the command, "" for none
	Line int    // of the command, from 1
	Run  recording.Invocation
	Text string
}

// Mentions reports whether a text may have pieces: a line of it names a recorded command.
func Mentions(start []byte) bool {
	for line := range strings.Lines(string(start)) {
		if _, ok := readCommand(plain(line)); ok {
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

// Split returns the pieces of a text, in their order. What follows a command line belongs to
// it up to the next prompt, the end of a code block, or for most commands an empty line.
func Split(text string) []Piece {
	if isHTML(text) {
		text = textOfHTML(text)
	}
	var s splitter
	for line := range strings.Lines(text) {
		s.add(plain(line))
	}
	s.end()
	return s.pieces
}

// splitter reads the lines of a text.
type splitter struct {
	line   int
	open   *Piece // the piece that the next lines belong to, nil for none
	prose  bool   // a sentence named the command of the open piece
	output strings.Builder
	pieces []Piece
}

func (s *splitter) add(line string) {
	s.line++
	if command, ok := readCommand(line); ok {
		s.end()
		s.open = &Piece{Host: command.host, Line: s.line, Run: command.run}
		s.prose = command.prose
		return
	}
	switch {
	case s.open == nil:
	case isPrompt(line) && !isRemark(line), isSection(line), isFence(line) && s.output.Len() > 0, line == "" && s.output.Len() > 0 && isDense(s.open.Run.Command):
		s.end()
	case isFence(line), line == "" && s.output.Len() == 0:
	default:
		s.output.WriteString(line)
		s.output.WriteByte('\n')
	}
}

// end ends the open piece, and drops it if its text is not an output of its command.
func (s *splitter) end() {
	if s.open != nil {
		s.open.Text = s.output.String()
		if s.open.fits(s.prose) {
			s.pieces = append(s.pieces, *s.open)
		}
	}
	s.open = nil
	s.output.Reset()
}

// fits reports whether the text can be the output of the command. Only some outputs can be
// told from prose.
func (p *Piece) fits(prose bool) bool {
	kind, version := openflow.Identify([]byte(p.Text))
	switch {
	case p.Text == "":
		return false
	case p.Run.Command.Name == recording.Name(kind):
		p.Run.OpenFlow = max(p.Run.OpenFlow, version)
		return true
	case p.Run.Command.Dump != "":
		return false
	case p.Run.Command.Name == workdir.RecordedSwitchShow:
		return shownBridge.MatchString(p.Text)
	case p.Run.Command.Name == recording.LogicalFlows:
		return strings.HasPrefix(p.Text, "Datapath: ")
	case p.Run.Command.Prints != "":
		return strings.HasPrefix(p.Text, "_uuid ")
	}
	return !prose
}

var shownBridge = regexp.MustCompile(`(?m)^ *Bridge `)

// isDense reports whether the output of a command has no empty lines.
func isDense(command recording.Command) bool {
	return command.Dump != "" && command.Dump != workdir.TLV || command.Name == workdir.RecordedSwitchShow || command.Name == workdir.RecordedShow
}
