// Package history says who changed what in a database, and when: from the transactions that
// a database file holds, and from the logs in which clients of libovsdb write what they ask
// a server for.
package history

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/ovsdb/file"
)

// Query chooses what is wanted of the history. The zero value means everything.
type Query struct {
	Table  string
	Record string // a name, or a UUID or at least four digits of its beginning
	Column string
	Since  time.Time // zero for no bound, as is Until
	Until  time.Time
}

// Source is one database with the logs of its clients.
type Source struct {
	Title  string // of the database, for people: "OVN NB"
	Schema string // its name: "OVN_Northbound"
	File   string // "" if only logs are known
	Logs   []string
}

// Event is one transaction, or one request that a client logged.
type Event struct {
	Database string    `json:"database"`
	Time     time.Time `json:"time,omitzero"`
	// Transaction is the number of the record in a standalone file, or of the entry in a
	// cluster's log; 0 for a request.
	Transaction int64  `json:"transaction,omitempty"`
	Program     string `json:"program,omitempty"` // that wrote the comment or the log
	Comment     string `json:"comment,omitempty"`
	// Base reports that the transaction is the whole content as of its time: what was
	// before is not in the file.
	Base     bool      `json:"base,omitempty"`
	Schema   string    `json:"schema,omitempty"` // to whose version the database was converted
	Count    int       `json:"count,omitempty"`  // of changed rows, also of those that are not listed
	Rows     []Row     `json:"rows,omitempty"`
	Log      string    `json:"log,omitempty"` // file and line of a request
	Requests []Request `json:"requests,omitempty"`
}

// Row is what a transaction did to a row.
type Row struct {
	Table   string            `json:"table"`
	UUID    string            `json:"uuid"`
	Name    string            `json:"name,omitempty"`
	OldName string            `json:"old_name,omitempty"` // where the transaction changed it
	Change  file.ChangeKind   `json:"change"`
	Columns map[string]Column `json:"columns,omitempty"`
}

