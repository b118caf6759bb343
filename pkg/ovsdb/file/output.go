package file

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// output is a standalone file being written. It can be cut back to an earlier offset,
// and restarted with a new schema: the earlier text is kept, because the new schema may
// itself be removed again.
type output struct {
	file    *os.File
	buf     *bufio.Writer
	offset  int64
	schemas []int64 // offsets of the schema records; the file begins at the last one
}

// newOutput creates a file with a temporary name beside dst, for its owner only.
func newOutput(dst string) (*output, error) {
	file, err := os.CreateTemp(filepath.Dir(dst), "."+filepath.Base(dst)+".*")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", dst, err)
	}
	return outputTo(file), nil
}

func outputTo(file *os.File) *output {
	return &output{file: file, buf: bufio.NewWriterSize(file, 1<<16)}
}

// addSchema writes a schema record, which drops all earlier records.
func (o *output) addSchema(schema []byte) error {
	o.schemas = append(o.schemas, o.offset)
	return o.add(schema)
}

// add writes one record. It ends the text with the newline that ovsdb(5) requires.
func (o *output) add(body []byte) error {
	body, newline := bytes.TrimSuffix(body, []byte("\n")), []byte("\n")
	return o.write(formatHeader("JSON", body, newline), body, newline)
}

// addFrom writes a record whose text is part of another file.
func (o *output) addFrom(file io.ReaderAt, at span) error {
	text := func() io.Reader {
		return io.MultiReader(io.NewSectionReader(file, at.offset, at.length), bytes.NewReader([]byte("\n")))
	}
	sum := sha1.New()
	n, err := io.Copy(sum, text())
	if err == nil && n != at.length+1 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(o, "OVSDB JSON %d %x\n", n, sum.Sum(nil)); err != nil {
		return err
	}
	_, err = io.Copy(o, text())
	return err
}

// Write writes a piece of a record.
func (o *output) Write(data []byte) (int, error) {
	n, err := o.buf.Write(data)
	o.offset += int64(n)
	return n, err
}

func (o *output) write(parts ...[]byte) error {
	for _, part := range parts {
		if _, err := o.Write(part); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) position() int64 { return o.offset }

// cut drops everything from offset on.
func (o *output) cut(offset int64) error {
	if err := o.buf.Flush(); err != nil {
		return err
	}
	if err := o.file.Truncate(offset); err != nil {
		return err
	}
	for len(o.schemas) > 0 && o.schemas[len(o.schemas)-1] >= offset {
		o.schemas = o.schemas[:len(o.schemas)-1]
	}
	o.offset = offset
	_, err := o.file.Seek(offset, io.SeekStart)
	return err
}

// dropEarlier moves the last schema and the records after it to the start of the file,
// and returns the distance in bytes.
func (o *output) dropEarlier() (int64, error) {
	if err := o.buf.Flush(); err != nil {
		return 0, err
	}
	from := o.schemas[len(o.schemas)-1]
	if from == 0 {
		return 0, nil
	}
	// Reader and writer both move forward in one file, and the writer is always behind.
	size := o.offset - from
	if _, err := io.Copy(io.NewOffsetWriter(o.file, 0), io.NewSectionReader(o.file, from, size)); err != nil {
		return 0, err
	}
	o.schemas = []int64{0}
	return from, o.cut(size)
}

// discard closes the file, and removes it unless it was renamed.
func (o *output) discard() {
	o.file.Close()
	os.Remove(o.file.Name())
}
