package ovsdb

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strconv"
)

// source is a database file being read: its records in order, and what has
// been learned so far. The first record is parsed when it is opened.
type source struct {
	info   Info
	scan   *scanner
	before int64         // bytes before the first record
	first  *record       // until next has handed it out
	head   clusterHeader // of a clustered file
	packed *unpacked     // of a gzip'd file
}

// schemaHead is what a schema record says of the database (RFC 7047, 3.2).
type schemaHead struct {
	Name    string                     `json:"name"`
	Version string                     `json:"version"`
	Tables  map[string]json.RawMessage `json:"tables"`
}

// newSource reads the first record, by which a file is known.
func newSource(ctx context.Context, r io.Reader) (*source, error) {
	s := &source{}
	if err := s.open(ctx, r); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *source) open(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<16)
	start, err := in.Peek(512)
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading the database: %w", err)
	}
	if bytes.HasPrefix(start, []byte{0x1f, 0x8b}) {
		if s.packed, err = unpack(ctx, in, folderOf(r)); err != nil {
			return err
		}
		s.info.Gzip = true
		r, in = s.packed.file, bufio.NewReaderSize(s.packed.file, 1<<16)
		start, _ = in.Peek(512)
	}
	if len(start) == 0 {
		return errEmpty()
	}
	s.scan = newScanner(in)
	if file, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if stat, err := file.Stat(); err == nil {
			s.scan.most = stat.Size()
			if stat.Mode().IsRegular() {
				s.scan.file, _ = r.(anywhere)
			}
		}
	}
	if s.before, err = s.scan.skip(); err != nil {
		return fmt.Errorf("reading the database: %w", err)
	}
	if s.scan.ahead == nil && looksLikeRows(start) {
		return tailed("it starts inside a record, and no other follows")
	}
	if s.scan.ahead == nil {
		return fmt.Errorf("%w: it is %s%s", ErrNotDatabase, looksLike(start), s.inside())
	}
	if s.first, err = s.scan.next(); err != nil {
		return fmt.Errorf("reading the database: %w", err)
	}
	if s.before > 0 {
		s.info.damage("%d bytes before the first record", s.before)
	}
	s.check(s.first)
	return s.identify()
}

// close ends the use of a source.
func (s *source) close() {
	if s.packed != nil {
		s.packed.file.Close()
	}
}

func errEmpty() error { return fmt.Errorf("%w: collect it again", ErrEmpty) }

func (s *source) inside() string {
	if s.info.Gzip {
		return ", inside gzip"
	}
	return ""
}

// tailed tells of a file whose first record is lost. sos does this to files
// above its size limit.
func tailed(why string) error {
	return fmt.Errorf("%w (%s), and with it the schema: no server can serve it; "+
		"collect again with `sos report --all-logs`, or take `ovsdb-client backup`", ErrTailed, why)
}

// identify reads name, version and form from the first record.
func (s *source) identify() error {
	if !json.Valid(s.first.body) {
		return fmt.Errorf("%w: record 1 is not valid JSON; collect the database again, without `sos clean`", ErrSchema)
	}
	if s.first.magic == "CLUSTER" {
		s.info.Form = FormClustered
		return s.identifyCluster()
	}
	s.info.Form = FormStandalone
	return s.readSchema(s.first.body)
}

// identifyCluster reads the first record of a cluster member.
func (s *source) identifyCluster() error {
	if err := json.Unmarshal(s.first.body, &s.head); err != nil {
		return fmt.Errorf("%w: record 1: %w; collect the database again", ErrSchema, err)
	}
	s.info.Name = s.head.Name
	switch {
	case s.head.RemoteAddresses != nil:
		return fmt.Errorf("%w (made by `ovsdb-tool join-cluster`); collect %s from another member of its cluster",
			ErrJoinOnly, s.head.Name)
	case s.head.ServerID == "":
		return tailed("record 1 is not a cluster's first one")
	case len(s.head.PrevData) != 2:
		return fmt.Errorf("%w: no snapshot in record 1; collect %s from another member of its cluster",
			ErrJoinOnly, s.head.Name)
	}
	return s.readSchema(s.head.PrevData[0])
}

// readSchema takes name and version from a schema.
func (s *source) readSchema(schema []byte) error {
	var head schemaHead
	err := json.Unmarshal(schema, &head)
	if err != nil || head.Tables == nil {
		return tailed("record 1 is not a schema")
	}
	s.info.Name, s.info.Version = head.Name, head.Version
	return nil
}

// noteSchema takes the version from a cluster entry that changes the schema.
func (s *source) noteSchema(data []json.RawMessage) {
	var head schemaHead
	if len(data) == 2 && json.Unmarshal(data[0], &head) == nil && head.Tables != nil {
		s.info.Version = head.Version
	}
}

// next returns the records in order, the first one too, and io.EOF at the end.
func (s *source) next() (*record, error) {
	if r := s.first; r != nil {
		s.first = nil
		return r, nil
	}
	r, err := s.scan.next()
	switch {
	case err == io.EOF && s.packed != nil && s.packed.cut != nil && !s.packed.told:
		s.packed.told = true
		s.info.damage("the gzip stream is cut off or broken at its end: %v", s.packed.cut)
		return nil, err
	case err == io.EOF:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("reading record %d: %w", s.scan.number, err)
	}
	s.check(r)
	return r, nil
}

// check counts a record and notes what is wrong with it.
func (s *source) check(r *record) {
	s.info.Records++
	where := fmt.Sprintf("record %d at offset %d", r.number, r.offset)
	switch {
	case r.stray() > 0:
		s.info.damage("%s: followed by %d bytes that are no record", where, r.stray())
	case r.intact:
	case r.last && r.size < r.length && !json.Valid(r.body):
		s.info.damage("%s: cut off after %d of %d bytes", where, r.size, r.length)
	case r.size != r.length:
		s.info.damage("%s: %d bytes where its header says %d", where, r.size, r.length)
	default:
		s.info.damage("%s: its text does not have the SHA-1 sum of its header", where)
	}
}

// looksLikeRows tells whether start is from the middle of a record.
func looksLikeRows(start []byte) bool {
	for _, sign := range []string{`["uuid","`, `["map",[`, `["set",[`} {
		if bytes.Contains(start, []byte(sign)) {
			return true
		}
	}
	return false
}

// looksLike says what the first bytes of a file look like to a person.
func looksLike(start []byte) string {
	for _, kind := range []struct{ magic, name string }{
		{"\x1f\x8b", "gzip data: unpack it once more"},
		{"\xfd7zXZ\x00", "xz data: unpack it with `xz -d` first"},
		{"BZh", "bzip2 data: unpack it with `bunzip2` first"},
		{"\x28\xb5\x2f\xfd", "zstd data: unpack it with `zstd -d` first"},
		{"PK\x03\x04", "a zip archive: unpack it first"},
		{"\x7fELF", "a program"},
	} {
		if bytes.HasPrefix(start, []byte(kind.magic)) {
			return kind.name
		}
	}
	if len(start) > 262 && bytes.Equal(start[257:262], []byte("ustar")) {
		return "a tar archive: unpack it first"
	}
	if bytes.HasPrefix(start, []byte("OVSDB ")) {
		return "cut inside the first header line: collect it again"
	}
	start = bytes.TrimSpace(start[:min(len(start), 48)])
	if bytes.ContainsFunc(start, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0xfffd }) {
		return fmt.Sprintf("binary data that starts with % x", start[:min(len(start), 8)])
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	return "text that starts with " + strconv.Quote(string(line))
}
