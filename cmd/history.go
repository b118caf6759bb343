package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/ovsdb/history"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
)

type historyOptions struct {
	*options
	query            history.Query
	since, until, at string
	limit            int
	save             string
	several          bool // databases: each line names its own
}

func newHistory(shared *options) *cobra.Command {
	o := &historyOptions{options: shared}
	c := &cobra.Command{
		Use: "history [conf|nb|sb]", Short: "Show who changed what in the databases, and when", Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		Long: "Show the transactions that the collected database files hold, the oldest first, and what\n" +
			"clients of libovsdb (OVN-Kubernetes) asked for where their logs were collected. A database\n" +
			"that was compacted holds one state and the transactions since then. Without an argument,\n" +
			"the transactions of all collected databases are shown in order of time. No replica needs\n" +
			"to run, and nothing that was collected is changed.\n\n" +
			"Each row that a transaction added (+), changed (~) or deleted (-) has a line; with -v also\n" +
			"each column of added and deleted rows. Times are local; TIME is one of those printed, or\n" +
			"2026-11-22, or 2026-11-22T14:57:26Z.",
		Example: "  ovs-offline history nb --record web-1\n" +
			"  ovs-offline history --since '2026-11-22 14:00' --until '2026-11-22 14:05'\n" +
			"  ovs-offline history sb --table Chassis -v\n" +
			"  ovs-offline history nb --at '2026-11-22 14:00' --table Logical_Switch_Port\n" +
			"  ovs-offline history --at '2026-11-22 14:00' --save then && ovs-offline -w wd-then collect then",
		ValidArgs: []string{"conf", "nb", "sb"},
		RunE:      o.withWorkdir(o.run),
	}
	o.outputFlag(c)
	f := c.Flags()
	f.StringVar(&o.query.Table, "table", "", "only changes of this `TABLE`, for example Logical_Switch_Port")
	f.StringVar(&o.query.Record, "record", "", "only changes of this `ROW`: its name, or its UUID or the beginning of it")
	f.StringVar(&o.query.Column, "column", "", "only changes of this `COLUMN`")
	f.StringVar(&o.since, "since", "", "only what happened at this `TIME` or later")
	f.StringVar(&o.until, "until", "", "only what happened at this `TIME` or before")
	f.IntVarP(&o.limit, "limit", "n", 0, "only the last `N` transactions")
	f.StringVar(&o.at, "at", "", "show the state at this `TIME`: the number of rows of each table, or with --table or --record the rows")
	f.StringVar(&o.save, "save", "", "write the databases as they were at the time of --at to this `FOLDER`, for collect")
	c.MarkFlagsMutuallyExclusive("at", "since")
	c.MarkFlagsMutuallyExclusive("at", "until")
	c.MarkFlagsMutuallyExclusive("at", "limit")
	return c
}

func (o *historyOptions) run(ctx context.Context, wd *workdir.Dir, args []string) error {
	if err := o.parse(); err != nil {
		return err
	}
	sources, err := historySources(wd, args)
	if err != nil {
		return err
	}
	o.several = len(sources) > 1
	if err := o.checkTable(ctx, sources); err != nil {
		return err
	}
	switch {
	case o.save != "":
		return o.saveStates(ctx, sources)
	case o.at != "":
		return o.printStates(ctx, sources)
	}
	return o.printEvents(ctx, sources)
}

