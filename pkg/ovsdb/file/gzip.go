package file

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A database does not compress by more than maxRatio, because much of its text
// is UUIDs. The first freeSize bytes may have any ratio.
const (
	freeSize = 64 << 20
	maxRatio = 100
)

// unpack reads a gzip stream to its end into a file without a name: records can be
// read there again, so none has to fit into memory. broken is the reason if the stream
// ended early: its content is a database that is cut off then.
func unpack(r io.Reader, folder string) (file *os.File, broken, err error) {
	packed := &counter{Reader: r}
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: gzip data that cannot be unpacked: %w", ErrNotDatabase, err)
	}
	if file, err = unnamedFile(folder); err != nil {
		return nil, nil, fmt.Errorf("unpacking a database: %w", err)
	}
	for size := int64(0); err == nil; {
		var n int64
		n, err = io.CopyN(file, zip, 1<<20)
		if size += n; size > freeSize && size/maxRatio > packed.n {
			err = fmt.Errorf("%w: it unpacks to over %d times its size", ErrNotDatabase, maxRatio)
		}
	}
	if isBroken(err) {
		broken, err = err, io.EOF
	}
	if errors.Is(err, io.EOF) {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, broken, nil
}

// counter counts the bytes that are read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(data []byte) (int, error) {
	n, err := c.Reader.Read(data)
	c.n += int64(n)
	return n, err
}

func isBroken(err error) bool {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	return corrupt || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader)
}

// unnamedFile makes a file that vanishes when it is closed, in a folder or, if that is
// not writable, in the folder for temporary files.
func unnamedFile(folder string) (*os.File, error) {
	file, err := makeUnnamed(folder)
	if err != nil {
		file, err = makeUnnamed(os.TempDir())
	}
	return file, err
}

// removeNamed makes a file in a folder, and removes its name. A program that is killed between
// the two leaves the file.
func removeNamed(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, ".unpacked-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// folderOf returns the folder of a file, "" for another reader.
func folderOf(r io.Reader) string {
	if file, ok := r.(interface{ Name() string }); ok {
		return filepath.Dir(file.Name())
	}
	return ""
}
