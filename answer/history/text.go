package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/pkg/ovsdb/file"
)

// TextOptions are the options of texts for people.
type TextOptions struct {
	Verbose  bool // print values whole, and each column of added and deleted rows
	Several  bool // databases: each line names its own
	Widest   int  // of their names
	Selected bool // rows were asked for by table, record or column
	Columns  bool // a column was asked for
}

// DatabaseName returns the name of a database of one of several nodes.
func DatabaseName(node, title string) string { return strings.TrimSpace(node + " " + title) }

// OptionsFor returns the options for the history of databases that a query asks for.
func OptionsFor(q Query, sources []Source, verbose bool) TextOptions {
	options := TextOptions{Verbose: verbose, Several: len(sources) > 1, Columns: q.Column != "",
		Selected: q.Table != "" || q.Record != "" || q.Column != ""}
	for _, s := range sources {
		options.Widest = max(options.Widest, len(s.name()))
	}
	return options
}

// PrintTitle prints a line with the database and the time of the state.
func (s *State) PrintTitle(p *show.Page) {
	p.Printf("%s as of %s (transaction %d)\n", terminal.Escape(DatabaseName(s.Node, s.Database)), timeText(s.Time), s.Transaction)
}

// Print prints the state below its title: the number of rows of each table, and the rows whole.
func (s *State) Print(page *show.Page) {
	s.PrintTitle(page)
	for _, table := range slices.Sorted(maps.Keys(s.Tables)) {
		page.Printf("  %s: %d\n", terminal.Escape(table), s.Tables[table])
	}
	for _, r := range s.Rows {
		var b strings.Builder
		TextOptions{Verbose: true}.writeRow(&b, r)
		page.Printf("%s", b.String())
	}
}

// Note returns a sentence about a file that holds one state only; "" for others.
func (r Result) Note() string {
	if !r.Compacted {
		return ""
	}
	return fmt.Sprintf("%s: the file holds the state of %s only: compacted", r.Database, timeText(r.Base))
}

// Text returns the event as lines for people.
func (e *Event) Text(options TextOptions) string {
	var b strings.Builder
	b.WriteString(timeText(e.Time) + "  ")
	if options.Several {
		fmt.Fprintf(&b, "%-*s  ", options.Widest, terminal.Escape(DatabaseName(e.Node, e.Database)))
	}
	b.WriteString(options.headText(e) + "\n")
	options.writeRows(&b, e.Rows)
	for _, r := range e.Requests {
		options.writeRequest(&b, r)
	}
	return b.String()
}

// headText describes who made a transaction, and how.
func (o TextOptions) headText(event *Event) string {
	comment := o.short(event.Comment)
	switch {
	case event.Schema != "":
		return fmt.Sprintf("converted to schema %s (%d rows)", terminal.Escape(event.Schema), event.Count)
	case event.Base:
		return fmt.Sprintf("the whole content, %d rows (%s): earlier transactions are not in the file", event.Count, terminal.Escape(cmp.Or(comment, "a snapshot of the cluster's log")))
	case event.Log != "":
		return fmt.Sprintf("libovsdb client asks for %d operations (%s)", event.Count, terminal.Escape(event.Log))
	}
	return cmp.Or(comment, "(no comment)")
}

// writeRows writes the lines of rows: without --detail, one line for many added or deleted rows
// of a table.
func (o TextOptions) writeRows(b *strings.Builder, rows []Row) {
	const most = 8
	type group struct {
		table  string
		change file.ChangeKind
	}
	count := map[group]int{}
	for _, r := range rows {
		count[group{r.Table, r.Change}]++
	}
	for _, row := range rows {
		kind := group{row.Table, row.Change}
		if n := count[kind]; n == 0 {
			continue
		} else if n > most && row.Change != file.Modified && !o.Verbose && !o.Selected {
			fmt.Fprintf(b, "  %s %s: %d rows\n", sign(row.Change), terminal.Escape(row.Table), n)
			count[kind] = 0
			continue
		}
		o.writeRow(b, row)
	}
}

