package ovsdb

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// record is one record of a database file.
type record struct {
	number int    // from 1
	offset int64  // of its header line
	magic  string // "JSON" or "CLUSTER"
	header []byte // the header line as found, newline included
	body   []byte // valid until the next call; at most what the header announced when intact
	size   int64  // bytes found between this header and the next
	length int64  // bytes announced by the header
	intact bool   // length and sum are those of the header
	last   bool   // nothing follows
	passed bool   // it is intact and was written on; body is nil
	// snapshot is the part of a cluster's first record that is left out of body,
	// and the sum of it as a record of its own; nil where body is whole.
	snapshot    *snapshot
	snapshotSum []byte
}

// stray is how many bytes follow an intact record that belong to no record.
func (r *record) stray() int64 {
	if r.intact {
		return r.size - r.length
	}
	return 0
}

// mentionsSchema tells whether a cluster entry may hold a schema: its data then
// starts with an object and not with null.
func (r *record) mentionsSchema() bool {
	return bytes.Contains(r.body, []byte(`"data":[{`)) || bytes.Contains(r.body, []byte(`"data": [{`))
}

// header is a parsed header line.
type header struct {
	magic  string
	length int64
	sum    string
	line   []byte
}

// maxHeader bounds a header line: ovsdb/log.c reads it into 128 bytes.
const maxHeader = 128