// Column is the change of a column, in the notation of ovs-vsctl.
type Column struct {
	Old     string   `json:"old,omitempty"`
	New     string   `json:"new,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// Result describes what was read.
type Result struct {
	Database string
	Remarks  []string // what was repaired or left out
	Lost     bool     // something could not be read
	Base     time.Time
	// Compacted reports that the file holds one state and no later transaction.
	Compacted bool
}

// Read calls yield for each wanted event of the sources, in order of time. It ends with the
// first error. The files are not changed.
func Read(ctx context.Context, sources []Source, q Query, yield func(*Event) error) ([]Result, error) {
	var streams []*stream
	defer func() {
		for _, s := range streams {
			s.close()
		}
	}()
	for _, source := range sources {
		opened, err := q.open(ctx, source)
		streams = append(streams, opened...)
		if err != nil {
			return nil, err
		}
	}
	for {
		first, err := earliest(streams)
		if err != nil {
			return nil, err
		}
		if first == nil {
			return results(streams), nil
		}
		event := first.take()
		if event.Time.Before(q.Since) && !event.Time.IsZero() {
			continue
		}
		if err := yield(event); err != nil {
			return nil, err
		}
	}
}

// stream is a series of events in order of time.
type stream struct {
	read   func() (*Event, error) // io.EOF at the end
	close  func()
	result func() Result
	ahead  *Event
	done   bool
}

// earliest returns the stream with the earliest event, nil at the end of all.
func earliest(streams []*stream) (first *stream, err error) {
	for _, s := range streams {
		if s.ahead == nil && !s.done {
			if s.ahead, err = s.read(); errors.Is(err, io.EOF) {
				s.done = true
			} else if err != nil {
				return nil, err
			}
		}
		if s.ahead != nil && !s.done && (first == nil || s.ahead.Time.Before(first.ahead.Time)) {
			first = s
		}
	}
	return first, nil
}

func (s *stream) take() *Event {
	event := s.ahead
	s.ahead = nil
	return event
}

// results returns the results of the streams.
func results(streams []*stream) (list []Result) {
	for _, s := range streams {
		list = append(list, s.result())
	}
	return list
}

// open opens the streams of a source.
func (q Query) open(ctx context.Context, source Source) (streams []*stream, err error) {
	if source.File != "" {
		s, err := q.openDatabase(ctx, source)
		if err != nil {
			return nil, err
		}
		streams = append(streams, s)
	}
	if len(source.Logs) > 0 {
		streams = append(streams, q.openLogs(ctx, source))
	}
	return streams, nil
}

func (q Query) openDatabase(ctx context.Context, source Source) (*stream, error) {
	log, err := file.OpenLog(ctx, source.File, q.selection())
	if err != nil {
		return nil, err
	}
	result := Result{Database: source.Title}
	later := 0
	return &stream{
		close: log.Close,
		read: func() (*Event, error) {
			for {
				t, err := log.Next()
				if err != nil {
					return nil, err
				}
				if t.Base {
					result.Base, later = t.Time, 0
				} else {
					later++
				}
				if event := q.event(source, t); event != nil {
					return event, nil
				}
			}
		},
		result: func() Result {
			result.Remarks, result.Lost = log.Remarks(), log.Lost()
			result.Compacted = !result.Base.IsZero() && later == 0
			return result
		},
	}, nil
}

// selection returns what the log of a database must return.
func (q Query) selection() file.Selection {
	s := file.Selection{Base: q.Record != "", Accept: q.accepts, Until: q.Until}
	if q.Table != "" {
		s.Tables = []string{q.Table}
	}
	return s
}

// accepts reports whether a change is wanted, and leaves only the wanted columns in it.
func (q Query) accepts(c *file.Change) bool {
	if q.Record != "" && !slices.Contains(c.OldNames, q.Record) && !slices.Contains(c.Names, q.Record) && !q.isUUID(c.UUID) {
		return false
	}
	if q.Column == "" {
		return true
	}
	c.Columns = slices.DeleteFunc(c.Columns, func(column file.ColumnChange) bool { return column.Column != q.Column })
	return len(c.Columns) > 0
}

// uuidStart matches the beginning of a UUID that is long enough to select a row.
var uuidStart = regexp.MustCompile(`^[0-9a-f]{4}[0-9a-f-]*$`)

func (q Query) isUUID(uuid string) bool {
	return uuidStart.MatchString(q.Record) && strings.HasPrefix(uuid, q.Record)
}

// event describes a transaction, nil for one that changes nothing that is wanted.
func (q Query) event(source Source, t *file.Transaction) *Event {
	filtered := q.Table != "" || q.Record != "" || q.Column != ""
	if len(t.Changes) == 0 && filtered && !t.Base {
		return nil
	}
	e := &Event{Database: source.Title, Time: t.Time, Transaction: t.Number, Program: programOf(t.Comment), Comment: t.Comment,
		Base: t.Base, Schema: t.Schema, Count: t.Rows}
	for _, c := range t.Changes {
		e.Rows = append(e.Rows, rowOf(&c))
	}
	return e
}

func rowOf(c *file.Change) Row {
	names := c.Names
	if c.Kind == file.Deleted {
		names = c.OldNames
	}
	r := Row{Table: c.Table, UUID: c.UUID, Name: firstOf(names), Change: c.Kind, Columns: map[string]Column{}}
	if old := firstOf(c.OldNames); old != r.Name {
		r.OldName = old
	}
	for _, column := range c.Columns {
		r.Columns[column.Column] = Column{Old: column.Old, New: column.New, Added: column.Added, Removed: column.Removed}
	}
	return r
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// program matches the name of a program at the start of a comment, as OVS's and OVN's
// programs write it: "ovn-nbctl: ls-add sw0", "ovs-vsctl (invoked by ...): ...".
var program = regexp.MustCompile(`^([A-Za-z][\w.-]*)(?::| \()`)

// programOf returns the program that wrote a comment, "" if it gives none.
func programOf(comment string) string {
	if m := program.FindStringSubmatch(comment); m != nil {
		return m[1]
	}
	return ""
}
