package file

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"

	"ovs-offline/internal/interrupt"
)

// record is one record of a database file.
type record struct {
	header
	number int    // from 1
	offset int64  // of its header line
	body   []byte // valid until the next call; cut to the announced length when intact
	size   int64  // bytes found between this header and the next
	intact bool   // length and sum match the header
	last   bool   // no record follows
	copied bool   // intact and written to the scanner's sink; body is nil
	// rows has the changes of rows of a large record if the scanner looks for rows; body
	// has only the members that the scanner wants then, or is nil.
	rows *rowFinder
	// data is where the data of a large entry of a cluster's log is, if the scanner reads heads.
	data span
	// snapshot is the transaction in the first record of a cluster member that
	// is null in body; nil if body is complete.
	snapshot *span
}

// strayBytes returns the number of bytes after an intact record that belong to no record.
func (r *record) strayBytes() int64 {
	if r.intact {
		return r.size - r.length
	}
	return 0
}

// mentionsSchema reports whether a cluster entry may hold a schema: its data
// then starts with an object instead of null.
func (r *record) mentionsSchema() bool {
	return bytes.Contains(r.body, []byte(`"data":[{`)) || bytes.Contains(r.body, []byte(`"data": [{`))
}

// randomAccess is a database file that can be read at any offset.
type randomAccess interface {
	io.ReadSeeker
	io.ReaderAt
}

// large is the length of records, in bytes, that are not held in memory. A
// compacted database is one record.
const large = 4 << 20

// extra is the number of bytes after a record's announced length that are kept.
const extra = 1 << 20

// scanner splits a file into records at their header lines. It does not rely on
// the announced lengths, which may be wrong.
type scanner struct {
	raw     io.Reader     // fails when the scanner's context ends
	in      *bufio.Reader // of raw
	offset  int64         // of the next byte to read
	number  int
	ahead   *header // the header line that ended the last read
	body    []byte
	maxSize int64                   // size of the file where it is known: a header may announce any length
	file    randomAccess            // the file behind in, nil for a stream
	sink    *output                 // receives large intact records; nil to read them into memory
	skim    bool                    // large intact records are checked and not kept
	rows    func(table string) bool // the tables whose rows are found in large records; nil to read these into memory
	want    func(key string) bool   // the members that are read of such records besides; nil for none
	heads   bool                    // large entries of a cluster's log are read without their data
	program programFinder
}

func newScanner(ctx context.Context, r io.Reader) *scanner {
	raw := interrupt.Reader(ctx, r)
	return &scanner{raw: raw, in: bufio.NewReaderSize(raw, 1<<16)}
}

// next returns the next record, or io.EOF.
func (s *scanner) next() (*record, error) {
	if s.ahead == nil {
		return nil, io.EOF
	}
	s.number++
	record := &record{header: *s.ahead, number: s.number, offset: s.offset - int64(len(s.ahead.line))}
	if s.file != nil && record.length >= large {
		if done, err := s.stream(record); done || err != nil {
			return record, err
		}
	}
	return record, s.load(record)
}

// load reads a record into memory.
func (s *scanner) load(record *record) error {
	// An anonymised record may be longer than announced by any amount. But gigabytes of
	// other text after a record must not be kept in memory.
	keep := int64(math.MaxInt64)
	if record.length <= (keep-extra)/2 {
		keep = 2*record.length + extra
	}
	if first, _ := s.in.Peek(1); record.length >= large && (len(first) == 0 || first[0] != '{') {
		keep = extra // not a transaction, so its text is not needed
	}
	if room := min(record.length, s.maxSize, keep) + maxHeader; int64(cap(s.body)) < room {
		s.body = nil // freed before the larger one is allocated
		s.body = make([]byte, 0, room)
	}
	size, body, err := s.readToHeader(keep)
	if err != nil {
		return err
	}
	record.size, record.body, record.last = size, body, s.ahead == nil
	s.program.search(body)
	if size < record.length || int64(len(body)) < record.length {
		return nil
	}
	if sum := sha1.Sum(body[:record.length]); hex.EncodeToString(sum[:]) == record.sum {
		record.intact, record.body = true, body[:record.length]
		if int64(len(body)) == size && len(bytes.TrimSpace(body[record.length:])) == 0 {
			record.size = record.length // blank lines are not damage
		}
	}
	return nil
}