// parseHeader finds a header line at the end of line, which ends in a newline.
// It may stand behind other bytes: a record that was cut short has no newline
// of its own. No line of JSON can end so: such words stand only in a string, and
// a string ends, with a quote, on its line (RFC 8259, section 7). The sum may be
// any word without JSON's signs: an anonymiser can have replaced part of it.
func parseHeader(line []byte) (header, bool) {
	if len(line) > maxHeader {
		line = line[len(line)-maxHeader:]
	}
	start := bytes.LastIndex(line, []byte("OVSDB "))
	if start < 0 || line[len(line)-1] != '\n' {
		return header{}, false
	}
	line = line[start:]
	words := bytes.Split(line[:len(line)-1], []byte(" "))
	if len(words) != 4 || len(words[3]) == 0 || bytes.ContainsAny(words[3], `"{}[],\`) {
		return header{}, false
	}
	magic := string(words[1])
	if magic != "JSON" && magic != "CLUSTER" {
		return header{}, false
	}
	for _, digit := range words[2] {
		if digit < '0' || digit > '9' {
			return header{}, false
		}
	}
	length, err := strconv.ParseInt(string(words[2]), 10, 64)
	if err != nil || length == 0 {
		return header{}, false
	}
	return header{magic, length, string(words[3]), bytes.Clone(line)}, true
}

// scanner splits a file into records at their header lines. It never trusts a
// length: a file with wrong ones is split as rightly as one without.
type scanner struct {
	in     *bufio.Reader
	offset int64 // of the next byte to read
	number int
	ahead  *header // the header line that ended the last read
	body   []byte
	spare  int64    // bytes kept beyond what a header announces
	most   int64    // the file's size where it is known: a header may announce anything
	file   anywhere // what in reads, where that can be read again; nil else
	onward onward   // where large records go that are as they should be; nil to keep them
	spread *spread  // of all UUIDs
}

// onward takes what is read, and takes it back where it turns out to be wrong.
type onward interface {
	io.Writer
	mark() int64
	cut(mark int64) error
}

// nowhere is for those who only want to know whether a record is intact, until
// their context ends.
type nowhere struct{ ctx context.Context }

func (n nowhere) Write(p []byte) (int, error) { return len(p), n.ctx.Err() }
func (nowhere) mark() int64                   { return 0 }
func (nowhere) cut(int64) error               { return nil }

// large is the length of records, in bytes, that are written on while they are
// read. A compacted database is one record.
const large = 4 << 20

func newScanner(r io.Reader) *scanner {
	return &scanner{in: bufio.NewReaderSize(r, 1<<16), spare: 1 << 20, spread: newSpread()}
}

// skip reads to the first header line and returns how many bytes stood before.
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
	if s.onward != nil && s.file != nil && head.length >= large && head.magic == "JSON" {
		if ok, err := s.pass(r, head); ok || err != nil {
			return r, err
		}
	}
	if s.file != nil && s.number == 1 && head.length >= large && head.magic == "CLUSTER" {
		if ok, err := s.passSnapshot(r, head); ok || err != nil {
			return r, err
		}
	}
	// An anonymised record may be longer than announced, by any amount; one
	// followed by gigabytes of something else should not be kept in memory.
	keep := saturated(head.length, s.spare)
	if first, _ := s.in.Peek(1); head.length >= large && (len(first) == 0 || first[0] != '{') {
		keep = s.spare // it is no transaction, whatever its length: nobody needs all of it
	}
	if room := min(head.length, s.most, keep) + maxHeader; int64(cap(s.body)) < room {
		s.body = nil // given free before the larger one is made
		s.body = make([]byte, 0, room)
	}
	size, body, err := s.until(keep)
	if err != nil {
		return nil, err
	}
	if _, err := s.spread.Write(body); err != nil {
		return nil, err
	}
	r.size, r.body, r.last = size, body, s.ahead == nil
	if size >= r.length && int64(len(body)) >= r.length {
		sum := sha1.Sum(body[:r.length])
		if hex.EncodeToString(sum[:]) == head.sum {
			r.intact, r.body = true, body[:r.length]
			if int64(len(body)) == size && len(bytes.TrimSpace(body[r.length:])) == 0 {
				r.size = r.length // blank lines are nothing to tell of
			}
		}
	}
	return r, nil
}

// pass writes a record on while it is read. ok is false where it is not what its
// header says: then all is as before, and it has to be read into memory.
func (s *scanner) pass(r *record, head *header) (ok bool, err error) {
	at, mark := s.offset, s.onward.mark()
	sum := sha1.New()
	_, err = s.onward.Write(head.line)
	if err == nil {
		_, err = io.CopyN(io.MultiWriter(sum, s.spread, s.onward), s.in, head.length)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != head.sum {
		err := errors.Join(s.back(at), s.onward.cut(mark))
		s.onward = nil // a file of headers that lie would be read to its end for each
		return false, err
	}
	r.passed = true
	return true, s.passed(r, head)
}

// back reads on from an earlier place.
func (s *scanner) back(at int64) error {
	_, err := s.file.Seek(at, io.SeekStart)
	s.in.Reset(s.file)
	return err
}

// passed looks for what follows a record that was read to its end and is intact.
func (s *scanner) passed(r *record, head *header) error {
	s.offset += head.length
	behind, rest, err := s.until(s.spare)
	if err != nil {
		return err
	}
	r.intact, r.last, r.size = true, s.ahead == nil, head.length
	if int64(len(rest)) < behind || len(bytes.TrimSpace(rest)) > 0 {
		r.size += behind // blank lines are nothing to tell of
	}
	return nil
}

// until reads up to and including the next header line, which it leaves in
// s.ahead (nil at the end of the file). It returns how many bytes stood before
// the header, and those of them that keep allows, in a buffer used again by the
// next call.
func (s *scanner) until(keep int64) (int64, []byte, error) {
	s.ahead, s.body = nil, s.body[:0]
	var size int64
	var tail []byte // the end of the current line, as much as a header needs
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

// saturated is twice length and spare more, or the greatest number there is.
func saturated(length, spare int64) int64 {
	const most = 1<<63 - 1
	if length > (most-spare)/2 {
		return most
	}
	return 2*length + spare
}

// formatHeader gives the header line of a record whose body is these parts.
func formatHeader(magic string, body ...[]byte) []byte {
	sum, length := sha1.New(), 0
	for _, part := range body {
		sum.Write(part)
		length += len(part)
	}
	return fmt.Appendf(nil, "OVSDB %s %d %x\n", magic, length, sum.Sum(nil))
}
