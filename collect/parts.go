package collect

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

func isPart(p ticket.Piece) bool { return p.Rows != nil }

// addParts adds the outputs in a text that print some rows or some columns of a table to their nodes.
func (l *looseReader) addParts(name string, pieces []ticket.Piece) error {
	for _, p := range pieces {
		if !isPart(p) {
			continue
		}
		origin := fmt.Sprintf("%s, line %d", l.origin(name), p.Line)
		node := l.node(p.Host)
		if p.Empty && !p.Rows.All {
			node.Remarks = append(node.Remarks, fmt.Sprintf("%s: %s printed nothing: it found no row of %s then", origin, p.Rows.Asked, p.Rows.Table))
			continue
		}
		file, err := archive.Spool(l.ctx, l.spool, strings.NewReader(p.Text))
		if err != nil {
			return err
		}
		l.pasted++
		for _, reason := range p.Partial {
			node.Lost = append(node.Lost, fmt.Sprintf("%s: the output of %s is not whole: %s", origin, p.Rows.Asked, reason))
		}
		node.Parts = append(node.Parts, recording.Rows{File: file, Kind: p.Rows.Kind, Table: p.Rows.Table, Columns: p.Rows.Columns, All: p.Rows.All,
			Unnamed: p.Rows.Unnamed, Origin: origin, Asked: p.Rows.Asked})
	}
	return nil
}

// addParts puts the rows together that are known in part: those of each database become one text, which tells nothing of a table that
// is known as a whole.
func (p printed) addParts() error {
	for _, kind := range workdir.Kinds() {
		merged := map[string]*partTable{}
		for _, part := range p.node.Parts {
			if part.Kind != kind || !p.needs(part) {
				continue
			}
			name := workdir.TableName(kind, part.Table)
			if merged[name] == nil {
				merged[name] = &partTable{at: map[string]int{}, name: name}
			}
			if err := merged[name].read(part); err != nil {
				return err
			}
		}
		if err := p.addMerged(kind, merged); err != nil {
			return err
		}
	}
	p.node.Parts = nil
	return nil
}

// needs reports whether rows that are known in part tell something: no file of their database was collected, and not the whole table.
func (p printed) needs(part recording.Rows) bool {
	whole := ""
	switch has := p.wholeTable(part); {
	case slices.ContainsFunc(p.node.Databases, func(db recording.Database) bool { return db.Printed == "" && db.Kind(p.ctx) == part.Kind }):
		whole = "a file of the database"
	case has != "":
		whole = has
	default:
		return true
	}
	p.node.Remarks = append(p.node.Remarks, fmt.Sprintf("%s: the output of %s is not used, since there is %s", part.Origin, part.Asked, whole))
	return false
}

// wholeTable names the output that prints the table of a part as a whole, "" for none.
func (p printed) wholeTable(part recording.Rows) string {
	table := workdir.TableName(part.Kind, part.Table)
	for _, output := range p.node.All {
		command, _ := recording.Find(output.Command)
		switch {
		case part.Kind == workdir.OVS && string(output.Command) == workdir.RecordedList(table),
			command.Prints == part.Kind && command.Scope == recording.OfTable && workdir.TableName(part.Kind, output.Table) == table:
			return output.Origin + " with all of its table"
		case part.Kind == workdir.OVS && string(output.Command) == workdir.RecordedDatabaseDump:
			return output.Origin
		}
	}
	return ""
}

// partTable is a table of which parts were printed.
type partTable struct {
	name  string
	rows  []ovsdb.Record
	at    map[string]int // of the rows by their UUIDs
	known file.KnownTable
	parts []recording.Rows
	// changed are the columns of which two outputs print different values of a row, the last of which count.
	changed map[string]int
	left    []recording.Rows // which can't be told from the rows of others
}

// read adds an output. Rows whose UUIDs are not known can't be told from those of another output: rows with UUIDs take their
// place, and else the last of them.
func (t *partTable) read(part recording.Rows) error {
	in, err := os.Open(part.Spooled)
	if err != nil {
		return err
	}
	defer in.Close()
	rows, err := ovsdb.Listing(in)
	if err != nil {
		return err
	}
	switch {
	case part.Unnamed && len(t.parts) > 0 && !t.known.Unnamed:
		t.left = append(t.left, part)
		return nil
	case len(t.parts) > 0 && t.known.Unnamed:
		t.left = append(t.left, t.parts...)
		*t = partTable{name: t.name, at: map[string]int{}, left: t.left}
	}
	t.parts = append(t.parts, part)
	t.known.Unnamed, t.known.All = part.Unnamed, t.known.All || part.All
	for _, row := range rows {
		t.add(row)
	}
	return nil
}

