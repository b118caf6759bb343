package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/lazyregexp"
)

// Request is one operation (RFC 7047, 5.2) that a client of libovsdb sent to a server.
// The log does not show whether the server did it.
type Request struct {
	Operation string `json:"operation"` // "insert", "update", "mutate", "delete" ...
	Table     string `json:"table,omitempty"`
	UUID      string `json:"uuid,omitempty"` // of the row, where the log has one
	// Row, Mutations and Where are texts of the log. It prints strings without quotes, so
	// they can't be told apart from what surrounds them in all cases.
	Row       string `json:"row,omitempty"`
	Mutations string `json:"mutations,omitempty"`
	Where     string `json:"where,omitempty"`
}

// logged is a line of a log that describes a transaction.
type logged struct {
	at       time.Time
	database string
	requests []Request
}

var (
	// logLine matches a line that a log.Logger of Go wrote with its date, time and file, as
	// OVN-Kubernetes configures libovsdb's (go-controller/pkg/libovsdb/libovsdb.go). The
	// rest is the notation of logr's funcr: "key"=value.
	logLine = lazyregexp.New(`^(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?) [\w.-]+:\d+: .*?"msg"="transacting operations"`)
	// logDatabase and logOperations match the values of a line.
	logDatabase   = lazyregexp.New(`"database"=("(?:[^"\\]|\\.)*")`)
	logOperations = lazyregexp.New(`"operations"=("(?:[^"\\]|\\.)*")`)
	// operation matches the beginning of an operation in the notation %+v of Go, as
	// libovsdb's client prints a list of them (client/client.go).
	operation = lazyregexp.New(`(?:^\[|\} )\{Op:(insert|select|update|mutate|delete|wait|commit|abort|comment|assert) Table:([A-Za-z_]*) Row:`)
	rowUUID   = lazyregexp.New(`column _uuid == \{([0-9a-f-]{36})\}`)
	newUUID   = lazyregexp.New(` UUID:([0-9a-f-]{36}) `)
)

// errNotLogged is the error for a line about a transaction that can't be read.
var errNotLogged = errors.New("the operations can't be read")

// parseLine reads a line of a log. ok is false for a line about something else.
func parseLine(line string) (logged logged, ok bool, err error) {
	match := logLine.FindStringSubmatch(line)
	if match == nil {
		return logged, false, nil
	}
	if logged.at, err = time.Parse("2006/01/02 15:04:05", match[1]); err != nil {
		return logged, true, err
	}
	var operations string
	for pattern, value := range map[*lazyregexp.Regexp]*string{logDatabase: &logged.database, logOperations: &operations} {
		found := pattern.FindStringSubmatch(line)
		if found == nil {
			return logged, true, errNotLogged
		}
		if *value, err = strconv.Unquote(found[1]); err != nil {
			return logged, true, errNotLogged
		}
	}
	if logged.requests = parseOperations(operations); logged.requests == nil {
		return logged, true, errNotLogged
	}
	return logged, true, nil
}

// parseOperations reads a list of operations in the notation %+v of Go.
func parseOperations(text string) (list []Request) {
	starts := operation.FindAllStringSubmatchIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0] + 1
		}
		rest := text[at[1]:end]
		request := Request{Operation: text[at[2]:at[3]], Table: text[at[4]:at[5]]}
		request.Row, rest = cutLast(rest, " Rows:[")
		request.Row = inner(request.Row, "map[")
		_, rest, _ = strings.Cut(rest, " Mutations:")
		request.Mutations, rest = cutLast(rest, " Timeout:")
		request.Mutations = inner(request.Mutations, "[")
		_, rest, _ = strings.Cut(rest, " Where:")
		request.Where, rest = cutLast(rest, " Until:")
		request.Where = strings.TrimPrefix(inner(request.Where, "["), "where ")
		if m := rowUUID.FindStringSubmatch(request.Where); m != nil {
			request.UUID = m[1]
		} else if m := newUUID.FindStringSubmatch(rest); m != nil {
			request.UUID = m[1]
		}
		list = append(list, request)
	}
	return list
}

// cutLast cuts a text around the last separator: what precedes it may hold the same words
// in a string.
func cutLast(text, separator string) (before, after string) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+len(separator):]
}

// inner returns the text between an opening bracket and the last byte.
func inner(text, opening string) string {
	text = strings.TrimPrefix(text, opening)
	return strings.TrimSuffix(text, "]")
}

// maxLine bounds a line of a log, in bytes. OVN-Kubernetes sends transactions of thousands
// of operations when it starts.
const maxLine = 64 << 20