// parse reads the times of the flags.
func (o *historyOptions) parse() error {
	if o.save != "" && o.at == "" {
		return fmt.Errorf("%w: --save writes the databases of a moment: give it with --at", errUsage)
	}
	if o.limit < 0 {
		return fmt.Errorf("%w: --limit takes a positive number", errUsage)
	}
	for text, value := range map[string]*time.Time{o.since: &o.query.Since, o.until: &o.query.Until, o.at: &o.query.Until} {
		if text == "" {
			continue
		}
		var err error
		if *value, err = history.ParseTime(text); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	return nil
}

// historySources returns the collected database that the argument names, or all, each with
// the logs of its clients.
func historySources(wd *workdir.Dir, args []string) (sources []history.Source, err error) {
	kinds := workdir.Kinds()
	if len(args) > 0 {
		kinds = []workdir.Kind{map[string]workdir.Kind{"conf": workdir.OVS, "nb": workdir.NB, "sb": workdir.SB}[args[0]]}
	}
	logs, err := wd.ClientLogs()
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		s := history.Source{Title: k.Title(), Schema: k.Schema(), File: wd.Database(k), Logs: logs}
		if _, err := os.Stat(s.File); errors.Is(err, fs.ErrNotExist) {
			s.File = ""
		} else if err != nil {
			return nil, err
		}
		if s.File != "" || len(logs) > 0 && len(args) > 0 {
			sources = append(sources, s)
		}
	}
	if len(sources) == 0 {
		what := "no database"
		if len(args) > 0 {
			what = "no " + kinds[0].Title() + " database"
		}
		return nil, fmt.Errorf("%s holds %s: collect one, for example with ovs-offline collect", wd.Path(), what)
	}
	return sources, nil
}

// checkTable refuses a table that no database has.
func (o *historyOptions) checkTable(ctx context.Context, sources []history.Source) error {
	if o.query.Table == "" {
		return nil
	}
	var names []string
	for _, s := range sources {
		if s.File == "" {
			return nil
		}
		tables, err := file.Tables(ctx, s.File)
		if err != nil {
			return err
		}
		names = append(names, tables...)
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, o.query.Table) }); i >= 0 {
		o.query.Table = names[i]
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%w: no table %q; choose one of %s", errUsage, o.query.Table, strings.Join(slices.Compact(names), ", "))
}

