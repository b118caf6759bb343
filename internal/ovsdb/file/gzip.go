package file

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ovs-offline/internal/archive"
)

// unpacked is the content of a gzip stream in a file without a name: records can
// be read there again, so none has to fit into memory.
type unpacked struct {
	file   *os.File
	broken error // why the stream ended early; nil where it is complete
}

// A database does not compress by more than maxRatio, because much of its text
// is UUIDs. The first freeSize bytes may have any ratio.
const (
	freeSize = 64 << 20
	maxRatio = 100
)

// unpack reads a gzip stream to its end. A stream that is cut off or broken ends
// early without an error: its content is a database that is cut off.
func unpack(r io.Reader, folder string) (*unpacked, error) {
	packed := &archive.Counter{Reader: r}
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: gzip data that cannot be unpacked: %w", ErrNotDatabase, err)
	}
	file, err := unnamedFile(folder)
	if err != nil {
		return nil, fmt.Errorf("unpacking a database: %w", err)
	}
	for size := int64(0); err == nil; {
		var n int64
		n, err = io.CopyN(file, zip, 1<<20)
		if size += n; size > freeSize && size/maxRatio > packed.N {
			err = fmt.Errorf("%w: it unpacks to over %d times its size", ErrNotDatabase, maxRatio)
		}
	}
	u := &unpacked{file: file}
	if isBroken(err) {
		u.broken, err = err, io.EOF
	}
	if errors.Is(err, io.EOF) {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return u, nil
}

func isBroken(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

// unnamedFile makes a file that vanishes when it is closed, in a folder or, where
// that cannot be written to, in the folder for temporary files.
func unnamedFile(folder string) (*os.File, error) {
	file, err := os.CreateTemp(folder, ".unpacked-*")
	if err != nil {
		if file, err = os.CreateTemp("", "ovs-offline-unpacked-*"); err != nil {
			return nil, err
		}
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
