// Package history finds who changed what in a database, and when: in the transactions that a database
// file holds, and in the logs in which clients of libovsdb write their requests.
package history

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// Query selects events. The zero value selects all.
type Query struct {
	Table  string
	Record string   // a name, or a UUID or at least four digits of its beginning
	Names  []string // further names of the record: see FindRecord
	Column string
	Brief  bool      // without the columns of rows that were added or deleted
	Since  time.Time // zero for no bound, as is Until
	Until  time.Time
}

// Source is one database with the logs of its clients.
type Source struct {
	Node   string      // of a set, "" for a database of several nodes, or for the only node
	Title  string      // of the database, for people: "OVN NB"
	Schema string      // its name: "OVN_Northbound"
	File   string      // "" if only logs are known
	Open   file.Opener // of the file; nil for os.Open
	Logs   []string
}

// name returns the name of the database among others: "compute1 OVS".
func (s Source) name() string { return strings.TrimSpace(s.Node + " " + s.Title) }

// Event is one transaction, or one request that a client logged.
type Event struct {
	Node     string    `json:"node,omitempty"`
	Database string    `json:"database"`
	Time     time.Time `json:"time,omitzero"`
	// Transaction is the number of the record in a standalone file, or of the entry in a
	// cluster's log; 0 for a request.
	Transaction int64  `json:"transaction,omitempty"`
	Program     string `json:"program,omitempty"` // which wrote the comment or the log
	Comment     string `json:"comment,omitempty"`
	// Base reports that the transaction is the whole content as of its time: what was
	// before is not in the file.
	Base     bool      `json:"base,omitempty"`
	Schema   string    `json:"schema,omitempty"` // to whose version the database was converted
	Count    int       `json:"count,omitempty"`  // of all changed rows, listed or not
	Rows     []Row     `json:"rows,omitempty"`
	Log      string    `json:"log,omitempty"` // file and line of a request
	Requests []Request `json:"requests,omitempty"`
}

// Row is the change of a row by a transaction.
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

