package ovsdb

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
)

// A cluster member's first record holds the whole database as of its last
// snapshot, as one JSON text in another. It is not taken into memory: its place
// in the file is noted, and it is copied from there.

// anywhere is a database file that can be read at any place.
type anywhere interface {
	io.ReadSeeker
	io.ReaderAt
}

// snapshot is where a snapshot's transaction stands in a file.
type snapshot struct{ offset, length int64 }

// passSnapshot reads a cluster's first record but for the snapshot, which leaves
// a null in the body. ok is false where the record is not what its header says,
// or is not laid out as ovsdb-server does: then all is as before.
func (s *scanner) passSnapshot(r *record, head *header) (ok bool, err error) {
	at, sum, split := s.offset, sha1.New(), &splitter{sum: sha1.New()}
	_, err = io.CopyN(io.MultiWriter(sum, s.spread, split), s.in, head.length)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if err != nil || hex.EncodeToString(sum.Sum(nil)) != head.sum || !split.complete() {
		return false, s.back(at)
	}
	if err := s.passed(r, head); err != nil {
		return false, err
	}
	r.body = split.kept.Bytes()
	r.snapshot = &snapshot{at + split.begin, split.end - split.begin}
	split.sum.Write([]byte("\n"))
	r.snapshotSum = split.sum.Sum(nil)
	return true, nil
}

// splitter takes a cluster's first record apart as it is written: the second
// element of prev_data, which is summed, and the rest, which is kept.
type splitter struct {
	kept       bytes.Buffer
	sum        hash.Hash
	at         int64 // of the next byte
	begin, end int64 // of the snapshot; 0 until it is known
	depth      int
	quoted     bool
	escaped    bool
	key        []byte // the last string that stood at depth 1
	inData     bool   // in the array prev_data
	element    int    // of it
	failed     bool
}

func (s *splitter) Write(p []byte) (int, error) {
	from := 0 // what of p was neither kept nor summed
	for i, c := range p {
		if s.quoted {
			s.inString(c)
			continue
		}
		switch c {
		case '"':
			s.quoted = true
			if s.depth == 1 {
				s.key = s.key[:0]
			}
		case ',':
			if s.inData && s.depth == 2 {
				s.element++
			}
		case '{', '[':
			s.depth++
			if s.depth == 2 {
				s.enter(c)
			} else if s.depth == 3 && s.inData && s.element == 1 && c == '{' && s.begin == 0 {
				s.kept.Write(p[from:i])
				s.kept.WriteString("null")
				s.begin, from = s.at+int64(i), i
			}
		case '}', ']':
			s.depth--
			if s.inSnapshot() && s.depth == 2 {
				s.sum.Write(p[from : i+1])
				s.end, from = s.at+int64(i)+1, i+1
			}
			s.inData = s.inData && s.depth > 1
		}
	}
	s.at += int64(len(p))
	if s.inSnapshot() {
		s.sum.Write(p[from:])
	} else if s.kept.Write(p[from:]); s.kept.Len() > large {
		s.failed = true
		s.kept.Reset() // it will be read in another way
	}
	return len(p), nil
}

func (s *splitter) inSnapshot() bool { return s.begin > 0 && s.end == 0 }

func (s *splitter) inString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.quoted = false
		return
	}
	if s.depth == 1 && len(s.key) <= len("prev_data") {
		s.key = append(s.key, c)
	}
}

// enter begins a member's value. A second prev_data, or one in other letters, is
// left to the parser, which knows what such mean.
func (s *splitter) enter(c byte) {
	if !strings.EqualFold(string(s.key), "prev_data") {
		return
	}
	s.failed = s.failed || string(s.key) != "prev_data" || s.begin > 0
	s.inData, s.element = c == '[', 0
}

func (s *splitter) complete() bool {
	return !s.failed && s.end > 0 && s.depth == 0 && !s.quoted
}
