package ticket

import (
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// isTable reports whether the command prints the rows of a table.
func (p *Piece) isTable() bool {
	return p.Run.Command.Scope == recording.OfTable || p.Run.Part != nil || strings.HasPrefix(string(p.Run.Command.Name), "list-")
}

// close ends the open piece where a prompt follows. A command that prints nothing of a table found no rows.
func (s *splitter) close() {
	if s.open != nil && s.open.output.Len() == 0 && (s.open.Run.Command.Prints != "" || s.open.Run.Part != nil) && s.open.isTable() {
		s.open.Empty = true
	}
	s.end()
}

// dropEmpty drops the empty tables of a text in which no table of their database has rows: its command lines may stand there to
// be run.
func (s *splitter) dropEmpty() {
	has := map[workdir.Kind]bool{}
	for _, p := range s.pieces {
		if p.Rows != nil && p.Text != "" {
			has[p.Rows.Kind] = true
		}
		has[p.Run.Command.Prints] = has[p.Run.Command.Prints] || p.Text != ""
	}
	s.pieces = slices.DeleteFunc(s.pieces, func(p Piece) bool { return p.Empty && p.Rows == nil && !has[p.Run.Command.Prints] })
}

// Rows is what is known of a table of which some rows or some columns were printed.
type Rows struct {
	Kind    workdir.Kind
	Table   string   // as the command line spells it
	Columns []string // which each row has, but for values that can't be read; nil for all
	All     bool     // these are all rows of the table
	// Unnamed reports that the UUIDs of the rows were not printed.
	Unnamed bool
	Asked   string // the command line
}

// readPart reads the output as a part of a table, and turns it into the form of ovs-vsctl list.
func (r *running) readPart() bool {
	part := r.Run.Part
	if part.List != "" {
		return r.readList()
	}
	rows, columns, identified, cut, ok := ovsdb.ReadPart(r.Text, r.Run.Argument, ovsdb.PartForm{Columns: part.Columns, Format: part.Format, Bare: part.Bare, NoHeadings: part.NoHeadings})
	if !ok {
		return false
	}
	if cut {
		r.Partial = append(r.Partial, "it ends within a row, or other text stands in it")
	}
	r.tellRows(columns, part.Rows == "" && r.Run.Filter == "" && !cut && !hasGap(r.Text))
	r.Rows.Unnamed = !identified
	if part.Columns == nil && !part.Bare && !cut && r.Run.Filter == "" {
		r.Rows.Columns = nil
	}
	r.Text = ovsdb.List(rows)
	return true
}

// readList reads the output of a command that lists rows in a form of its own, and turns it into the form of ovs-vsctl list.
func (r *running) readList() bool {
	if !keepsLines(r.Run.Filter) {
		return false
	}
	list, ok := ovn.ReadList(r.Run.Part.List, r.Text, r.Run.Filter == "" && !hasGap(r.Text))
	if !ok || len(list.Rows) == 0 {
		return false
	}
	r.Partial = append(r.Partial, list.Lost...)
	columns := map[string]bool{}
	for _, row := range list.Rows {
		for _, value := range row.Columns {
			columns[value.Column] = true
		}
	}
	r.tellRows(slices.Sorted(maps.Keys(columns)), false)
	r.Rows.Unnamed = list.Unnamed
	r.Text = ovsdb.List(list.Rows)
	return true
}

// keepsLines reports whether a filter leaves out lines alone, and no parts of them.
func keepsLines(filter string) bool {
	for program := range strings.SplitSeq(strings.TrimPrefix(filter, "| "), " | ") {
		words := strings.Fields(program)
		if len(words) > 0 && (!slices.Contains([]string{"grep", "egrep", "fgrep", "head", "tail"}, words[0]) || slices.Contains(words, "-o") || slices.Contains(words, "-c")) {
			return false
		}
	}
	return true
}

// tellRows notes what the output tells of its table.
func (r *running) tellRows(columns []string, all bool) {
	at := slices.IndexFunc(workdir.Kinds(), func(kind workdir.Kind) bool {
		return strings.HasPrefix(r.Run.Command.Line, recording.ToolOf(kind)+" ")
	})
	table := r.Run.Argument
	if table == "" { // the name of the command has it
		_, table, _ = strings.Cut(r.Run.Command.Line, " list ")
	}
	r.Rows = &Rows{Kind: workdir.Kinds()[at], Table: table, Columns: columns, All: all, Asked: phrase.Shorten(strings.Join(r.words, " "), 100)}
}

// limit makes a part of the output of a table from which a program or a person left lines out: which rows and columns are not there is
// not known.
func (r *running) limit() {
	if !r.isTable() || r.Text == "" || r.Run.Filter == "" && !hasGap(r.Text) {
		return
	}
	if _, columns, _, _, ok := ovsdb.ReadPart(r.Text, "", ovsdb.PartForm{}); ok {
		r.tellRows(columns, false)
		r.Run.Filter = ""
	}
}

// hasGap reports whether lines of a printed table were left out: a line says so.
func hasGap(text string) bool {
	for line := range strings.Lines(text) {
		if gaps.MatchString(strings.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}

// seeForm notes the output of a command that prints a table whose form is not read.
func (s *splitter) seeForm(p *Piece) {
	line := strings.TrimSpace(p.Run.Command.Line + " " + p.Run.Argument)
	if p.Run.Part != nil {
		line = phrase.Shorten(strings.Join(s.open.words, " "), 100)
	}
	isList := p.Run.Part != nil && p.Run.Part.List != ""
	if found := summaryOf(s.summaries, line); found != nil && len(s.seen) < maxSeen {
		s.seen = append(s.seen, Seen{Host: p.Host, Line: p.Line, Command: line, Instead: found.instead, form: !isList, part: isList})
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