func sign(change file.ChangeKind) string {
	return map[file.ChangeKind]string{file.Inserted: "+", file.Modified: "~", file.Deleted: "-", file.Present: "="}[change]
}

// writeRow writes the lines of a row.
func (o TextOptions) writeRow(b *strings.Builder, row Row) {
	name := terminal.Escape(phrase.Shorten(row.Name, 80))
	if row.OldName != "" && row.Change == file.Modified {
		name = terminal.Escape(phrase.Shorten(row.OldName, 80)) + " -> " + name
	}
	fmt.Fprintf(b, "  %s %s %s", sign(row.Change), terminal.Escape(row.Table), strings.TrimSpace(fmt.Sprintf("%s (%.8s)", name, row.UUID)))
	names := slices.Sorted(maps.Keys(row.Columns))
	if row.Change != file.Modified && !o.Verbose && !o.Columns {
		names = nil
	}
	for i, name := range names {
		separator := ": "
		if len(names) > 1 || o.Verbose {
			separator = "\n      "
		} else if i > 0 {
			separator = ", "
		}
		b.WriteString(separator + terminal.Escape(name) + " " + o.columnText(row.Columns[name], row.Change))
	}
	b.WriteString("\n")
}

// columnText returns the change of a column.
func (o TextOptions) columnText(column Column, change file.ChangeKind) string {
	switch {
	case change == file.Deleted:
		return o.value(column.Old)
	case change != file.Modified:
		return o.value(column.New)
	case column.Added == nil && column.Removed == nil:
		return o.value(column.Old) + " -> " + o.value(column.New)
	}
	var words []string
	for _, element := range column.Removed {
		words = append(words, "-"+o.value(element))
	}
	for _, element := range column.Added {
		words = append(words, "+"+o.value(element))
	}
	const most = 6
	if more := len(words) - most; more > 0 && !o.Verbose {
		words = append(words[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, " ")
}

// writeRequest writes the lines of an operation.
func (o TextOptions) writeRequest(b *strings.Builder, request Request) {
	fmt.Fprintf(b, "  > %s %s", request.Operation, terminal.Escape(request.Table))
	if request.UUID != "" {
		fmt.Fprintf(b, " (%.8s)", request.UUID)
	}
	for _, text := range []string{request.Row, request.Mutations} {
		if text != "" {
			b.WriteString("\n      " + o.value(text))
		}
	}
	if request.Where != "" && (request.UUID == "" || o.Verbose) {
		b.WriteString("\n      where " + o.value(request.Where))
	}
	b.WriteString("\n")
}

// uuids matches a UUID, and a string in quotation marks, which is never taken as one.
var uuids = lazyregexp.New(`"(?:[^"\\]|\\.)*"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// shortUUID returns the beginning of a UUID that uuids has found.
func shortUUID(found string) string {
	if strings.HasPrefix(found, `"`) {
		return found
	}
	return found[:8]
}

// value returns the text of a value: whole with --detail, else with the beginnings of UUIDs, and
// shortened.
func (o TextOptions) value(text string) string {
	if !o.Verbose {
		text = phrase.Shorten(uuids.ReplaceAllStringFunc(text, shortUUID), 100)
	}
	return terminal.Escape(text)
}

// short returns a comment, whole with --detail.
func (o TextOptions) short(comment string) string {
	comment = strings.ReplaceAll(strings.TrimSpace(comment), "\n", "; ") // each client of a transaction wrote a line
	if !o.Verbose {
		comment = phrase.Shorten(comment, 200)
	}
	return terminal.Escape(comment)
}

// timeText prints a time with its milliseconds, which tell transactions apart.
func timeText(at time.Time) string {
	if at.IsZero() {
		return fmt.Sprintf("%-*s", len(TimeFormat), "(no time)")
	}
	return at.UTC().Format(TimeFormat)
}
