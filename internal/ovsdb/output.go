package ovsdb

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// output is a standalone file being written. It can be cut back to an earlier
// point, and started over from a new schema while what came before is kept in
// case the start is itself taken back.
type output struct {
	file   *os.File
	buf    *bufio.Writer
	offset int64
	starts []int64 // where the schema records stand; the last one counts
}

// newOutput opens a file under a temporary name beside dst, for its owner only.
func newOutput(dst string) (*output, error) {
	file, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".*")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", dst, err)
	}
	return &output{file: file, buf: bufio.NewWriterSize(file, 1<<16)}, nil
}

// start writes a schema record: what was written before no longer counts.
func (o *output) start(schema []byte) error {
	o.starts = append(o.starts, o.offset)
	return o.add(schema)
}

// add writes one record. A body gets the newline that ovsdb(5) ends it with.
func (o *output) add(body []byte) error {
	body, newline := bytes.TrimSuffix(body, []byte("\n")), []byte("\n")
	return o.write(formatHeader("JSON", body, newline), body, newline)
}

// Write writes a piece of a record.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.buf.Write(p)
	o.offset += int64(n)
	if err != nil {
		err = fmt.Errorf("writing %s: %w", o.file.Name(), err)
	}
	return n, err
}

// write writes a record as it is.
func (o *output) write(parts ...[]byte) error {
	for _, part := range parts {
		if _, err := o.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// cut drops everything from offset on.
func (o *output) cut(offset int64) error {
	if err := o.buf.Flush(); err != nil {
		return fmt.Errorf("writing %s: %w", o.file.Name(), err)
	}
	if err := o.file.Truncate(offset); err != nil {
		return err
	}
	for len(o.starts) > 0 && o.starts[len(o.starts)-1] >= offset {
		o.starts = o.starts[:len(o.starts)-1]
	}
	o.offset = offset
	_, err := o.file.Seek(offset, io.SeekStart)
	return err
}

// insert writes a snapshot as a record, from where it stands in its file.
func (o *output) insert(from io.ReaderAt, r *record) error {
	at := r.snapshot
	header := fmt.Appendf(nil, "OVSDB JSON %d %x\n", at.length+1, r.snapshotSum)
	if err := o.write(header); err != nil {
		return err
	}
	n, err := io.Copy(o, io.NewSectionReader(from, at.offset, at.length))
	if err == nil && n < at.length {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return o.write([]byte("\n"))
}

func (o *output) mark() int64 { return o.offset }

// settle moves what counts to the front of the file, and tells by how far.
func (o *output) settle() (int64, error) {
	if err := o.buf.Flush(); err != nil {
		return 0, fmt.Errorf("writing %s: %w", o.file.Name(), err)
	}
	from := o.starts[len(o.starts)-1]
	if from == 0 {
		return 0, nil
	}
	// Both ends move forward in one file, the writing one always behind.
	size := o.offset - from
	if _, err := io.Copy(io.NewOffsetWriter(o.file, 0), io.NewSectionReader(o.file, from, size)); err != nil {
		return 0, err
	}
	o.starts = []int64{0}
	return from, o.cut(size)
}

// install gives the file its name. It does not wait until it is on disk: a
// working copy is of no use after a power cut, when no daemon runs.
func (o *output) install(dst string) error {
	err := o.buf.Flush()
	if err == nil {
		err = os.Rename(o.file.Name(), dst)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", dst, err)
	}
	return nil
}

// discard closes the file, and removes it unless it was installed.
func (o *output) discard(installed bool) {
	o.file.Close()
	if !installed {
		os.Remove(o.file.Name())
	}
}
