package file

import (
	"io"
	"os"
)

// File is an open database file.
type File interface {
	io.ReadSeekCloser
	io.ReaderAt
	Name() string // the path by which it was opened
	Size() int64  // in bytes
}

// Opener opens a database file, e.g. so that several readers share a descriptor. A nil Opener is os.Open.
type Opener func(path string) (File, error)

// of opens a database file.
func (open Opener) of(path string) (File, error) {
	if open != nil {
		return open(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return sized{file, info.Size()}, nil
}

// sized is a file with its size when it was opened.
type sized struct {
	*os.File
	size int64
}

// Size returns the size in bytes.
func (s sized) Size() int64 { return s.size }
