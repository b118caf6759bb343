// Package archive reads a source (a file, a folder, an archive, an archive of
// archives) once from its beginning to its end, and keeps the files that its
// caller wants in a spool folder. It does not know what the files mean.
//
// Sources are hostile: only spooled files are written, under names that this
// package makes, and links are kept as text.
package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/logging"
)

// NotArchiveError is the error for a file that is neither an archive nor wanted.
type NotArchiveError struct{ Reason string }

func (e *NotArchiveError) Error() string { return "is not an archive: " + e.Reason }

// ErrEncrypted is wrapped when a file is encrypted.
var ErrEncrypted = errors.New("encrypted")

// Progress is called with the number of bytes that were read of the source, and with
// the total, 0 if it is not known. Calls do not overlap, but may come from another
// goroutine than the caller's.
type Progress func(read, total int64)

// Wanted returns whether to keep a file, by its path in the source and its first
// bytes, decompressed; start is nil if the file cannot be read.
type Wanted func(name string, start []byte) Keep

// Keep is what Wanted returns.
type Keep int

// The answers of Wanted.
const (
	Leave Keep = iota
	Take       // keep the file, unpacked
	// TakeAside keeps the file as it is, also if it is packed. A source does without files that
	// exceed their own limits: they are listed in Tree.Lost.
	TakeAside
)

// startSize is how many bytes of a file Wanted gets.
const startSize = 4096

// maxDepth bounds the levels of archives in archives: sos collect makes two levels; a
// must-gather that contains such an archive has three.
const maxDepth = 6

// reading is one pass over a source.
type reading struct {
	ctx      context.Context
	tree     *Tree
	spool    string
	want     Wanted
	progress Progress
	limits   *Meter
	size     int64 // of the current file in its archive's header, or its folder; 0 if it is not known
	total    int64 // size of the source, 0 if it is not known
	read     atomic.Int64
	scrap    [128 << 10]byte // a buffer for data that is read and not kept
	buffers  []*bufio.Reader // one for each level of archives in archives
}

// Read reads the source and keeps the wanted files in the folder spool. A
// truncated archive is an error, since its missing part is unknown; a truncated
// archive inside another or in a folder is listed in Tree.Lost. The error wraps a
// NotArchiveError, ErrEncrypted or ErrLimit where that is the reason.
func Read(ctx context.Context, source, spool string, want Wanted, limits Limits, progress Progress) (*Tree, error) {
	defer logging.Timed(ctx, "read source", "path", source)()
	info, err := Stat(source)
	if err != nil {
		return nil, err
	}
	tree := &Tree{Source: source, Folder: info.IsDir(), Files: map[string]File{}, Links: map[string]string{}}
	reading := &reading{ctx: ctx, tree: tree, spool: spool, want: want, progress: progress}
	reading.limits = New(limits, reading.read.Load)
	if tree.Folder {
		err = reading.folder(source)
	} else {
		reading.total, reading.size = info.Size(), info.Size()
		err = reading.single(source)
	}
	tree.Bytes = reading.read.Load()
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// Stat describes the file or folder at path. The error for a path that does not exist
// wraps fs.ErrNotExist.
func Stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(path)
	}
	return info, err
}

// missing is the error for a path that does not exist.
type missing string

func (m missing) Error() string { return string(m) + ": no such file" }
func (m missing) Unwrap() error { return fs.ErrNotExist }

// single reads a source that is one file.
func (r *reading) single(source string) error {
	stream, err := interrupt.Open(r.ctx, source)
	if err != nil {
		return err
	}
	defer stream.Close()
	what, err := r.take(filepath.Base(source), "", checked{stream, r.count}, 0)
	r.tree.Archive = what == anArchive
	if err == nil && what == nothing {
		err = &NotArchiveError{"it does not begin like a tar, zip, xz, gzip, bzip2 or zstd file"}
	}
	switch {
	case errors.Is(err, ErrLimit):
		return fmt.Errorf("%s: %w", source, err)
	case err == nil || r.ctx.Err() != nil || isFinal(err):
		return err
	}
	return fmt.Errorf("%s %w", source, err)
}

// count counts the bytes that are read of the source and reports the progress.
func (r *reading) count(n int) error {
	read := r.read.Add(int64(n))
	if r.progress != nil {
		r.progress(read, r.total)
	}
	return nil
}

