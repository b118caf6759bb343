// Package archive reads what a person has (a file, a folder, an archive, an
// archive of archives) once from its beginning to its end, and keeps what its
// caller wants in a spool folder. It knows nothing of what the files mean.
//
// What it reads is hostile: nothing is written but spooled files under names of
// the package's own, and links are kept as text.
package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/logging"
)

// ErrNotArchive is wrapped where a file is neither an archive nor wanted.
var ErrNotArchive = errors.New("not an archive")

// NotArchiveError says why a file is neither an archive nor wanted. It wraps ErrNotArchive.
type NotArchiveError struct{ Reason string }

func (e *NotArchiveError) Error() string { return "is " + ErrNotArchive.Error() + ": " + e.Reason }

// Unwrap makes it an ErrNotArchive.
func (e *NotArchiveError) Unwrap() error { return ErrNotArchive }

// ErrEncrypted is wrapped where a file is encrypted.
var ErrEncrypted = errors.New("encrypted")

// Progress is told how much of the source was read, in bytes, of how many;
// total is 0 where it is not known. It is called by one goroutine at a time,
// which need not be the caller's.
type Progress func(read, total int64)

// Wanted tells whether a file is to be kept, by its path in the source and its
// first bytes, decompressed; start is nil where the file can't be read.
type Wanted func(name string, start []byte) bool

// Tree is what was kept of a source. Paths are relative to it; an archive
// inside of it is a folder of the archive's name.
type Tree struct {
	Source  string // the path that was given
	Archive bool   // the source is an archive
	Folder  bool   // the source is a folder
	Files   map[string]File
	Links   map[string]string // a link's path to its target, as written
	// Lost are the parts that could not be read, each a sentence.
	Lost  []Loss
	Bytes int64 // read of the source, each byte once
}

// File is a file that was kept.
type File struct {
	Spooled string // where its content is now
	Size    int64
}

// Loss is a part of a source that could not be read.
type Loss struct {
	Path   string
	Reason string
}

func (l Loss) String() string { return l.Path + ": " + l.Reason }

// startSize is how much of a file Wanted is shown.
const startSize = 4096

// maxDepth bounds archives in archives in archives: sos collect has two levels,
// a must-gather of such three.
const maxDepth = 6

// reading is one pass over a source.
type reading struct {
	ctx      context.Context
	tree     *Tree
	spool    string
	want     Wanted
	progress Progress
	limits   *Meter
	size     int64 // of the file being taken, as its archive says; 0 where nothing does
	total    int64 // size of the source, 0 where it is not known
	read     atomic.Int64
	scrap    []byte          // what is read and not kept goes here
	buffers  []*bufio.Reader // of the files that are being taken, one in another
}

// Read reads the source and keeps what is wanted in spool, a folder of the
// caller's. An archive that is cut off is an error, since nobody can tell what
// it lacks; one inside of another or in a folder is among Tree.Lost. The error
// wraps ErrNotArchive, ErrEncrypted or ErrLimit where that is the reason.
func Read(ctx context.Context, source, spool string, want Wanted, limits Limits, progress Progress) (*Tree, error) {
	defer logging.Timed(ctx, "read source", "path", source)()
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	t := &Tree{Source: source, Files: map[string]File{}, Links: map[string]string{}}
	r := &reading{ctx: ctx, tree: t, spool: spool, want: want, progress: progress}
	r.limits = New(limits, r.read.Load)
	if info.IsDir() {
		t.Folder = true
		err = r.folder(source)
		t.Bytes = r.read.Load()
		return t, err
	}
	r.total = info.Size()
	err = r.single(source)
	t.Bytes = r.read.Load()
	if err != nil {
		return nil, err
	}
	return t, nil
}

// single reads a source that is one file.
func (r *reading) single(source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, err := beside(source)
	if err != nil {
		return err
	}
	in := sum.watch(&counter{Reader: f, reading: r})
	what, err := r.take(filepath.Base(source), "", in, 0)
	r.tree.Archive = what == anArchive
	if err == nil {
		err = sum.check(in)
	}
	if err == nil && what == nothing {
		err = &NotArchiveError{"its first bytes are of no tar, xz, gzip, bzip2 or zstd file"}
	}
	var spool errSpool
	switch {
	case err == nil || r.ctx.Err() != nil || errors.As(err, &spool):
		return err
	case errors.Is(err, ErrLimit):
		return fmt.Errorf("%s: %w", source, err)
	}
	return fmt.Errorf("%s %w", source, err)
}

// counter tells the progress of reading the source.
type counter struct {
	io.Reader
	reading *reading
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	r := c.reading
	read := r.read.Add(int64(n))
	if r.progress != nil {
		r.progress(read, r.total)
	}
	return n, err
}

