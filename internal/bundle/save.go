package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/workdir"
)

// Save writes what a workdir holds to w; the same data gives the same bytes. The
// remarks name what is not in the bundle or not as it was collected.
func Save(ctx context.Context, wd *workdir.Dir, program string, w io.Writer) (remarks []string, err error) {
	m, err := wd.Manifest()
	if err != nil {
		return nil, err
	}
	files, other, err := wd.DataFiles()
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in %s: collect something first", ErrNothing, wd.Path())
	}
	for _, name := range other {
		remarks = append(remarks, name+" is not a plain file: it is not in the bundle")
	}
	slices.Sort(files)
	head := Head{Format: Format, Workdir: workdir.FormatVersion, Program: program}
	more, err := describe(ctx, wd, m, files, &head)
	if err != nil {
		return nil, err
	}
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return nil, err
	}
	out := &writer{ctx: ctx, tar: tar.NewWriter(zip), time: newest(m)}
	out.json(headName, head)
	out.json(manifestName, m)
	for _, name := range files {
		out.file(name, wd.Join(name))
	}
	if out.err == nil {
		out.err = out.tar.Close()
	}
	if err := zip.Close(); out.err == nil {
		out.err = err
	}
	return append(remarks, more...), out.err
}

// describe makes the manifest say what the files are now, and the head what the
// manifest does not know.
func describe(ctx context.Context, wd *workdir.Dir, m *workdir.Manifest, files []string, head *Head) (remarks []string, err error) {
	known := map[string]*workdir.File{}
	for i := range m.Collections {
		for j := range m.Collections[i].Files {
			known[m.Collections[i].Files[j].Path] = &m.Collections[i].Files[j]
		}
	}
	for _, name := range files {
		size, sum, err := digest(ctx, wd.Join(name))
		if err != nil {
			return nil, err
		}
		f := known[name]
		delete(known, name)
		switch {
		case f == nil:
			head.ByHand = append(head.ByHand, workdir.File{Path: name, Origin: "put there by hand", Size: size, SHA256: sum})
		case f.SHA256 != sum:
			const changed = "changed by hand after it was collected"
			f.Size, f.SHA256 = size, sum
			if !slices.Contains(f.Remarks, changed) {
				f.Remarks = append(f.Remarks, changed)
			}
			remarks = append(remarks, name+": "+changed)
		}
	}
	for i := range m.Collections {
		c := &m.Collections[i]
		c.Files = slices.DeleteFunc(c.Files, func(f workdir.File) bool {
			if _, gone := known[f.Path]; gone {
				remarks = append(remarks, f.Path+" was collected, and is not there any more")
				return true
			}
			return false
		})
	}
	return remarks, nil
}

func digest(ctx context.Context, path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, interrupt.Reader(ctx, f))
	return n, hex.EncodeToString(sum.Sum(nil)), err
}

func newest(m *workdir.Manifest) time.Time {
	t := time.Unix(0, 0)
	for _, c := range m.Collections {
		if c.Collected.After(t) {
			t = c.Collected
		}
	}
	return t.UTC().Truncate(time.Second)
}

// writer writes a tar file and keeps the first error.
type writer struct {
	ctx  context.Context
	tar  *tar.Writer
	time time.Time
	err  error
}

func (w *writer) json(name string, v any) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if w.err == nil {
		w.err = err
	}
	w.entry(name, int64(len(raw)), bytes.NewReader(raw))
}

func (w *writer) file(name, path string) {
	if w.err != nil {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		w.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		w.err = err
		return
	}
	w.entry(name, info.Size(), f)
}

func (w *writer) entry(name string, size int64, from io.Reader) {
	if w.err != nil {
		return
	}
	w.err = w.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: fileMode, ModTime: w.time, Format: tar.FormatPAX})
	if w.err == nil {
		_, w.err = io.Copy(w.tar, interrupt.Reader(w.ctx, from))
	}
	if w.err != nil {
		w.err = fmt.Errorf("writing %s into the bundle: %w", name, w.err)
	}
}
