package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// Log reads the transactions of a database file one after the other, from the oldest
// one that the file holds. It keeps in memory where the present rows are in the file, and
// the rows that were changed since they were inserted.
type Log struct {
	converter
	state *state
	queue entryQueue
	ended bool
}

// Transaction is one transaction of a database file.
type Transaction struct {
	// Number identifies the transaction in its file: the number of its record, as "ovsdb-tool
	// show-log" prints it, or in a clustered file the index in the cluster's log.
	Number  int64
	Time    time.Time // zero if the record has none
	Comment string    // what the client wrote about it, "" if nothing
	// Base reports that the transaction is the whole content of the database as of its
	// time: what was before is not in the file.
	Base bool
	// Schema is the version of the schema to which the transaction converts the database,
	// "" for an ordinary one.
	Schema  string
	Rows    int      // number of rows that it changes in the wanted tables
	Changes []Change // those that are wanted
}

// loggedEntry is a transaction that was read and not applied yet, or a schema.
type loggedEntry struct {
	number int64
	schema []byte // nil for a transaction
	body   []byte // only its own members if rows is set
	offset int64  // of body in the file; 0 if the file does not hold this text
	rows   *rowFinder
	base   bool // the whole content
	first  bool // of a standalone file: the whole content if its comment says so
}

// Selection chooses what a Log returns of the transactions.
type Selection struct {
	Tables []string // all if none is named
	Base   bool     // also the rows of a transaction that is the whole content
	Brief  bool     // without the columns of rows that were inserted or deleted
	// Until is the time of the last transaction to read; zero for all.
	Until time.Time
	// Names returns the names of a row, and reads the columns NamedBy for them; nil for no names.
	Names   func(table string, row ovsdb.Row) []string
	NamedBy []string
	// Accept reports whether a change is wanted; nil for all.
	Accept func(change *Change) bool
}

// OpenLog opens the database file src, of either form and possibly gzip'd. open opens it, os.Open if it is nil. src is not
// changed.
func OpenLog(ctx context.Context, open Opener, src string, wanted Selection) (*Log, error) {
	from, err := openSource(ctx, open, src)
	if err != nil {
		return nil, err
	}
	log := &Log{converter: converter{from: from, out: &output{}, stray: from.before}, state: newState(from.scan.file, wanted)}
	log.state.isLost = func(uuid string) bool { _, lost := log.lostRows[uuid]; return lost }
	from.scan.rows, from.scan.want = log.state.isWanted, isOwnMember
	if from.info.Form == FormClustered {
		log.log = &raftLog{out: &log.queue}
		log.queue.log = log.log
	}
	return log, nil
}

// Close closes the file.
func (l *Log) Close() { l.from.close() }

// Remarks describes what was repaired or left out, once Next has returned io.EOF.
func (l *Log) Remarks() []string {
	remarks := l.remarks()
	if n := l.state.unknown; n > 0 {
		remarks = append(remarks, phrase.Count(n, "change")+" of a row that a record which was left out inserted: not shown")
	}
	return remarks
}

// Lost reports whether something that the file held could not be read, once Next has
// returned io.EOF.
func (l *Log) Lost() bool {
	return l.dropped > 0 || l.torn != "" || l.stray > 0 || l.from.broken != nil || l.log != nil && l.log.missing > 0
}

// Rows calls yield for each present row of the wanted tables that Accept accepts, in order
// of tables and UUIDs. It ends with the first error.
func (l *Log) Rows(yield func(*Change) error) error { return l.state.rows(yield) }

// Counts returns the number of present rows of the wanted tables that have any.
func (l *Log) Counts() map[string]int {
	counts := map[string]int{}
	for table := range l.state.schema {
		if n := len(l.state.stored[table]) + len(l.state.db.tables[table]); n > 0 {
			counts[table] = n
		}
	}
	return counts
}

// Next returns the next transaction, or io.EOF.
func (l *Log) Next() (*Transaction, error) {
	for {
		for l.queue.committedEntries() == 0 && !l.ended {
			if err := l.read(); err != nil {
				return nil, err
			}
		}
		if l.queue.committedEntries() == 0 {
			return nil, io.EOF
		}
		transaction, err := l.state.apply(l.queue.take())
		if errors.Is(err, errAfterUntil) {
			l.ended, l.queue.entries = true, nil
			return nil, io.EOF
		}
		if transaction != nil || err != nil {
			return transaction, err
		}
	}
}

