package workdir

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// maxShared is how many files of a case stay open, of the 1,024 descriptors that a process has by default on Linux.
const maxShared = 800

// Files are the collected files that all readers of a case share: each is opened once, and stays open until Close. A file that was changed
// or replaced is opened again. Once maxShared files are open, each reader opens the others itself. Its methods may be called concurrently.
type Files struct {
	mu        sync.Mutex
	open      map[string]*openFile // that are read now
	changed   []*openFile          // that were changed since they were opened, for those who still read them
	manifests map[string]knownManifest
}

// knownManifest is a manifest, and the file that it was read from.
type knownManifest struct {
	*Manifest
	file os.FileInfo
}

// openFile is a file and what it was when it was opened.
type openFile struct {
	*os.File
	info os.FileInfo
	mu   sync.Mutex // for made
	made io.Closer  // by Opened.Once; nil before
}

// NewFiles returns Files in which nothing is open.
func NewFiles() *Files {
	return &Files{open: map[string]*openFile{}, manifests: map[string]knownManifest{}}
}

// Close closes all files, and what was made of them.
func (f *Files) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, shared := range slices.Concat(slices.Collect(maps.Values(f.open)), f.changed) {
		if shared.made != nil {
			shared.made.Close()
		}
		shared.Close()
	}
	clear(f.open)
	f.changed = nil
	clear(f.manifests)
}

// find opens a file unless it is open. It returns nil if too many others are.
func (f *Files) find(path string) (*openFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if shared := f.open[path]; shared != nil {
		if info, err := os.Stat(path); err == nil && isSame(info, shared.info) {
			return shared, nil
		}
		f.changed = append(f.changed, shared)
		delete(f.open, path)
	}
	if len(f.open)+len(f.changed) >= maxShared {
		return nil, nil
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	f.open[path] = file
	return file, nil
}

func isSame(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// manifest returns the manifest at a path, which read reads unless it is known.
func (f *Files) manifest(path string, read func() (*Manifest, error)) (*Manifest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return read()
	}
	if known := f.manifests[path]; known.Manifest != nil && isSame(info, known.file) {
		return known.Manifest, nil
	}
	manifest, err := read()
	if err == nil {
		f.manifests[path] = knownManifest{manifest, info}
	}
	return manifest, err
}

// Opened is a collected file that is read from its beginning. Readers of a file that a case shares have their own places in it.
type Opened struct {
	*io.SectionReader
	file   *openFile
	shared bool
}

func open(path string) (*openFile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &openFile{File: file, info: info}, nil
}

// Shares reports whether the readers of a case share the files of the workdir. A nil Data shares nothing.
func (d *Data) Shares() bool { return d != nil && d.files != nil }

// Open opens a file of the workdir, which the readers of a case share.
func (d *Data) Open(path string) (*Opened, error) {
	if d.Shares() {
		file, err := d.files.find(path)
		if err != nil {
			return nil, err
		}
		if file != nil {
			return newOpened(file, true), nil
		}
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return newOpened(file, false), nil
}

func newOpened(file *openFile, shared bool) *Opened {
	return &Opened{SectionReader: io.NewSectionReader(file, 0, file.info.Size()), file: file, shared: shared}
}

// Name returns the path by which the file was opened.
func (f *Opened) Name() string { return f.file.Name() }

// Close closes a file that no case shares.
func (f *Opened) Close() error {
	if f.shared {
		return nil
	}
	return f.file.Close()
}

// Once returns what make made of a file that a case shares, which the first call does, and which is closed with the case. ok is false for
// a file that no case shares.
func (f *Opened) Once(make func() (io.Closer, error)) (made io.Closer, ok bool, err error) {
	if !f.shared {
		return nil, false, nil
	}
	f.file.mu.Lock()
	defer f.file.mu.Unlock()
	if f.file.made == nil {
		if made, err = make(); err != nil {
			return nil, true, err
		}
		f.file.made = made
	}
	return f.file.made, true, nil
}

// Collected opens a collected file. ok is false, without an error, if it was not collected, and with one if it cannot be opened.
func (d *Data) Collected(path string) (file *Opened, ok bool, err error) {
	file, err = d.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return file, err == nil, err
}

// CollectedText returns the first MaxText bytes of a collected file, "" if it was not collected, and the size of the file.
func (d *Data) CollectedText(path string) (text string, size int64, err error) {
	file, ok, err := d.Collected(path)
	if !ok {
		return "", 0, err
	}
	defer file.Close()
	var builder strings.Builder
	builder.Grow(int(min(file.Size(), MaxText)))
	_, err = io.Copy(&builder, io.LimitReader(file, MaxText))
	return builder.String(), file.Size(), err
}
