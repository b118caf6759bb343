package timeline

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"ovs-offline/answer/history"
)

// source is a series of entries in the order in which they were written. Its clock may be set back, which
// does not change the order.
type source interface {
	// next returns the next entry; io.EOF is the end.
	next(ctx context.Context) (*Entry, error)
	close()
}

// stream is a source in a merge.
type stream struct {
	source
	entry *Entry    // the next one; nil for a source that was not read yet
	at    time.Time // by which the stream is ordered
	place int       // among streams of one time
}

// merge returns the entries of all sources in order of time. A file is opened once its first line is due,
// so that the rotated logs of a program are open one after the other.
type merge struct {
	ctx     context.Context
	t       *Timeline
	streams streams
	results []history.Result
}

func newMerge(ctx context.Context, t *Timeline) *merge {
	m := &merge{ctx: ctx, t: t}
	for _, file := range t.logs {
		m.streams = append(m.streams, &stream{source: &logSource{file: file, t: t}, at: file.first, place: len(m.streams)})
	}
	if len(t.databases) > 0 && !t.query.LogsOnly {
		m.streams = append(m.streams, &stream{source: m.transactions(), place: -1})
	}
	heap.Init(&m.streams)
	return m
}

// next returns the next entry, nil at the end.
func (m *merge) next() (*Entry, error) {
	for len(m.streams) > 0 {
		first := m.streams[0]
		entry := first.entry
		next, err := first.next(m.ctx)
		switch {
		case errors.Is(err, io.EOF):
			first.close()
			heap.Pop(&m.streams)
		case err != nil:
			return nil, err
		default:
			first.entry = next
			if next.Time.After(first.at) {
				first.at = next.Time
			}
			heap.Fix(&m.streams, 0)
		}
		if entry != nil {
			return entry, nil
		}
	}
	return nil, m.ctx.Err()
}

func (m *merge) close() {
	for _, s := range m.streams {
		s.close()
	}
}

// describe adds what the databases do not hold to the remarks.
func (m *merge) describe() {
	for _, result := range m.results {
		for _, remark := range result.Remarks {
			m.t.remarks = append(m.t.remarks, result.Database+": "+remark)
		}
		if note := result.Note(); note != "" && m.t.query.Until.IsZero() {
			m.t.remarks = append(m.t.remarks, note)
		}
		m.t.lost = m.t.lost || result.Lost
	}
}

// transactions returns the source of the transactions of all databases.
func (m *merge) transactions() source {
	query := history.Query{Table: m.t.query.Table, Record: m.t.query.Record, Names: m.t.record, Since: m.t.query.Since, Until: m.t.query.Until}
	next, stop := iter.Pull2(func(yield func(*Entry, error) bool) {
		results, err := history.Read(m.ctx, m.t.databases, query, func(event *history.Event) error {
			if entry := m.t.entryOf(event); entry != nil && !yield(entry, nil) {
				return errStopped
			}
			return nil
		})
		if m.results = results; err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	})
	return pulled{next, stop}
}

// errStopped ends the reading of transactions that are not needed any more.
var errStopped = errors.New("stopped")

type pulled struct {
	pull func() (*Entry, error, bool)
	stop func()
}

func (p pulled) next(context.Context) (*Entry, error) {
	entry, err, ok := p.pull()
	if !ok {
		return nil, io.EOF
	}
	return entry, err
}

func (p pulled) close() { p.stop() }

// entryOf returns the entry of a transaction, nil for one that is not wanted.
func (t *Timeline) entryOf(event *history.Event) *Entry {
	entry := &Entry{Time: event.Time, Node: event.Node, Database: event.Database, Transaction: event.Transaction,
		Program: event.Program, Log: event.Log, Count: 1, Text: event.Summary()}
	if !t.query.wantsProgram(entry.Program) {
		return nil
	}
	return t.named(entry)
}

// streams is a heap of streams by time.
type streams []*stream

func (s streams) Len() int      { return len(s) }
func (s streams) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *streams) Push(x any)   { *s = append(*s, x.(*stream)) }
func (s streams) Less(i, j int) bool {
	return cmp.Or(s[i].at.Compare(s[j].at), cmp.Compare(s[i].place, s[j].place)) < 0
}
func (s *streams) Pop() any {
	last := len(*s) - 1
	popped := (*s)[last]
	*s = (*s)[:last]
	return popped
}
