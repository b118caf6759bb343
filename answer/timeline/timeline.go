// Package timeline merges what the daemons of all nodes logged with the transactions of the databases, in
// order of time and with the names that users know.
package timeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Query selects entries. The zero value selects all transactions, warnings and worse, and what says that
// something changed.
type Query struct {
	Since, Until time.Time // zero for no bound
	// Table and Record select transactions, as in history. With Record, lines of logs have to have it, too.
	Table, Record string
	All           bool // every line
	Level         daemonlog.Level
	Grep          string   // a part of the text, in capital or small letters
	Programs      []string // none for all
	LogsOnly      bool     // no transactions
	// Location is the time zone of lines that name none. nil stands for UTC.
	Location *time.Location
}

// Entry is a line of a log or a transaction. Similar entries that follow within minutes are counted in it.
type Entry struct {
	Time        time.Time `json:"time,omitzero"`
	Node        string    `json:"node,omitempty"`
	Database    string    `json:"database,omitempty"`    // of a transaction
	Transaction int64     `json:"transaction,omitempty"` // its number in the file
	Program     string    `json:"program,omitempty"`
	Module      string    `json:"module,omitempty"`
	Thread      string    `json:"thread,omitempty"`
	Level       string    `json:"level,omitempty"`
	Text        string    `json:"text"`            // as it was logged, or the comment of a transaction and its rows
	Names       []Name    `json:"names,omitempty"` // what users call what the text names
	Log         string    `json:"log,omitempty"`   // the file and the line
	// Count is the number of entries like this one until the time Until. Dropped of them were never
	// written: vlog says only how many they were.
	Count   int       `json:"count"`
	Dropped int       `json:"dropped,omitempty"`
	Until   time.Time `json:"until,omitzero"`

	host bool // the line is of a log of the host: syslog or the journal
}

// Result says what is not in the timeline.
type Result struct {
	Remarks []string
	Lost    bool // something could not be read
}

// Timeline is the timeline of a set of nodes.
type Timeline struct {
	query     Query
	databases []history.Source
	logs      []*logFile
	names     *namer
	record    []string // the names of Query.Record
	remarks   []string
	lost      bool
}

// ErrNothing is wrapped by the error of nodes without logs and databases.
var ErrNothing = fault.Wrap(fault.Usage, errors.New("nothing to show"))

// Open finds the logs and databases of a set. The caller closes the Timeline.
func Open(ctx context.Context, selected *snapshot.Snapshot, query Query) (*Timeline, error) {
	t := &Timeline{query: query}
	if t.query.Location == nil {
		t.query.Location = time.UTC
	}
	if err := t.findDatabases(ctx, selected); err != nil {
		return nil, err
	}
	if err := t.findLogs(ctx, selected); err != nil {
		return nil, err
	}
	if err := history.FindDay(ctx, t.databases, t.recorded(), &t.query.Since, &t.query.Until); err != nil {
		return nil, err
	}
	if len(t.logs)+len(t.databases) == 0 {
		return nil, show.Advise(fmt.Errorf("%w: %s holds no logs and no database: collect some, for example with", ErrNothing, selected.Folder()), "", "collect", "PATH")
	}
	names, err := openNames(ctx, selected)
	if err != nil {
		return nil, err
	}
	t.names = names
	if t.record, err = snapshot.SwitchPortsCalled(query.Record, names.deployments); err != nil {
		names.close()
		return nil, err
	}
	return t, nil
}

// Close closes the databases that names are taken from.
func (t *Timeline) Close() { t.names.close() }

func (t *Timeline) findDatabases(ctx context.Context, selected *snapshot.Snapshot) error {
	sources, remarks, err := history.Sources(ctx, selected, workdir.Kinds()...)
	if err != nil {
		return err
	}
	t.remarks = append(t.remarks, remarks...)
	t.databases = slices.DeleteFunc(sources, func(s history.Source) bool { return s.File == "" && len(s.Logs) == 0 })
	for i := range t.databases {
		if db := &t.databases[i]; db.Schema == ovsdb.OVS && selected.Alone() {
			db.Node = selected.Nodes()[0].Name
		}
	}
	if t.query.Table == "" {
		return nil
	}
	q := history.Query{Table: t.query.Table}
	err = q.FindTable(ctx, t.databases)
	t.query.Table = q.Table
	return err
}

// Read calls yield with each entry in order of time, or with the last of them: at most limit, 0 for all.
func (t *Timeline) Read(ctx context.Context, limit int, yield func(*Entry) error) (Result, error) {
	last := &tail{limit: limit, yield: yield}
	folded := newFolder(last.add)
	merged := newMerge(ctx, t)
	defer merged.close()
	for {
		entry, err := merged.next()
		if err != nil {
			return Result{}, err
		}
		if entry == nil {
			break
		}
		if err := folded.add(entry); err != nil {
			return Result{}, err
		}
	}
	if err := folded.end(); err != nil {
		return Result{}, err
	}
	if err := last.end(); err != nil {
		return Result{}, err
	}
	skews, err := t.skews(ctx)
	if err != nil {
		return Result{}, err
	}
	merged.describe()
	return Result{Remarks: slices.Concat(t.remarks, skews), Lost: t.lost}, nil
}

// lose notes something that can't be read.
func (t *Timeline) lose(format string, args ...any) {
	t.lost = true
	t.remarks = append(t.remarks, fmt.Sprintf(format, args...))
}

// tail passes entries on: all, or at the end the last of them.
type tail struct {
	limit int
	yield func(*Entry) error
	kept  []*Entry
}

func (t *tail) add(entry *Entry) error {
	if t.limit == 0 {
		return t.yield(entry)
	}
	if t.kept = append(t.kept, entry); len(t.kept) >= 2*t.limit {
		t.kept = slices.Clone(t.kept[len(t.kept)-t.limit:])
	}
	return nil
}

func (t *tail) end() error {
	for _, entry := range t.kept[max(0, len(t.kept)-t.limit):] {
		if err := t.yield(entry); err != nil {
			return err
		}
	}
	return nil
}