// content is the result of take.
type content int

const (
	nothing content = iota
	aFile
	anArchive
)

// take reads one file of the source to its end. A wanted file is kept; the
// entries of an archive are taken below the folder below.
func (r *reading) take(name, below string, in io.Reader, depth int) (content, error) {
	buffered := r.buffer(in, depth)
	start, err := buffered.Peek(startSize) // valid until more is read
	if err != nil && !errors.Is(err, io.EOF) {
		return nothing, cannotRead(err)
	}
	how, base := packing(start), path.Base(name)
	switch {
	case isEncrypted(name, start):
		return nothing, fmt.Errorf("is %w: decrypt it first (gpg -o %s -d %s)", ErrEncrypted, strings.TrimSuffix(base, path.Ext(base)), base)
	case len(start) == 0 && depth == 0:
		return nothing, &NotArchiveError{"it is empty"}
	case how == nil && isTar(start):
		return anArchive, r.archive(buffered, below, depth)
	case how != nil:
		return r.takePacked(how, name, below, buffered, depth)
	case isZip(name, start, depth):
		return anArchive, r.zip(name, buffered, below, depth)
	}
	return r.takeFile(r.want(name, start), name, buffered)
}

// takeFile keeps a file as Wanted says.
func (r *reading) takeFile(how Keep, name string, in io.Reader) (content, error) {
	switch how {
	case Take:
		return aFile, r.keep(name, in)
	case TakeAside:
		return aFile, r.keepAside(name, in)
	}
	return nothing, nil
}

// buffer returns the buffer of a level of archives in archives. It is reused: an
// archive can hold a million files.
func (r *reading) buffer(in io.Reader, depth int) *bufio.Reader {
	for len(r.buffers) <= depth {
		r.buffers = append(r.buffers, bufio.NewReaderSize(nil, startSize))
	}
	r.buffers[depth].Reset(in)
	return r.buffers[depth]
}

// inner takes a file of an archive or a folder. It records an error that concerns only
// that file, and returns an error of the archive.
func (r *reading) inner(name string, in io.Reader, depth int) error {
	if depth > maxDepth {
		r.lose(name, errors.New("is nested in too many archives"))
		return nil
	}
	_, err := r.take(name, name, in, depth)
	if err == nil || r.ctx.Err() != nil || isFinal(err) {
		return err
	}
	// Reading the rest shows whether only this file is damaged, or the archive.
	if _, outer := io.Copy(io.Discard, in); outer != nil {
		return outer
	}
	r.lose(name, err)
	return nil
}

func (r *reading) lose(name string, err error) {
	r.tree.Lost = append(r.tree.Lost, Loss{Path: name, Reason: err.Error()})
}

// keep spools one file. It replaces an earlier one of that name, as extracting would.
func (r *reading) keep(name string, in io.Reader) error {
	file, err := r.spoolFile(name, in)
	if err != nil {
		return err
	}
	r.tree.drop(name)
	r.tree.Files[name] = file
	return nil
}

// keepAside works like keep for a file that the source can do without.
func (r *reading) keepAside(name string, in io.Reader) error {
	in, first, err := r.limits.KeepAside(r.size, in)
	if in == nil {
		if first {
			r.lose(name, err)
		}
		return nil
	}
	file, err := Spool(r.ctx, r.spool, in)
	if err != nil {
		return err
	}
	r.tree.drop(name)
	r.tree.Files[name] = file
	return nil
}

// spoolFile spools one file within the limits.
func (r *reading) spoolFile(name string, in io.Reader) (File, error) {
	in, err := r.limits.Keep(name, r.size, in)
	if err != nil {
		return File{}, err
	}
	return Spool(r.ctx, r.spool, in)
}

// keepLink records a link. It replaces an earlier file or link of that name.
func (r *reading) keepLink(name, target string) error {
	if err := r.limits.Link(); err != nil {
		return err
	}
	r.tree.drop(name)
	r.tree.Links[name] = target
	return nil
}

// discard reads in to its end, in larger pieces than io.Discard does.
func (r *reading) discard(in io.Reader) error {
	for {
		if _, err := in.Read(r.scrap[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
