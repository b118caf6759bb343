package ovsdb

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
)

// unpacked is what a gzip stream holds, in a file that has no name any more: a
// record can be read again there, and none has to fit into memory.
type unpacked struct {
	file *os.File
	cut  error // how the stream broke off; nil where it is whole
	told bool
}

// No database packs to less: its text is UUIDs for a good part.
const (
	freely    = 64 << 20 // bytes that may come out of however few
	mostRatio = 100
)

// unpack reads a gzip stream to its end. One that is cut off or broken ends
// early rather than failing: what came before is a database with a torn tail.
func unpack(ctx context.Context, r io.Reader, folder string) (*unpacked, error) {
	packed := &archive.Counter{Reader: interrupt.Reader(ctx, r)}
	zip, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: gzip data that cannot be unpacked: %w", ErrNotDatabase, err)
	}
	file, err := nameless(folder)
	if err != nil {
		return nil, fmt.Errorf("unpacking a database: %w", err)
	}
	u := &unpacked{file: file}
	for size := int64(0); err == nil; {
		var n int64
		n, err = io.CopyN(file, zip, 1<<20)
		if size += n; size > freely && size/mostRatio > packed.N {
			err = fmt.Errorf("%w: it unpacks to over %d times its size", ErrNotDatabase, mostRatio)
		}
	}
	if isBroken(err) {
		u.cut = err
	} else if !errors.Is(err, io.EOF) {
		file.Close()
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		file.Close()
		return nil, err
	}
	return u, nil
}

func isBroken(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

// nameless makes a file that vanishes with its use: in a folder, or where that
// can't be written in, in that for temporary files.
func nameless(folder string) (*os.File, error) {
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

// folderOf is where a file stands; "" for what is none.
func folderOf(r io.Reader) string {
	if file, ok := r.(interface{ Name() string }); ok {
		return filepath.Dir(file.Name())
	}
	return ""
}
