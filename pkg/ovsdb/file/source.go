package file

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"ovs-offline/internal/interrupt"
)

// source is a database file being read: its records in order, and what is known from
// the records read so far. Its first record is parsed when it is opened.
type source struct {
	info   Info
	scan   *scanner
	before int64         // bytes before the first record
	first  *record       // nil once next has returned it
	head   clusterHeader // of a clustered file

	file     File     // nil if the source opened none
	unpacked *os.File // the content of a gzip stream, nil for none
	broken   error    // why a gzip stream ended early; nil if it is complete
}

// openSource opens a database file and identifies it by its first record. open opens it, os.Open if it is nil.
func openSource(ctx context.Context, open Opener, path string) (*source, error) {
	source, err := openRecords(ctx, open, path)
	if err != nil {
		return nil, err
	}
	if err := source.identify(); err != nil {
		source.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return source, nil
}

// openRecords opens a database file and reads its first record.
func openRecords(ctx context.Context, open Opener, path string) (*source, error) {
	if err := interrupt.CheckRegular(path); err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	file, err := open.of(path)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	source := &source{file: file}
	if err := source.open(ctx, file); err != nil {
		source.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return source, nil
}

// again returns the source at its first record.
func (s *source) again(ctx context.Context) (*source, error) {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	s.unpacked.Close()
	*s = source{file: s.file}
	err := s.open(ctx, s.file)
	if err == nil {
		err = s.identify()
	}
	return s, err
}

// newSource begins to read a database file.
func newSource(ctx context.Context, r io.Reader) (*source, error) {
	source := &source{}
	if err := source.open(ctx, r); err != nil {
		source.close()
		return nil, err
	}
	if err := source.identify(); err != nil {
		source.close()
		return nil, err
	}
	return source, nil
}

// open reads the first record.
func (s *source) open(ctx context.Context, r io.Reader) error {
	s.scan = newScanner(ctx, r)
	start, err := s.scan.in.Peek(512)
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading the database: %w", err)
	}
	if bytes.HasPrefix(start, []byte{0x1f, 0x8b}) {
		if s.unpacked, s.broken, err = unpack(s.scan.in, folderOf(r)); err != nil {
			return err
		}
		s.info.Gzip = true
		r = s.unpacked
		s.scan = newScanner(ctx, r)
		start, _ = s.scan.in.Peek(512)
	}
	if len(start) == 0 {
		return fmt.Errorf("%w: collect it again", ErrEmpty)
	}
	switch file := r.(type) {
	case File:
		s.scan.file, s.scan.maxSize = file, file.Size()
	case *os.File:
		if stat, err := file.Stat(); err == nil && stat.Mode().IsRegular() {
			s.scan.file, s.scan.maxSize = file, stat.Size()
		}
	}
	if s.before, _, err = s.scan.readToHeader(0); err != nil {
		return fmt.Errorf("reading the database: %w", err)
	}
	if s.scan.ahead == nil {
		return s.unknownFormatError(start)
	}
	if s.first, err = s.scan.next(); err != nil {
		return fmt.Errorf("reading the database: %w", err)
	}
	if s.before > 0 {
		s.info.damage(true, "%d bytes before the first record", s.before)
	}
	s.check(s.first)
	return nil
}

// close closes the files that the source opened. Close of a nil file does nothing.
func (s *source) close() {
	s.unpacked.Close()
	if s.file != nil {
		s.file.Close()
	}
}

// unknownFormatError returns the error for a file without records, from the file's first bytes.
func (s *source) unknownFormatError(start []byte) error {
	for _, row := range []string{`["uuid","`, `["map",[`, `["set",[`} {
		if bytes.Contains(start, []byte(row)) {
			return errTailed("it starts inside a record, and no other follows")
		}
	}
	inside := ""
	if s.info.Gzip {
		inside = ", inside gzip"
	}
	return fmt.Errorf("%w: it is %s%s", ErrNotDatabase, describeStart(start), inside)
}

// errTailed returns the error for a file without its first record. `sos report`
// keeps only the end of files above its size limit.
func errTailed(reason string) error {
	return fmt.Errorf("%w (%s), and with it the schema: no server can serve it; "+
		"collect again with `sos report --all-logs`, or use `ovsdb-client backup`", ErrTailed, reason)
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
	s.info.Name, s.info.Server, s.info.Cluster = s.head.Name, s.head.ServerID, s.head.ClusterID
	switch {
	case s.head.RemoteAddresses != nil:
		return fmt.Errorf("%w (made by `ovsdb-tool join-cluster`); collect %s from another member of its cluster",
			ErrJoinOnly, s.head.Name)
	case s.head.ServerID == "":
		return errTailed("record 1 is not the first record of a cluster member")
	case len(s.head.PrevData) != 2:
		return fmt.Errorf("%w: no snapshot in record 1; collect %s from another member of its cluster",
			ErrJoinOnly, s.head.Name)
	}
	return s.readSchema(s.head.PrevData[0])
}

// readSchema reads name and version of the first schema.
func (s *source) readSchema(text []byte) error {
	schema, err := parseSchemaHead(text)
	if err != nil {
		return errTailed("record 1 is not a schema")
	}
	s.info.Name, s.info.Version = schema.Name, schema.Version
	return nil
}

// noteSchema reads the version from a cluster entry that changes the schema.
func (s *source) noteSchema(data []json.RawMessage) {
	if len(data) != 2 {
		return
	}
	if schema, err := parseSchemaHead(data[0]); err == nil {
		s.info.Version = schema.Version
	}
}

// next returns the records in order, the first one included, and io.EOF at the end.
func (s *source) next() (*record, error) {
	if record := s.first; record != nil {
		s.first = nil
		return record, nil
	}
	record, err := s.scan.next()
	switch {
	case err == io.EOF:
		if s.broken != nil {
			s.info.damage(true, "the gzip stream is cut off or broken at its end: %v", s.broken)
		}
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("reading record %d: %w", s.scan.number, err)
	}
	s.check(record)
	return record, nil
}

// check counts a record and its damage.
func (s *source) check(record *record) {
	s.info.Records++
	s.info.Program = s.scan.program.version
	where := fmt.Sprintf("record %d at offset %d", record.number, record.offset)
	lost := !record.intact && !json.Valid(record.body)
	switch {
	case record.strayBytes() > 0:
		s.info.damage(true, "%s: followed by %d bytes that belong to no record", where, record.strayBytes())
	case record.intact:
	case record.last && record.size < record.length && lost:
		s.info.damage(true, "%s: cut off after %d of %d bytes", where, record.size, record.length)
	case record.size != record.length:
		s.info.damage(lost, "%s: %d bytes, but its header says %d", where, record.size, record.length)
	default:
		s.info.damage(lost, "%s: its text does not have the SHA-1 sum of its header", where)
	}
}

// describeStart describes a file by its first bytes.
func describeStart(start []byte) string {
	for _, format := range []struct{ magic, name string }{
		{"\x1f\x8b", "gzip data: unpack it once more"},
		{"\xfd7zXZ\x00", "xz data: unpack it with `xz -d` first"},
		{"BZh", "bzip2 data: unpack it with `bunzip2` first"},
		{"\x28\xb5\x2f\xfd", "zstd data: unpack it with `zstd -d` first"},
		{"PK\x03\x04", "a zip archive: unpack it first"},
		{"\x7fELF", "a program"},
		{"OVSDB ", "cut inside the first header line: collect it again"},
	} {
		if bytes.HasPrefix(start, []byte(format.magic)) {
			return format.name
		}
	}
	if len(start) > 262 && bytes.Equal(start[257:262], []byte("ustar")) {
		return "a tar archive: unpack it first"
	}
	start = bytes.TrimSpace(start[:min(len(start), 48)])
	if bytes.ContainsFunc(start, func(char rune) bool { return char < ' ' && char != '\n' && char != '\t' || char == 0xfffd }) {
		return fmt.Sprintf("binary data that starts with % x", start[:min(len(start), 8)])
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	return "text that starts with " + strconv.Quote(string(line))
}
