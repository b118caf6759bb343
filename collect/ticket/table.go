package ticket

import (
	"slices"
	"strings"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// isTable reports whether the command prints the rows of a table.
func (p *Piece) isTable() bool {
	return p.Run.Command.Scope == recording.OfTable || strings.HasPrefix(string(p.Run.Command.Name), "list-")
}

// close ends the open piece where a prompt follows. A command that prints nothing of a table found no rows.
func (s *splitter) close() {
	if s.open != nil && s.open.output.Len() == 0 && s.open.Run.Command.Prints != "" && s.open.isTable() {
		s.open.Empty = true
	}
	s.end()
}

// dropEmpty drops the empty tables of a text in which no table of their database has rows: its command lines may stand there to
// be run.
func (s *splitter) dropEmpty() {
	has := map[workdir.Kind]bool{}
	for _, p := range s.pieces {
		has[p.Run.Command.Prints] = has[p.Run.Command.Prints] || p.Text != ""
	}
	s.pieces = slices.DeleteFunc(s.pieces, func(p Piece) bool { return p.Empty && !has[p.Run.Command.Prints] })
}

// seeForm notes the output of a command that prints a table whose form is not read.
func (s *splitter) seeForm(p *Piece) {
	line := strings.TrimSpace(p.Run.Command.Line + " " + p.Run.Argument)
	if found := summaryOf(s.summaries, line); found != nil && len(s.seen) < maxSeen {
		s.seen = append(s.seen, Seen{Host: p.Host, Line: p.Line, Command: line, Instead: found.instead, form: true})
	}
}

// seeShown notes what an output of show has, of which no database can be made.
func (s *splitter) seeShown(p *Piece) {
	found := summaryOf(s.summaries, p.Run.Command.Line)
	if found == nil || found.row == nil || len(s.seen) == maxSeen {
		return
	}
	seen := Seen{Host: p.Host, Line: p.Line, Command: found.command, Instead: found.instead}
	for line := range strings.Lines(p.Text) {
		if noun := found.row(strings.TrimSpace(line)); noun != "" {
			seen.add(noun)
		}
	}
	s.seen = append(s.seen, seen)
}