// content is what take found.
type content int

const (
	nothing content = iota
	aFile
	anArchive
)

// take reads one file of the source to its end: into the tree if it is wanted,
// as a folder of name below if it is an archive.
func (r *reading) take(name, below string, in io.Reader, depth int) (content, error) {
	buffered := r.buffer(in, depth)
	start, err := buffered.Peek(startSize) // valid until more is read
	if err != nil && !errors.Is(err, io.EOF) {
		return nothing, cannotRead(err)
	}
	how := packing(start)
	switch {
	case isEncrypted(name, start):
		return nothing, fmt.Errorf("is %w: decrypt it first (gpg -o %s -d %s)", ErrEncrypted, withoutSuffix(path.Base(name)), path.Base(name))
	case len(start) == 0 && depth == 0:
		return nothing, &NotArchiveError{"it is empty"}
	case how == packedNot && isTar(start):
		return anArchive, r.archive(buffered, below, depth)
	case how != packedNot:
		return r.takePacked(how, name, below, buffered, depth)
	case r.want(name, start):
		return aFile, r.keep(name, buffered)
	}
	return nothing, nil
}

// buffer is one for a file so deep in the source. An archive can hold a million.
func (r *reading) buffer(in io.Reader, depth int) *bufio.Reader {
	for len(r.buffers) <= depth {
		r.buffers = append(r.buffers, bufio.NewReaderSize(nil, startSize))
	}
	r.buffers[depth].Reset(in)
	return r.buffers[depth]
}

// keep spools one file under a name of our own; a second one of the same name
// replaces the first, as extracting would.
func (r *reading) keep(name string, in io.Reader) error {
	in, err := r.limits.Keep(name, r.size, in)
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(r.spool, "spooled-*")
	if err != nil {
		return errSpool{err}
	}
	n, err := io.Copy(spoolWriter{out}, interrupt.Reader(r.ctx, in))
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = errSpool{closeErr}
	}
	if err != nil {
		os.Remove(out.Name())
		return err
	}
	r.tree.drop(name)
	r.tree.Files[name] = File{Spooled: out.Name(), Size: n}
	return nil
}

// spoolWriter tells a full disk from a source that can't be read. It is not an
// os.File, whose ReadFrom io.Copy would call in place of Write.
type spoolWriter struct{ to io.Writer }

func (w spoolWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		err = errSpool{err}
	}
	return n, err
}

type errSpool struct{ error }

func (e errSpool) Unwrap() error { return e.error }

// discard reads on to the end of in: in large pieces, which io.Discard doesn't.
func (r *reading) discard(in io.Reader) error {
	if r.scrap == nil {
		r.scrap = make([]byte, 128<<10)
	}
	for {
		if _, err := in.Read(r.scrap); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// keepLink notes a link; it replaces what had its name before.
func (r *reading) keepLink(name, target string) error {
	if err := r.limits.Link(); err != nil {
		return err
	}
	r.tree.drop(name)
	r.tree.Links[name] = target
	return nil
}

func (t *Tree) drop(name string) {
	if old, there := t.Files[name]; there {
		os.Remove(old.Spooled)
		delete(t.Files, name)
	}
	delete(t.Links, name)
}

// Resolve follows links from name to a file that was kept, without leaving the
// folder root of the tree, where absolute targets begin. A target may have come
// before its link or after it.
func (t *Tree) Resolve(root, name string) (real string, f File, ok bool) {
	for range 40 { // as many as Linux follows
		if f, ok := t.Files[join(root, name)]; ok {
			return name, f, true
		}
		target, ok := t.Links[join(root, name)]
		if !ok {
			return name, File{}, false
		}
		if path.IsAbs(target) {
			name = path.Clean(target)[1:]
		} else {
			name = path.Join(path.Dir(name), target)
		}
		if !filepath.IsLocal(name) {
			return name, File{}, false
		}
	}
	return name, File{}, false
}

// Names lists what was kept, links included, sorted.
func (t *Tree) Names() []string {
	names := make([]string, 0, len(t.Files)+len(t.Links))
	for name := range t.Files {
		names = append(names, name)
	}
	for name := range t.Links {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func join(root, name string) string {
	if root == "" {
		return name
	}
	return root + "/" + name
}

// No file of a node has a longer name (Linux, PATH_MAX), or stands deeper: an
// archive may say anything.
const (
	longest = 4096 // bytes
	deepest = 255  // folders
)

// local turns a name in a source into a path below it; ok is false for one
// that points out of it, and for one that no file can have.
func local(name string) (clean string, ok bool) {
	if len(name) > longest || strings.Count(name, "/") > deepest {
		return "", false
	}
	clean = path.Clean(strings.TrimPrefix(name, "./"))
	return clean, filepath.IsLocal(clean)
}