// Result describes a database whose history was read.
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
func Read(ctx context.Context, sources []Source, query Query, yield func(*Event) error) ([]Result, error) {
	var streams []*stream
	defer func() {
		for _, s := range streams {
			s.close()
		}
	}()
	for _, source := range sources {
		opened, err := query.open(ctx, source)
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
		if event.Time.Before(query.Since) && !event.Time.IsZero() {
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
	for _, next := range streams {
		if next.ahead == nil && !next.done {
			if next.ahead, err = next.read(); errors.Is(err, io.EOF) {
				next.done = true
			} else if err != nil {
				return nil, err
			}
		}
		if next.ahead != nil && !next.done && (first == nil || next.ahead.Time.Before(first.ahead.Time)) {
			first = next
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
		next, err := q.openDatabase(ctx, source)
		if err != nil {
			return nil, err
		}
		streams = append(streams, next)
	}
	if len(source.Logs) > 0 {
		streams = append(streams, q.openLogs(ctx, source))
	}
	return streams, nil
}

func (q Query) openDatabase(ctx context.Context, source Source) (*stream, error) {
	log, err := file.OpenLog(ctx, source.Open, source.File, q.selection())
	if err != nil {
		return nil, err
	}
	result := Result{Database: source.name()}
	later := 0
	return &stream{
		close: log.Close,
		read: func() (*Event, error) {
			for {
				transaction, err := log.Next()
				if err != nil {
					return nil, err
				}
				if transaction.Base {
					result.Base, later = transaction.Time, 0
				} else {
					later++
				}
				if event := q.event(source, transaction); event != nil {
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

// selection returns which transactions and changes the log of a database returns.
func (q Query) selection() file.Selection {
	selected := file.Selection{Base: q.Record != "", Brief: q.Brief, Names: ovn.RowNames, NamedBy: ovn.NamingColumns(), Accept: q.accepts, Until: q.Until}
	if q.Table != "" {
		selected.Tables = []string{q.Table}
	}
	return selected
}

// accepts reports whether a change is wanted, and leaves only the wanted columns in it.
func (q Query) accepts(change *file.Change) bool {
	is := func(name string) bool { return name == q.Record || slices.Contains(q.Names, name) }
	if q.Record != "" && !slices.ContainsFunc(change.OldNames, is) && !slices.ContainsFunc(change.Names, is) && !q.isUUID(change.UUID) && !q.isAddressIn(change) {
		return false
	}
	if q.Column == "" {
		return true
	}
	change.Columns = slices.DeleteFunc(change.Columns, func(column file.ColumnChange) bool { return column.Column != q.Column })
	return len(change.Columns) > 0
}

// isAddressIn reports whether the record is an IP or MAC address that the change of a row has in a value.
func (q Query) isAddressIn(change *file.Change) bool {
	_, notIP := netip.ParseAddr(q.Record)
	_, notMAC := net.ParseMAC(q.Record)
	if notIP != nil && notMAC != nil {
		return false
	}
	return slices.ContainsFunc(change.Columns, func(column file.ColumnChange) bool {
		return slices.ContainsFunc(slices.Concat([]string{column.Old, column.New}, column.Added, column.Removed), q.hasAddress)
	})
}

// hasAddress reports whether a text has the record as a whole address, with or without a prefix length or a port.
func (q Query) hasAddress(text string) bool {
	inAddress := func(text string) bool { return text != "" && strings.ContainsAny(text[:1], "0123456789abcdefABCDEF.:") }
	for {
		before, after, found := strings.Cut(text, q.Record)
		if !found {
			return false
		}
		port := strings.HasPrefix(after, ":") && !strings.Contains(q.Record, ":")
		if !inAddress(before[max(0, len(before)-1):]) && (port || !inAddress(after)) {
			return true
		}
		text = after
	}
}

// FindRecord finds the further names of the record: in OVN, where it is what users call a port, and the other way round. Databases that
// can't be read have none.
func (q *Query) FindRecord(ctx context.Context, selected *snapshot.Snapshot) error {
	deployments, _, err := selected.Deployments(ctx)
	if err == nil {
		q.Names, _ = snapshot.SwitchPortsCalled(q.Record, deployments)
		snapshot.CloseAll(deployments)
	}
	return ctx.Err()
}

// uuidStart matches the beginning of a UUID that is long enough to select a row.
var uuidStart = lazyregexp.New(`^[0-9a-f]{4}[0-9a-f-]*$`)

func (q Query) isUUID(uuid string) bool {
	return uuidStart.MatchString(q.Record) && strings.HasPrefix(uuid, q.Record)
}

// event describes a transaction, nil for a transaction that changes nothing that is wanted.
func (q Query) event(source Source, transaction *file.Transaction) *Event {
	filtered := q.Table != "" || q.Record != "" || q.Column != ""
	if len(transaction.Changes) == 0 && filtered && !transaction.Base {
		return nil
	}
	described := &Event{Node: source.Node, Database: source.Title, Time: transaction.Time, Transaction: transaction.Number, Program: programOf(transaction.Comment), Comment: transaction.Comment,
		Base: transaction.Base, Schema: transaction.Schema, Count: transaction.Rows}
	for _, c := range transaction.Changes {
		described.Rows = append(described.Rows, rowOf(&c))
	}
	return described
}

func rowOf(change *file.Change) Row {
	names := change.Names
	if change.Kind == file.Deleted {
		names = change.OldNames
	}
	row := Row{Table: change.Table, UUID: change.UUID, Name: firstOf(names), Change: change.Kind, Columns: map[string]Column{}}
	if old := firstOf(change.OldNames); old != row.Name {
		row.OldName = old
	}
	for _, column := range change.Columns {
		row.Columns[column.Column] = Column{Old: column.Old, New: column.New, Added: column.Added, Removed: column.Removed}
	}
	return row
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// program matches the name of a program at the start of a comment, as OVS's and OVN's
// programs write it: "ovn-nbctl: ls-add sw0", "ovs-vsctl (invoked by ...): ...", "ovn-northd".
var program = lazyregexp.New(`^(?:([A-Za-z][\w.-]*)(?::| \()|(ov[ns]-\w+)(?:\n|$))`)

// programOf returns the program that wrote a comment, "" if it gives none.
func programOf(comment string) string {
	if m := program.FindStringSubmatch(comment); m != nil {
		return m[1] + m[2]
	}
	return ""
}
