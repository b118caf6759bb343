package ovsdb

import (
	"bytes"
	"fmt"
)

// picker takes some members out of a JSON object that is written to it in
// pieces, and forgets the others: a database of gigabytes is one record, of
// which a reader may want two small tables.
type picker struct {
	want    func(key string) bool
	kept    bytes.Buffer
	depth   int
	quoted  bool
	escaped bool
	key     []byte // the member that is being read
	inKey   bool
	inValue bool // of a member of the object itself
	keep    bool
}

// mostPicked bounds what is kept: the rows of a thousand chassis are a megabyte.
const mostPicked = 64 << 20

// maxKey is longer than the name of any table.
const maxKey = 200

func (s *picker) Write(p []byte) (int, error) {
	from := 0 // what of p is not kept yet
	flush := func(to int) {
		if s.inValue && s.keep {
			s.kept.Write(p[from:to])
		}
	}
	if s.kept.Len() > mostPicked {
		return 0, fmt.Errorf("the tables that are looked for have over %d bytes", mostPicked)
	}
	for i, c := range p {
		if s.quoted {
			s.inString(c)
			continue
		}
		switch c {
		case '"':
			s.quoted = true
			if s.depth == 1 && !s.inValue {
				s.inKey, s.key = true, s.key[:0]
			}
		case ':':
			if s.depth == 1 && !s.inValue {
				s.begin()
				from = i + 1
			}
		case ',':
			if s.depth == 1 {
				flush(i)
				s.inValue = false
			}
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == 0 {
				flush(i)
				s.inValue = false
			}
		}
	}
	flush(len(p))
	return len(p), nil
}

func (s *picker) inString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.quoted, s.inKey = false, false
		return
	}
	if s.inKey && len(s.key) < maxKey {
		s.key = append(s.key, c)
	}
}

func (s *picker) begin() {
	s.inValue, s.keep = true, s.want(string(s.key))
	if !s.keep {
		return
	}
	separator := byte('{')
	if s.kept.Len() > 0 {
		separator = ','
	}
	s.kept.WriteByte(separator)
	s.kept.WriteString(`"` + string(s.key) + `":`)
}

// take returns the object of what was kept, and begins anew.
func (s *picker) take() []byte {
	if s.kept.Len() == 0 {
		s.kept.WriteByte('{')
	}
	s.kept.WriteByte('}')
	body := s.kept.Bytes()
	*s = picker{want: s.want}
	return body
}

func (s *picker) mark() int64 { return 0 }

func (s *picker) cut(int64) error {
	*s = picker{want: s.want}
	return nil
}