// stream reads a large record without holding it in memory. If the record is
// damaged or in an unusual form, done is false and the scanner is back at its start.
func (s *scanner) stream(record *record) (done bool, err error) {
	start := s.offset
	switch {
	case record.magic == "CLUSTER" && record.number == 1:
		done, err = s.readSnapshot(record)
	case record.magic == "CLUSTER" && s.heads:
		done, err = s.readHead(record)
	case record.magic == "JSON" && s.rows != nil:
		done, err = s.findRows(record)
	case record.magic == "JSON" && s.sink != nil:
		done, err = s.copyRecord(record)
	case record.magic == "JSON" && s.skim:
		done, err = s.verify(record, io.Discard)
		s.skim = done // otherwise a file full of wrong headers would be read to its end for each header
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !done {
		_, err = s.file.Seek(start, io.SeekStart)
		s.in.Reset(s.raw)
		return false, err
	}
	s.offset += record.length
	after, rest, err := s.readToHeader(extra)
	record.intact, record.last, record.size = true, s.ahead == nil, record.length
	if int64(len(rest)) < after || len(bytes.TrimSpace(rest)) > 0 {
		record.size += after // blank lines are not damage
	}
	return true, err
}

// verify reads a record's text to its announced length into w, and reports
// whether its sum is the announced one.
func (s *scanner) verify(record *record, w io.Writer) (bool, error) {
	sum := sha1.New()
	_, err := io.CopyN(io.MultiWriter(sum, w, &pieces{finder: &s.program}), s.in, record.length)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return hex.EncodeToString(sum.Sum(nil)) == record.sum, err
}

// copyRecord writes a record to the sink.
func (s *scanner) copyRecord(record *record) (bool, error) {
	position := s.sink.offset
	if _, err := s.sink.Write(record.line); err != nil {
		return false, err
	}
	intact, err := s.verify(record, s.sink)
	if err == nil && !intact {
		err = s.sink.cut(position)
		s.sink = nil // as above
	}
	record.copied = intact
	return intact, err
}

// findRows finds the changes of rows in a transaction, and reads the members that want
// accepts.
func (s *scanner) findRows(record *record) (bool, error) {
	finder := newRowFinder(s.offset, s.rows)
	if s.want == nil {
		intact, err := s.verify(record, finder)
		if intact {
			record.rows = finder
		}
		return intact, err
	}
	members := newMemberFinder(s.offset, s.want)
	if intact, err := s.verify(record, io.MultiWriter(finder, members)); !intact || err != nil {
		return false, err
	}
	var err error
	record.rows = finder
	record.body, err = members.object(s.file)
	return true, err
}

// readHead reads an entry of a cluster's log except for its data, which is a whole database where
// the schema was converted.
func (s *scanner) readHead(record *record) (bool, error) {
	members := newMemberFinder(s.offset, func(string) bool { return true })
	if intact, err := s.verify(record, members); !intact || err != nil {
		return false, err
	}
	if data := members.found["data"]; data != nil {
		record.data = data.value
		delete(members.found, "data")
	}
	var err error
	record.body, err = members.object(s.file)
	return true, err
}

// readSnapshot reads the first record of a cluster member except for the
// transaction in it, which holds the database as of the last snapshot. The text
// of that transaction stays in the file, and is null in the record's body.
func (s *scanner) readSnapshot(record *record) (bool, error) {
	start := s.offset
	finder := newMemberFinder(start, func(key string) bool {
		// encoding/json matches keys without regard to case and resolves escapes.
		return strings.EqualFold(key, "prev_data") || strings.Contains(key, `\`)
	})
	if intact, err := s.verify(record, finder); !intact || err != nil {
		return false, err
	}
	data := finder.found["prev_data"]
	if data == nil || finder.matches != 1 || finder.depth != 0 || finder.quoted ||
		data.second.length == 0 || record.length-data.second.length > large {
		return false, nil
	}
	end := data.second.offset + data.second.length
	before, err := readSpan(s.file, span{start, data.second.offset - start})
	if err != nil {
		return false, err
	}
	after, err := readSpan(s.file, span{end, start + record.length - end})
	record.body = append(append(before, "null"...), after...)
	record.snapshot = &data.second
	return true, err
}

// readToHeader reads up to and including the next header line, which it leaves in
// s.ahead (nil at the end of the file). It returns the number of bytes before the
// header, and the first keep of them in a buffer that the next call uses again.
func (s *scanner) readToHeader(keep int64) (int64, []byte, error) {
	s.ahead, s.body = nil, s.body[:0]
	var size int64
	var tail []byte // the end of the current line, long enough for a header
	for {
		piece, err := s.in.ReadSlice('\n')
		size += int64(len(piece))
		s.offset += int64(len(piece))
		if room := keep - int64(len(s.body)); room > 0 {
			s.body = append(s.body, piece[:min(int64(len(piece)), room)]...)
		}
		tail = append(tail[max(0, len(tail)-maxHeader):], piece[max(0, len(piece)-maxHeader):]...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF:
			return size, s.body, nil
		case err != nil:
			return size, nil, err
		}
		if head, ok := parseHeader(tail); ok {
			s.ahead = &head
			size -= int64(len(head.line))
			return size, s.body[:min(int64(len(s.body)), size)], nil
		}
		tail = tail[:0]
	}
}