// printEvents prints the transactions as they are read, or the last of them.
func (o *historyOptions) printEvents(ctx context.Context, sources []history.Source) error {
	list := o.newList()
	var last []*history.Event
	results, err := history.Read(ctx, sources, o.query, func(e *history.Event) error {
		if o.limit == 0 {
			return list.add(e)
		}
		if last = append(last, e); len(last) >= 2*o.limit {
			last = slices.Clone(last[len(last)-o.limit:])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range last[max(0, len(last)-o.limit):] {
		if err := list.add(e); err != nil {
			return err
		}
	}
	if err := list.end(); err != nil {
		return err
	}
	return o.printResults(results, list.count)
}

// printResults prints what the files do not hold.
func (o *historyOptions) printResults(results []history.Result, count int) error {
	lost := false
	for _, r := range results {
		if r.Compacted && o.query.Until.IsZero() {
			fmt.Fprintf(o.Err, "%s: the file holds the state of %s only: compacted\n", r.Database, printTime(r.Base))
		}
		o.warnEach(r.Database+": ", r.Remarks)
		lost = lost || r.Lost
	}
	if count == 0 && o.format == formatTable {
		fmt.Fprintln(o.Out, "No transaction matches.")
	}
	return incompleteIf(lost)
}

// eventList prints events one after the other: as text, or as elements of one list.
type eventList struct {
	o     *historyOptions
	count int
}

func (o *historyOptions) newList() *eventList { return &eventList{o: o} }

func (l *eventList) add(e *history.Event) error {
	l.count++
	switch l.o.format {
	case "json":
		separator := ",\n"
		if l.count == 1 {
			separator = "[\n"
		}
		if _, err := fmt.Fprint(l.o.Out, separator); err != nil {
			return err
		}
		return terminal.WriteJSON(l.o.Out, e)
	case "yaml":
		return terminal.WriteYAML(l.o.Out, []*history.Event{e})
	}
	_, err := fmt.Fprint(l.o.Out, l.o.eventText(e))
	return err
}

func (l *eventList) end() error {
	text := ""
	switch {
	case l.o.format == formatTable:
	case l.count == 0:
		text = "[]\n"
	case l.o.format == "json":
		text = "]\n"
	}
	_, err := fmt.Fprint(l.o.Out, text)
	return err
}

// eventText returns an event as lines.
func (o *historyOptions) eventText(e *history.Event) string {
	var b strings.Builder
	b.WriteString(printTime(e.Time) + "  ")
	if o.several {
		fmt.Fprintf(&b, "%-6s  ", e.Database)
	}
	b.WriteString(o.headText(e) + "\n")
	o.writeRows(&b, e.Rows)
	for _, r := range e.Requests {
		o.writeRequest(&b, r)
	}
	return b.String()
}

// headText describes who made a transaction, and how.
func (o *historyOptions) headText(e *history.Event) string {
	comment := o.short(e.Comment)
	switch {
	case e.Schema != "":
		return fmt.Sprintf("converted to schema %s (%d rows)", terminal.Escape(e.Schema), e.Count)
	case e.Base:
		return fmt.Sprintf("the whole content, %d rows (%s): earlier transactions are not in the file", e.Count, terminal.Escape(cmp.Or(comment, "a snapshot of the cluster's log")))
	case e.Log != "":
		return fmt.Sprintf("libovsdb client asks for %d operations (%s)", e.Count, terminal.Escape(e.Log))
	}
	return cmp.Or(comment, "(no comment)")
}

// writeRows writes the lines of rows: without -v, one line for many added or deleted rows
// of a table.
func (o *historyOptions) writeRows(b *strings.Builder, rows []history.Row) {
	const most = 8
	type group struct {
		table  string
		change file.ChangeKind
	}
	count := map[group]int{}
	for _, r := range rows {
		count[group{r.Table, r.Change}]++
	}
	for _, r := range rows {
		g := group{r.Table, r.Change}
		if n := count[g]; n == 0 {
			continue
		} else if n > most && r.Change != file.Modified && !o.verbose && o.query == (history.Query{Since: o.query.Since, Until: o.query.Until}) {
			fmt.Fprintf(b, "  %s %s: %d rows\n", sign(r.Change), terminal.Escape(r.Table), n)
			count[g] = 0
			continue
		}
		o.writeRow(b, r)
	}
}

func sign(change file.ChangeKind) string {
	return map[file.ChangeKind]string{file.Inserted: "+", file.Modified: "~", file.Deleted: "-", file.Present: "="}[change]
}

// writeRow writes the lines of a row.
func (o *historyOptions) writeRow(b *strings.Builder, r history.Row) {
	name := terminal.Escape(openflow.Shorten(r.Name, 80))
	if r.OldName != "" && r.Change == file.Modified {
		name = terminal.Escape(openflow.Shorten(r.OldName, 80)) + " -> " + name
	}
	fmt.Fprintf(b, "  %s %s %s", sign(r.Change), terminal.Escape(r.Table), strings.TrimSpace(fmt.Sprintf("%s (%.8s)", name, r.UUID)))
	names := slices.Sorted(maps.Keys(r.Columns))
	if r.Change != file.Modified && !o.verbose && o.query.Column == "" {
		names = nil
	}
	for i, name := range names {
		separator := ": "
		if len(names) > 1 || o.verbose {
			separator = "\n      "
		} else if i > 0 {
			separator = ", "
		}
		b.WriteString(separator + terminal.Escape(name) + " " + o.columnText(r.Columns[name], r.Change))
	}
	b.WriteString("\n")
}

// columnText returns the change of a column.
func (o *historyOptions) columnText(c history.Column, change file.ChangeKind) string {
	switch {
	case change == file.Deleted:
		return o.value(c.Old)
	case change != file.Modified:
		return o.value(c.New)
	case c.Added == nil && c.Removed == nil:
		return o.value(c.Old) + " -> " + o.value(c.New)
	}
	var words []string
	for _, element := range c.Removed {
		words = append(words, "-"+o.value(element))
	}
	for _, element := range c.Added {
		words = append(words, "+"+o.value(element))
	}
	const most = 6
	if more := len(words) - most; more > 0 && !o.verbose {
		words = append(words[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, " ")
}

// writeRequest writes the lines of an operation.
func (o *historyOptions) writeRequest(b *strings.Builder, r history.Request) {
	fmt.Fprintf(b, "  > %s %s", r.Operation, terminal.Escape(r.Table))
	if r.UUID != "" {
		fmt.Fprintf(b, " (%.8s)", r.UUID)
	}
	for _, text := range []string{r.Row, r.Mutations} {
		if text != "" {
			b.WriteString("\n      " + o.value(text))
		}
	}
	if r.Where != "" && (r.UUID == "" || o.verbose) {
		b.WriteString("\n      where " + o.value(r.Where))
	}
	b.WriteString("\n")
}

// uuids matches a UUID, and a string in quotation marks, which is none whatever it looks like.
var uuids = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// shortUUID returns the beginning of a UUID that uuids has found.
func shortUUID(found string) string {
	if strings.HasPrefix(found, `"`) {
		return found
	}
	return found[:8]
}

// value returns the text of a value: whole with -v, else with the beginnings of UUIDs, and
// shortened.
func (o *historyOptions) value(text string) string {
	if !o.verbose {
		text = openflow.Shorten(uuids.ReplaceAllStringFunc(text, shortUUID), 100)
	}
	return terminal.Escape(text)
}

// short returns a comment, whole with -v.
func (o *historyOptions) short(comment string) string {
	if !o.verbose {
		comment = openflow.Shorten(comment, 200)
	}
	return terminal.Escape(comment)
}

// printTime prints a time with its milliseconds, which tell transactions apart.
func printTime(at time.Time) string {
	if at.IsZero() {
		return fmt.Sprintf("%-*s", len(history.TimeFormat), "(no time)")
	}
	return at.Local().Format(history.TimeFormat)
}

// printStates prints the databases at the time of --at.
func (o *historyOptions) printStates(ctx context.Context, sources []history.Source) error {
	var states []*history.State
	for _, s := range sources {
		if s.File == "" {
			continue
		}
		state, err := history.At(ctx, s, o.query)
		if errors.Is(err, history.ErrBefore) && o.several {
			o.warn("%v", err)
			continue
		}
		if err != nil {
			return err
		}
		states = append(states, state)
	}
	return o.emitStates(states, func(s *history.State) {
		for _, table := range slices.Sorted(maps.Keys(s.Tables)) {
			fmt.Fprintf(o.Out, "  %s: %d\n", terminal.Escape(table), s.Tables[table])
		}
		all := *o
		shared := *o.options
		all.options, shared.verbose = &shared, true
		for _, r := range s.Rows {
			var b strings.Builder
			all.writeRow(&b, r)
			fmt.Fprint(o.Out, b.String())
		}
	})
}

// emitStates prints states, each below a line with its database and time.
func (o *historyOptions) emitStates(states []*history.State, print func(*history.State)) error {
	if len(states) == 0 {
		return fmt.Errorf("%w: no collected database is that old", history.ErrBefore)
	}
	err := o.emit(states, func() {
		for _, s := range states {
			fmt.Fprintf(o.Out, "%s as of %s (transaction %d)\n", s.Database, printTime(s.Time), s.Transaction)
			print(s)
		}
	})
	lost := false
	for _, s := range states {
		o.warnEach(s.Database+": ", s.Remarks)
		lost = lost || s.Lost
	}
	return worst(err, incompleteIf(lost))
}

// saveStates writes the databases at the time of --at to a folder.
func (o *historyOptions) saveStates(ctx context.Context, sources []history.Source) error {
	if err := os.MkdirAll(o.save, 0o700); err != nil {
		return err
	}
	var states []*history.State
	for _, s := range sources {
		if s.File == "" {
			continue
		}
		dst := filepath.Join(o.save, filepath.Base(s.File))
		if _, err := os.Lstat(dst); err == nil {
			return fmt.Errorf("%s: %w: choose another folder for --save", dst, fs.ErrExist)
		}
		state, err := history.Save(ctx, s, o.query.Until, dst)
		if errors.Is(err, history.ErrBefore) && o.several {
			o.warn("%v", err)
			continue
		}
		if err != nil {
			return err
		}
		states = append(states, state)
	}
	return o.emitStates(states, func(s *history.State) {})
}