// add adds a row, or the columns of one that is known.
func (t *partTable) add(row ovsdb.Record) {
	row.Columns = slices.DeleteFunc(row.Columns, func(v ovsdb.Value) bool { return !file.Readable(v.Text) })
	i, known := t.at[row.UUID]
	if !known {
		t.at[row.UUID] = len(t.rows)
		t.rows = append(t.rows, row)
		return
	}
	for _, value := range row.Columns {
		at := slices.IndexFunc(t.rows[i].Columns, func(v ovsdb.Value) bool { return v.Column == value.Column })
		if at < 0 {
			t.rows[i].Columns = append(t.rows[i].Columns, value)
			continue
		}
		if t.rows[i].Columns[at].Text != value.Text {
			if t.changed == nil {
				t.changed = map[string]int{}
			}
			t.changed[value.Column]++
		}
		t.rows[i].Columns[at] = value
	}
}

// finish returns what is known of the table: the columns that all rows have, unless each row was printed with all columns.
func (t *partTable) finish() file.KnownTable {
	t.known.Rows = len(t.rows)
	counts := map[string]int{}
	for _, row := range t.rows {
		for _, value := range row.Columns {
			counts[value.Column]++
		}
	}
	whole := !slices.ContainsFunc(t.parts, func(part recording.Rows) bool { return part.Columns != nil })
	columns := []string{}
	for column, rows := range counts {
		whole = whole && rows == len(t.rows)
		if rows == len(t.rows) {
			columns = append(columns, column)
		}
	}
	if whole {
		return t.known
	}
	if !t.known.Unnamed {
		columns = append(columns, "_uuid")
	}
	slices.Sort(columns)
	t.known.Columns = columns
	if len(t.rows) == 0 { // what was asked is known of the rows that there are none of
		t.known.Columns = slices.Clone(t.parts[len(t.parts)-1].Columns)
	}
	return t.known
}

// addMerged adds the text with the rows of a database that are known in part, and says what they are.
func (p printed) addMerged(kind workdir.Kind, merged map[string]*partTable) error {
	if len(merged) == 0 {
		return nil
	}
	partial := &workdir.Partial{Tables: map[string]file.KnownTable{}}
	texts := []io.Reader{}
	var origins []string
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		table := merged[name]
		known := table.finish()
		partial.Tables[name] = known
		texts = append(texts, strings.NewReader(name+" table\n"+ovsdb.List(table.rows)))
		origin := table.parts[0].Origin
		origins = append(origins, origin)
		p.node.Lost = append(p.node.Lost, fmt.Sprintf("%s: of the table %s of the %s database, a part was printed: %s; a replica has nothing of it: give %s", origin, name, kind.Title(), known, wholeOf(kind, name)))
		for _, column := range slices.Sorted(maps.Keys(table.changed)) {
			p.node.Remarks = append(p.node.Remarks, fmt.Sprintf("%s: %s of %s has different values in %s; the last ones count", origin, column, name, phrase.Count(table.changed[column], "row")))
		}
		for _, part := range table.left {
			p.node.Remarks = append(p.node.Remarks, fmt.Sprintf("%s: the output of %s is not used: its rows have no UUIDs, by which those of several outputs could be told apart", part.Origin, part.Asked))
		}
	}
	partial.Reasons = []string{"of these tables, some rows or some columns were printed"}
	spooled, err := archive.Spool(p.ctx, p.spool, io.MultiReader(texts...))
	if archive.CannotWrite(err) || p.ctx.Err() != nil {
		return cmp.Or(p.ctx.Err(), err)
	}
	p.node.All = append(p.node.All, recording.Output{File: spooled, Command: recording.PartOf(kind), Origin: strings.Join(origins, "; "), Partial: partial})
	return err
}

// wholeOf returns what has all of a table.
func wholeOf(kind workdir.Kind, table string) string {
	return fmt.Sprintf("the output of `%s list %s`, or the database", recording.ToolOf(kind), table)
}
