package ovsdb

import (
	"bytes"
	"fmt"
	"hash/maphash"
)

// spread watches how the UUIDs of a file are spread. ovsdb-server finds a row by
// the last bits of its UUID's first part (lib/uuid.h, uuid_hash; lib/hmap.c):
// where rows are alike there, each search walks along them all, and a hundred
// thousand keep it busy for hours. Random UUIDs (RFC 9562, version 4), which is
// what OVSDB's own are, never are: a file of theirs would need a hundred million.
type spread struct {
	seen  [1 << 16]uint16      // how often the last 16 bits stood there, up to many
	alike map[uint16]*distinct // those that stood there more often
	seed  maphash.Seed
	tail  []byte // the end of what was written
}

// distinct counts different UUIDs, nearly: those of the same bit pass for one.
type distinct struct {
	bits [8192 / 64]uint64
	n    int
}

const (
	many      = 2000   // rows that may be alike
	quoted    = 36 + 2 // the length of a UUID in quotes
	firstDash = 9      // where its first dash is
)

func newSpread() *spread {
	return &spread{alike: map[uint16]*distinct{}, seed: maphash.MakeSeed()}
}

// Write looks at a piece of a file's text. Its error wraps ErrAlike.
func (s *spread) Write(p []byte) (int, error) {
	seam := append(s.tail, p[:min(len(p), quoted-1)]...)
	if err := s.look(seam); err != nil {
		return 0, err
	}
	if err := s.look(p); err != nil {
		return 0, err
	}
	end := p
	if len(p) < quoted {
		end = seam
	}
	s.tail = append(s.tail[:0], end[max(0, len(end)-quoted+1):]...)
	return len(p), nil
}

// look finds the UUIDs that are whole in text.
func (s *spread) look(text []byte) error {
	for {
		dash := bytes.IndexByte(text, '-')
		if dash < 0 {
			return nil
		}
		start := dash - firstDash
		if start < 0 || len(text) < start+quoted || !isUUID(text[start:start+quoted]) {
			text = text[dash+1:]
			continue
		}
		if err := s.add(text[start+1 : start+quoted-1]); err != nil {
			return err
		}
		text = text[start+quoted:]
	}
}

// isUUID looks at the quotes and dashes only.
func isUUID(p []byte) bool {
	return p[0] == '"' && p[9] == '-' && p[14] == '-' && p[19] == '-' && p[24] == '-' && p[37] == '"'
}

func (s *spread) add(uuid []byte) error {
	var last uint16
	for _, c := range uuid[4:8] {
		last = last<<4 | uint16(c&0xf) + uint16(c>>6&1)*9 // of a hexadecimal digit
	}
	if s.seen[last] < many {
		s.seen[last]++
		return nil
	}
	d := s.alike[last]
	if d == nil {
		d = &distinct{}
		s.alike[last] = d
	}
	h := maphash.Bytes(s.seed, uuid) % uint64(len(d.bits)*64)
	if d.bits[h/64]&(1<<(h%64)) == 0 {
		d.bits[h/64] |= 1 << (h % 64)
		d.n++
	}
	if d.n > many {
		return fmt.Errorf("%w: thousands have %04x at the end of their first part, as in %s: it would be busy with them for hours. "+
			"No OVSDB makes such; if the database is real, say what made it", ErrAlike, last, uuid)
	}
	return nil
}