// logReader reads the requests for one database in several log files, one after the other.
type logReader struct {
	ctx    context.Context
	source Source
	query  Query
	rest   []string // files that are not opened yet
	name   string   // of the open file
	file   *os.File
	in     *bufio.Reader
	line   int
	result Result
	bad    int // lines about transactions that can't be read
}

func (q Query) openLogs(ctx context.Context, source Source) *stream {
	r := &logReader{ctx: ctx, source: source, query: q, rest: source.Logs, result: Result{Database: source.name()}}
	return &stream{read: r.next, close: func() { r.file.Close() }, result: r.described}
}

// next returns the next wanted event, or io.EOF at the end.
func (r *logReader) next() (*Event, error) {
	for {
		if r.in == nil {
			if len(r.rest) == 0 {
				return nil, io.EOF
			}
			if err := r.open(); err != nil {
				return nil, err
			}
			continue
		}
		line, complete, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if line == nil {
			continue
		}
		logged, ok, err := parseLine(string(line))
		if !complete && (ok || len(line) >= maxLine) || err != nil {
			r.lose(fmt.Sprintf("%s, line %d: a transaction that can't be read", r.name, r.line))
			continue
		}
		if event := r.event(logged); ok && event != nil {
			return event, nil
		}
	}
}

// open opens the next file.
func (r *logReader) open() error {
	path := r.rest[0]
	r.rest = r.rest[1:]
	r.file.Close()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	r.file, r.name, r.line = file, filepath.Base(path), 0
	in := bufio.NewReader(interrupt.Reader(r.ctx, file))
	if start, _ := in.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		zip, err := gzip.NewReader(in)
		if err != nil {
			r.lose(fmt.Sprintf("%s: %v", r.name, err))
			return nil
		}
		in = bufio.NewReader(zip)
	}
	r.in = in
	return nil
}

// readLine returns the next line, nil at the end of a file. complete is false for a line
// without its end.
func (r *logReader) readLine() (line []byte, complete bool, err error) {
	r.line++
	line = []byte{}
	for {
		piece, err := r.in.ReadSlice('\n')
		if len(line) < maxLine {
			line = append(line, piece...)
		}
		switch {
		case err == nil:
			return line, len(line) < maxLine, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case r.ctx.Err() != nil:
			return nil, false, r.ctx.Err()
		}
		r.in = nil
		if err != io.EOF {
			r.lose(fmt.Sprintf("%s breaks off after line %d: %v", r.name, r.line-1, err))
		}
		if len(line) == 0 {
			return nil, false, nil
		}
		return line, false, nil
	}
}

func (r *logReader) lose(text string) {
	const most = 20
	r.result.Lost = true
	if r.bad++; r.bad <= most {
		r.result.Remarks = append(r.result.Remarks, text)
	}
}

func (r *logReader) described() Result {
	if more := r.bad - len(r.result.Remarks); more > 0 {
		r.result.Remarks = append(r.result.Remarks, fmt.Sprintf("%d more places in the logs that can't be read", more))
	}
	return r.result
}

// event describes a line, nil if nothing in it is wanted. Lines are in the order in which
// they were written; a clock that was set back does not change it.
func (r *logReader) event(line logged) *Event {
	if line.database != r.source.Schema || !r.query.Until.IsZero() && line.at.After(r.query.Until) {
		return nil
	}
	described := &Event{Node: r.source.Node, Database: r.source.Title, Time: line.at, Program: "libovsdb", Log: fmt.Sprintf("%s:%d", r.name, r.line)}
	for _, request := range line.requests {
		if r.query.wants(request) {
			described.Requests = append(described.Requests, request)
		}
	}
	described.Count = len(line.requests)
	if len(described.Requests) == 0 {
		return nil
	}
	return described
}

// wants reports whether a request is wanted. Its texts have no quotes, so a record is
// looked for as a word.
func (q Query) wants(request Request) bool {
	text := request.Row + " " + request.Mutations + " " + request.Where
	switch {
	case q.Table != "" && request.Table != q.Table:
		return false
	case q.Record != "" && !q.isUUID(request.UUID) && !hasWord(text, q.Record):
		return false
	}
	return q.Column == "" || strings.Contains(" "+request.Row, " "+q.Column+":") || strings.Contains(request.Mutations, "Column:"+q.Column+" ")
}

// hasWord reports whether a text contains a word as a whole word.
func hasWord(text, word string) bool {
	for rest := text; ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(word):]
		if !continues(before, len(before)-1) && !continues(after, 0) {
			return true
		}
		rest = after
	}
}

// continues reports whether the byte at an index of a text belongs to a word.
func continues(text string, i int) bool {
	return i >= 0 && i < len(text) && strings.IndexByte("-_.", text[i]) >= 0 || i >= 0 && i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z')
}
