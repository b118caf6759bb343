package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
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
	"ovs-offline/internal/outfile"
	"ovs-offline/internal/workdir"
)

// ImageSource is an image to save.
type ImageSource struct {
	Image            // without size and digest
	Remarks []string // what it lacks
	// Write writes an archive in the format of docker save.
	Write func(ctx context.Context, w io.Writer) error
}

// Save writes the collected data of a workdir to w, with an image unless that is nil; the
// same data gives the same bytes. The remarks name files that are left out or changed
// since they were collected. program is the version of ovs-offline.
func Save(ctx context.Context, wd *workdir.Dir, program string, image *ImageSource, w io.Writer) (remarks []string, err error) {
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
		remarks = append(remarks, name+" is not a regular file, so it is not in the bundle")
	}
	slices.Sort(files)
	head := Head{Format: Format, Workdir: workdir.FormatVersion, Program: program}
	changes, err := describe(ctx, wd, m, files, &head)
	if err != nil {
		return nil, err
	}
	remarks = append(remarks, changes...)
	if image == nil {
		return remarks, writeBundle(ctx, wd, m, head, files, nil, w)
	}
	archive, err := spoolImage(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("the image %s: %w", image.Name, err)
	}
	defer archive.Close()
	head.Format, head.Image = FormatWithImage, &image.Image
	return append(remarks, image.Remarks...), writeBundle(ctx, wd, m, head, files, archive, w)
}

// spoolImage writes an image into a temporary file without a name, at its beginning: tar
// needs its size first, and that of an engine's archive is unknown. It sets the size and
// the digest.
func spoolImage(ctx context.Context, image *ImageSource) (*os.File, error) {
	f, err := os.CreateTemp("", "ovs-offline-image-")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	sum := sha256.New()
	if err = image.Write(ctx, io.MultiWriter(f, sum)); err == nil {
		image.Size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	image.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, nil
}

// SaveFile saves to a file, which appears under its name once it is complete. If the
// file exists and replace is not set, the error wraps fs.ErrExist.
func SaveFile(ctx context.Context, wd *workdir.Dir, program string, image *ImageSource, name string, replace bool) (size int64, remarks []string, err error) {
	size, err = outfile.Write(name, replace, func(w io.Writer) error {
		remarks, err = Save(ctx, wd, program, image, w)
		return err
	})
	return size, remarks, err
}

// writeBundle writes the bundle. image is nil for a bundle without one.
func writeBundle(ctx context.Context, wd *workdir.Dir, m *workdir.Manifest, head Head, files []string, image io.Reader, w io.Writer) error {
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	out := &writer{ctx: ctx, tar: tar.NewWriter(zip), time: newest(m)}
	if err = out.json(headName, head); err == nil {
		err = out.json(manifestName, m)
	}
	for _, name := range files {
		if err == nil {
			err = out.file(name, wd.Join(name))
		}
	}
	if err == nil && image != nil {
		err = out.entry(imageName, head.Image.Size, image)
	}
	return cmp.Or(err, out.tar.Close(), zip.Close())
}

// describe brings the sizes and sums in the manifest up to date, and adds files
// that the manifest does not list to the head.
func describe(ctx context.Context, wd *workdir.Dir, m *workdir.Manifest, files []string, head *Head) (remarks []string, err error) {
	listed := map[string]*workdir.File{}
	for i := range m.Collections {
		m.Collections[i].LoadedImage = "" // it is in the store of this machine
		for j := range m.Collections[i].Files {
			listed[m.Collections[i].Files[j].Path] = &m.Collections[i].Files[j]
		}
	}
	for _, name := range files {
		size, sum, err := digest(ctx, wd.Join(name))
		if err != nil {
			return nil, err
		}
		f := listed[name]
		delete(listed, name)
		switch {
		case f == nil:
			head.ByHand = append(head.ByHand, workdir.File{Path: name, Origin: "added by hand", Size: size, SHA256: sum})
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
			_, missing := listed[f.Path]
			if missing {
				remarks = append(remarks, f.Path+" was collected, but no longer exists")
			}
			return missing
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

// newest returns the time of the last collection.
func newest(m *workdir.Manifest) time.Time {
	t := time.Unix(0, 0)
	for _, c := range m.Collections {
		if c.Collected.After(t) {
			t = c.Collected
		}
	}
	return t.UTC().Truncate(time.Second)
}

// writer writes a tar file whose entries all have the same time.
type writer struct {
	ctx  context.Context
	tar  *tar.Writer
	time time.Time
}

func (w *writer) json(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(name, int64(len(text)), bytes.NewReader(text))
}

func (w *writer) file(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.entry(name, info.Size(), f)
}

func (w *writer) entry(name string, size int64, from io.Reader) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: w.time, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(w.tar, interrupt.Reader(w.ctx, from))
	}
	if err != nil {
		return fmt.Errorf("writing %s into the bundle: %w", name, err)
	}
	return nil
}
