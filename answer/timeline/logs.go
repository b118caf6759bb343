package timeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/phrase"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// logFile is a collected log.
type logFile struct {
	workdir.Log
	node      string
	name      string    // of the file on the node, for people
	first     time.Time // of its first line with a time
	reference time.Time // before which its lines were written, zero if that is not known
	dated     bool      // reference is when the node was recorded, and not when that was collected
	zone      *time.Location
	learned   bool // zone is what lines of the log show
}

func (f *logFile) open(ctx context.Context) (*daemonlog.Reader, error) {
	return daemonlog.Open(ctx, f.Path, f.Program, daemonlog.Options{Reference: f.reference, Location: f.zone})
}

// findLogs finds the logs of a set, and the time at which each begins.
func (t *Timeline) findLogs(ctx context.Context, selected *snapshot.Snapshot) error {
	for _, node := range selected.Nodes() {
		wd, err := node.Workdir()
		if err != nil {
			return err
		}
		logs, err := wd.HostLogs()
		if err != nil {
			return err
		}
		reference, dated := recordedAt(wd)
		for _, log := range logs {
			file := &logFile{Log: log, node: node.Name, name: filepath.Base(log.Path), reference: reference, dated: dated, zone: t.query.Location}
			if name, ok := workdir.DecodeName(file.name); ok {
				file.name = name
			}
			if err := t.probe(ctx, file); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordedAt returns when a node was recorded. Where that is not known, dated is false, and the time is that of the
// collection, or zero.
func recordedAt(wd *workdir.Dir) (at time.Time, dated bool) {
	manifest, err := wd.Manifest()
	if err != nil {
		return at, false // a workdir that a person filled
	}
	for _, c := range manifest.Collections {
		if recorded := cmp.Or(c.Recorded, c.Collected); recorded.After(at) {
			at, dated = recorded, !c.Recorded.IsZero()
		}
	}
	return at, dated
}

// recorded returns when the last of the logs was recorded, zero if that is not known.
func (t *Timeline) recorded() (last time.Time) {
	for _, file := range t.logs {
		if file.dated && file.reference.After(last) {
			last = file.reference
		}
	}
	return last
}

// noEntries is what journalctl prints in place of lines.
const noEntries = "-- No entries --"

// probe reads the beginning of a log: when it begins, and its time zone if lines show that.
func (t *Timeline) probe(ctx context.Context, file *logFile) error {
	const lines = 1000
	in, err := file.open(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		t.lose("%s: %v", file.of(), err)
		return nil
	}
	defer in.Close()
	isEmpty := true
	for range lines {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		isEmpty = isEmpty && (string(line.Text) == noEntries || strings.HasPrefix(string(line.Text), "-- Logs begin"))
		if file.first.IsZero() {
			file.first = line.At
		}
		if zone := in.Result().Zone; zone != nil && !file.learned {
			file.zone, file.learned, file.first = zone, true, time.Time{}
			return t.probe(ctx, file)
		}
		if !file.first.IsZero() && in.Result().NoZone == 0 {
			break
		}
	}
	if !file.first.IsZero() {
		t.logs = append(t.logs, file)
		return nil
	}
	if result := in.Result(); result.Lost != "" {
		t.lose("%s can't be read: %s", file.of(), result.Lost)
	} else if result.Lines > 0 && !isEmpty {
		t.lose("%s is left out: none of its first lines has a time", file.of())
	}
	return nil
}

// of names a log for a remark.
func (f *logFile) of() string { return f.node + ": " + f.Program + ": " + f.name }

// logSource reads the wanted lines of a log.
type logSource struct {
	file    *logFile
	t       *Timeline
	in      *daemonlog.Reader
	dropped map[string]int // by program, module, thread and level: lines that vlog dropped
}

func (s *logSource) next(ctx context.Context) (*Entry, error) {
	if s.in == nil {
		in, err := s.file.open(ctx)
		if err != nil {
			return nil, err
		}
		s.in, s.dropped = in, map[string]int{}
	}
	for {
		line, err := s.in.Next()
		if errors.Is(err, io.EOF) {
			s.describe(s.in.Result())
		}
		if err != nil {
			return nil, err
		}
		if n := droppedBy(line); n > 0 {
			s.keepDropped(line, n)
			continue
		}
		if !s.t.query.wants(line) {
			continue
		}
		if entry := s.t.named(s.entryOf(line)); entry != nil {
			return entry, nil
		}
	}
}

func (s *logSource) close() {
	if s.in != nil {
		s.in.Close()
	}
}

// describe adds what is not known of a log to the remarks.
func (s *logSource) describe(result daemonlog.Result) {
	name := s.file.of()
	if result.Lost != "" {
		s.t.lose("%s can't be read beyond line %d: %s", name, result.Lines, result.Lost)
	}
	if result.Cut > 0 {
		s.t.remarks = append(s.t.remarks, fmt.Sprintf("%s: %s longer than %d bytes, and cut", name, are(result.Cut), daemonlog.Longest))
	}
	if result.NoYear > 0 && !s.file.dated {
		s.t.remarks = append(s.t.remarks, fmt.Sprintf("%s: the year is not known: the times of %s name none, and neither is known when the log was written; the last year before the collection is shown",
			name, phrase.Count(result.NoYear, "line")))
	}
	switch count := phrase.Count(result.NoZone, "line"); {
	case result.NoZone == 0:
	case s.file.learned:
		s.t.remarks = append(s.t.remarks, fmt.Sprintf("%s: the times of %s name no time zone: it is %s by lines that also have a time in UTC", name, count, s.file.zone))
	default:
		s.t.remarks = append(s.t.remarks, fmt.Sprintf("%s: the times of %s name no time zone: %s is assumed; --zone names another one", name, count, s.file.zone))
	}
}

func are(lines int) string {
	if lines == 1 {
		return "1 line is"
	}
	return phrase.Count(lines, "line") + " are"
}

// longestText bounds the text of an entry, in bytes. Entries wait until they are folded.
const longestText = 2048

func (s *logSource) entryOf(line *daemonlog.Line) *Entry {
	entry := &Entry{Time: line.At, Node: s.file.node, Program: string(line.Program), Module: string(line.Module), Thread: string(line.Thread),
		Level: line.Level.String(), Text: phrase.Shorten(string(line.Text), longestText), Log: s.file.name + ":" + strconv.Itoa(line.Number),
		Count: 1, host: line.Host != nil}
	if len(s.dropped) == 0 {
		return entry
	}
	key := dropKey(line)
	if n := s.dropped[key]; n > 0 {
		delete(s.dropped, key)
		entry.Count, entry.Dropped = 1+n, n
	}
	return entry
}

// dropKey is the place of the program that wrote a line, as far as the log shows it.
func dropKey(line *daemonlog.Line) string {
	return fmt.Sprintf("%s|%s|%s|%d", line.Program, line.Module, line.Thread, line.Level)
}

// keepDropped keeps the number of lines that vlog dropped, which it writes before the next line from the
// same place.
func (s *logSource) keepDropped(line *daemonlog.Line, n int) {
	const most = 1000
	if len(s.dropped) >= most {
		clear(s.dropped)
	}
	s.dropped[dropKey(line)] += n
}

// droppedBy returns the number of lines that were dropped before a line of vlog that says so, 0 for
// another line: "Dropped 12 log messages in last 60 seconds (most recently, 5 seconds ago) due to
// excessive rate".
func droppedBy(line *daemonlog.Line) int {
	rest, ok := bytes.CutPrefix(line.Text, []byte("Dropped "))
	if !ok || line.Module == nil {
		return 0
	}
	number, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok || !bytes.HasPrefix(rest, []byte("log messages in last ")) {
		return 0
	}
	n, err := strconv.ParseInt(string(number), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// wants reports whether a line is wanted, but for its text.
func (q *Query) wants(line *daemonlog.Line) bool {
	switch {
	case line.At.Before(q.Since) && !line.At.IsZero():
		return false
	case !q.Until.IsZero() && line.At.After(q.Until):
		return false
	case len(q.Programs) > 0 && !slices.Contains(q.Programs, string(line.Program)):
		return false
	case q.All:
		return true
	case q.Level != daemonlog.Unknown:
		return line.Level >= q.Level
	}
	return line.Level >= daemonlog.Warn || isChange(line)
}

func (q *Query) wantsProgram(program string) bool {
	return len(q.Programs) == 0 || slices.Contains(q.Programs, program)
}

// named gives an entry names, and returns nil if its text is not wanted.
func (t *Timeline) named(entry *Entry) *Entry {
	entry.Names = t.names.in(entry.Node, entry.Text)
	text := strings.ToLower(entry.Annotated())
	has := func(part string) bool { return strings.Contains(text, strings.ToLower(part)) }
	switch {
	case !has(t.query.Grep):
		return nil
	case t.query.Record != "" && entry.Database == "" && !has(t.query.Record) && !slices.ContainsFunc(t.record, has):
		return nil
	}
	return entry
}