// read reads the next record into the queue.
func (l *Log) read() error {
	record, err := l.from.next()
	if err == io.EOF {
		l.ended = true
		if l.log != nil {
			l.unapplied, err = l.log.takeBack(l.log.committed)
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	body := record.body
	if !record.intact {
		var reason string
		if body, reason = l.repair(record); reason != "" {
			l.drop(record, reason)
			return nil
		}
	}
	err = l.enter(record, body)
	if refused, ok := errors.AsType[errNotRecord](err); ok {
		l.drop(record, refused.Error())
		return nil
	}
	l.stray += record.strayBytes()
	return err
}

// enter appends what a record holds to the queue.
func (l *Log) enter(record *record, body []byte) error {
	if clustered := record.magic == "CLUSTER"; clustered != (l.log != nil) {
		return errNotRecord{fmt.Errorf("a %s record in a %s database", record.magic, l.from.info.Form)}
	}
	queue := &l.queue
	begin := len(queue.entries)
	switch {
	case l.log == nil && record.number == 1:
		return queue.addSchema(body)
	case l.log == nil:
		queue.entries = append(queue.entries, loggedEntry{number: int64(record.number) - 1, body: body, rows: record.rows, first: record.number == 2})
	case record.number == 1:
		return l.enterSnapshot(record, body)
	default:
		if _, err := l.log.add(body); err != nil {
			return err
		}
		begin = min(begin, max(0, len(queue.entries)-1)) // the record may have taken entries back
	}
	l.locate(record, body, begin)
	return nil
}

// enterSnapshot appends the schema and the content of the first record of a cluster member.
func (l *Log) enterSnapshot(record *record, body []byte) error {
	var head clusterHeader
	if err := json.Unmarshal(body, &head); err != nil {
		return errNotRecord{err}
	}
	if err := l.log.begin(head); err != nil {
		return err
	}
	for i := range l.queue.entries {
		l.queue.entries[i].base = true
	}
	if record.snapshot == nil {
		l.locate(record, body, 0)
		return nil
	}
	finder, members := newRowFinder(record.snapshot.offset, l.state.isWanted), newMemberFinder(record.snapshot.offset, isOwnMember)
	schema, err := newDatabase(head.PrevData[0]) // rows of tables that the schema lacks are not looked for
	if err != nil {
		return fmt.Errorf("%w: record 1: %w", ErrSchema, err)
	}
	l.state.schema = schema.schema
	section := io.NewSectionReader(l.from.scan.file, record.snapshot.offset, record.snapshot.length)
	if _, err := io.Copy(io.MultiWriter(finder, members), section); err != nil {
		return err
	}
	own, err := members.object(l.from.scan.file)
	l.queue.entries = append(l.queue.entries, loggedEntry{number: head.PrevIndex, body: own, rows: finder, base: true})
	return err
}

// locate notes where the texts of the transactions from index begin on are in the file.
func (l *Log) locate(record *record, body []byte, begin int) {
	if l.from.scan.file == nil || !record.intact || record.rows != nil {
		return
	}
	for i := begin; i < len(l.queue.entries); i++ {
		entry := &l.queue.entries[i]
		if at := bytes.Index(body, entry.body); at >= 0 && entry.body != nil {
			entry.offset = record.offset + int64(len(record.line)+at)
		}
	}
}

// entryQueue has the transactions that were read and not returned yet. In a cluster's log,
// the last ones may still be taken back.
type entryQueue struct {
	entries []loggedEntry
	taken   int64    // number of entries that left the queue
	log     *raftLog // nil for a standalone file
}

// committedEntries returns the number of entries at the start of the queue that are committed.
func (q *entryQueue) committedEntries() int {
	if len(q.entries) == 0 || q.log == nil || len(q.log.uncommitted) == 0 {
		return len(q.entries)
	}
	return int(q.log.uncommitted[0].offset - q.taken)
}

func (q *entryQueue) take() loggedEntry {
	entry := q.entries[0]
	q.entries = q.entries[1:]
	q.taken++
	return entry
}

// position, addSchema, add and cut implement transactions.
func (q *entryQueue) position() int64 { return q.taken + int64(len(q.entries)) }

func (q *entryQueue) addSchema(schema []byte) error {
	q.entries = append(q.entries, loggedEntry{schema: schema})
	return nil
}

func (q *entryQueue) add(transaction []byte) error {
	q.entries = append(q.entries, loggedEntry{number: q.log.next - 1, body: transaction})
	return nil
}

func (q *entryQueue) cut(position int64) error {
	q.entries = q.entries[:position-q.taken]
	return nil
}

// compacted matches the comment of a transaction with the whole content of a standalone
// file, as ovsdb-server, ovsdb-tool and ovsdb-client write it (ovsdb/ovsdb.c, ovsdb-tool.c,
// ovsdb-client.c and trigger.c of Open vSwitch).
var compacted = lazyregexp.New(`^(?:compact|convert|created from |produced by "ovsdb-client backup")`)

// isOwnMember reports whether a member of a transaction is about the transaction itself.
func isOwnMember(key string) bool { return strings.HasPrefix(key, "_") }
