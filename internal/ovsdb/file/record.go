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
)

// record is one record of a database file.
type record struct {
	number int    // from 1
	offset int64  // of its header line
	magic  string // "JSON" or "CLUSTER"
	header []byte // the header line as found, newline included
	body   []byte // valid until the next call; cut to the announced length when intact
	size   int64  // bytes found between this header and the next
	length int64  // bytes announced by the header
	intact bool   // length and sum match the header
	last   bool   // no record follows
	copied bool   // intact and written to the scanner's sink; body is nil
	// snapshot is the transaction in the first record of a cluster member that
	// is null in body; nil where body is complete.
	snapshot *span
}

// stray returns the number of bytes behind an intact record that belong to no record.
func (r *record) stray() int64 {
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

// sink receives records while they are read, and drops a record again that
// turns out to be damaged.
type sink interface {
	io.Writer
	position() int64
	cut(position int64) error
}

// discard is a sink that keeps nothing and fails when its context ends.
type discard struct{ ctx context.Context }

func (d discard) Write(p []byte) (int, error) { return len(p), d.ctx.Err() }
func (discard) position() int64               { return 0 }
func (discard) cut(int64) error               { return nil }

// large is the length of records, in bytes, that are not held in memory. A
// compacted database is one record.
const large = 4 << 20

// scanner splits a file into records at their header lines. It does not rely on
// the announced lengths, which may be wrong.
type scanner struct {
	in      *bufio.Reader
	offset  int64 // of the next byte to read
	number  int
	ahead   *header // the header line that ended the last read
	body    []byte
	extra   int64                 // bytes kept beyond the announced length
	maxSize int64                 // size of the file where it is known: a header may announce any length
	file    randomAccess          // the file behind in, nil for a stream
	sink    sink                  // receives large intact records; nil to read them into memory
	want    func(key string) bool // the members that are read of large records; nil for all
}

func newScanner(r io.Reader) *scanner {
	return &scanner{in: bufio.NewReaderSize(r, 1<<16), extra: 1 << 20}
}

// skip reads to the first header line and returns the number of bytes before it.
func (s *scanner) skip() (int64, error) {
	found, _, err := s.until(0)
	return found, err
}

// next returns the next record, or io.EOF.
func (s *scanner) next() (*record, error) {
	if s.ahead == nil {
		return nil, io.EOF
	}
	head := s.ahead
	s.number++
	r := &record{
		number: s.number,
		offset: s.offset - int64(len(head.line)),
		magic:  head.magic,
		header: head.line,
		length: head.length,
	}
	if s.file != nil && head.length >= large {
		if done, err := s.stream(r, head); done || err != nil {
			return r, err
		}
	}
	return r, s.load(r, head)
}

// load reads a record into memory.
func (s *scanner) load(r *record, head *header) error {
	// An anonymised record may be longer than announced by any amount. One that
	// is followed by gigabytes of something else should not be kept in memory.
	keep := int64(math.MaxInt64)
	if head.length <= (keep-s.extra)/2 {
		keep = 2*head.length + s.extra
	}
	if first, _ := s.in.Peek(1); head.length >= large && (len(first) == 0 || first[0] != '{') {
		keep = s.extra // not a transaction: its text is of no use
	}
	if room := min(head.length, s.maxSize, keep) + maxHeader; int64(cap(s.body)) < room {
		s.body = nil // freed before the larger one is allocated
		s.body = make([]byte, 0, room)
	}
	size, body, err := s.until(keep)
	if err != nil {
		return err
	}
	r.size, r.body, r.last = size, body, s.ahead == nil
	if size < r.length || int64(len(body)) < r.length {
		return nil
	}
	if sum := sha1.Sum(body[:r.length]); hex.EncodeToString(sum[:]) == head.sum {
		r.intact, r.body = true, body[:r.length]
		if int64(len(body)) == size && len(bytes.TrimSpace(body[r.length:])) == 0 {
			r.size = r.length // blank lines are no damage
		}
	}
	return nil
}

// stream reads a large record without holding it in memory. Where the record is
// damaged or in an unusual form, done is false and the scanner is back at its start.
func (s *scanner) stream(r *record, head *header) (done bool, err error) {
	start := s.offset
	switch {
	case head.magic == "CLUSTER" && r.number == 1:
		done, err = s.readSnapshot(r, head)
	case head.magic == "JSON" && s.want != nil:
		done, err = s.readMembers(r, head)
	case head.magic == "JSON" && s.sink != nil:
		done, err = s.copyRecord(r, head)
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !done {
		_, err = s.file.Seek(start, io.SeekStart)
		s.in.Reset(s.file)
		return false, err
	}
	s.offset += head.length
	after, rest, err := s.until(s.extra)
	r.intact, r.last, r.size = true, s.ahead == nil, head.length
	if int64(len(rest)) < after || len(bytes.TrimSpace(rest)) > 0 {
		r.size += after // blank lines are no damage
	}
	return true, err
}

// verify reads a record's text to its announced length into w, and reports
// whether its sum is the announced one.
func (s *scanner) verify(head *header, w io.Writer) (bool, error) {
	sum := sha1.New()
	_, err := io.CopyN(io.MultiWriter(sum, w), s.in, head.length)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return hex.EncodeToString(sum.Sum(nil)) == head.sum, err
}

// copyRecord writes a record to the sink.
func (s *scanner) copyRecord(r *record, head *header) (bool, error) {
	position := s.sink.position()
	if _, err := s.sink.Write(head.line); err != nil {
		return false, err
	}
	intact, err := s.verify(head, s.sink)
	if err == nil && !intact {
		err = s.sink.cut(position)
		s.sink = nil // a file full of wrong headers would be read to its end for each
	}
	r.copied = intact
	return intact, err
}

// readMembers reads the members of a transaction that the scanner's user wants.
func (s *scanner) readMembers(r *record, head *header) (bool, error) {
	finder := newMemberFinder(s.offset, s.want)
	if intact, err := s.verify(head, finder); !intact || err != nil {
		return false, err
	}
	var err error
	r.body, err = finder.object(s.file)
	return true, err
}

// readSnapshot reads the first record of a cluster member except for the
// transaction in it, which holds the database as of the last snapshot. The text
// of that transaction stays in the file, and is null in the record's body.
func (s *scanner) readSnapshot(r *record, head *header) (bool, error) {
	start := s.offset
	finder := newMemberFinder(start, func(key string) bool {
		// encoding/json matches keys without regard to case and resolves escapes.
		return strings.EqualFold(key, "prev_data") || strings.Contains(key, `\`)
	})
	if intact, err := s.verify(head, finder); !intact || err != nil {
		return false, err
	}
	data := finder.found["prev_data"]
	if data == nil || finder.matches != 1 || finder.depth != 0 || finder.quoted ||
		data.second.length == 0 || head.length-data.second.length > large {
		return false, nil
	}
	end := data.second.offset + data.second.length
	before, err := readSpan(s.file, span{start, data.second.offset - start})
	if err != nil {
		return false, err
	}
	after, err := readSpan(s.file, span{end, start + head.length - end})
	r.body = append(append(before, "null"...), after...)
	r.snapshot = &data.second
	return true, err
}

// until reads up to and including the next header line, which it leaves in
// s.ahead (nil at the end of the file). It returns the number of bytes before the
// header, and the first keep of them in a buffer that the next call uses again.
func (s *scanner) until(keep int64) (int64, []byte, error) {
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
