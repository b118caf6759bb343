package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/workdir"
)

// Loaded is the result of Load.
type Loaded struct {
	Collections []workdir.Collection
	Remarks     []string // for the user
	Image       *Image   // the image in the bundle; nil for none
	ImageError  error    // why the image was not added
}

// AddImage adds the image of a bundle to those of this machine, and returns its ID there.
type AddImage func(ctx context.Context, image Image, archive io.Reader) (id string, err error)

// Load replaces all data of a workdir with the data of a bundle. After an error the
// workdir is unchanged. The image of the bundle is passed to add, unless that is nil: then
// it is left out. An image that cannot be added does not keep the data from being loaded.
func Load(ctx context.Context, wd *workdir.Dir, r io.Reader, limits archive.Limits, add AddImage) (Loaded, error) {
	packed := &archive.Counter{Reader: interrupt.Reader(ctx, r)}
	meter := archive.New(limits, func() int64 { return packed.N })
	// With a concurrency of one, zstd reads in its caller's goroutine.
	zip, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return Loaded{}, fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	defer zip.Close()
	l := &loader{ctx: ctx, tar: tar.NewReader(zip), meter: meter, missing: map[string]workdir.File{}, invalid: ErrNotBundle, add: add}
	l.content = meter.Unpacked(l.tar) // counted here, because tar expands sparse files
	if err := l.readHead(); err != nil {
		return Loaded{}, err
	}
	stage, err := wd.Stage()
	if err != nil {
		return Loaded{}, err
	}
	defer stage.Discard()
	for _, k := range workdir.Kinds() {
		if err := stage.Replace(k, false); err != nil {
			return Loaded{}, err
		}
	}
	if err := l.stageFiles(stage); err != nil {
		return Loaded{}, err
	}
	for i := range l.manifest.Collections {
		l.manifest.Collections[i].LoadedImage = l.imageID
	}
	if err := stage.Install(l.manifest.Collections...); err != nil {
		return Loaded{}, err
	}
	loaded := Loaded{Collections: l.manifest.Collections, Image: l.head.Image, ImageError: l.imageErr}
	if n := len(l.head.ByHand); n > 0 {
		loaded.Remarks = append(loaded.Remarks, fmt.Sprintf("%d of the files were added by hand", n))
	}
	return loaded, nil
}

type loader struct {
	ctx      context.Context
	tar      *tar.Reader
	content  io.Reader // of the current file of tar
	meter    *archive.Meter
	head     Head
	manifest workdir.Manifest
	missing  map[string]workdir.File // files that are announced and not read yet
	invalid  error                   // wrapped by errors about the content

	add      AddImage
	imageID  string // of the image that was added
	imageErr error  // why it was not added
}

// readHead reads the first two files and checks what they announce.
func (l *loader) readHead() error {
	if err := l.readJSON(headName, &l.head); err != nil {
		return err
	}
	if l.head.Format != Format && l.head.Format != FormatWithImage || l.head.Workdir != workdir.FormatVersion {
		return fmt.Errorf("%w: bundle format %d, workdir format %d, written by ovs-offline %.40q; this one reads %d and %d, and %d: use that version",
			ErrVersion, l.head.Format, l.head.Workdir, l.head.Program, Format, FormatWithImage, workdir.FormatVersion)
	}
	l.invalid = ErrDamaged
	if (l.head.Format == FormatWithImage) != (l.head.Image != nil) {
		return fmt.Errorf("%w: %s of format %d", ErrDamaged, headName, l.head.Format)
	}
	if err := l.readJSON(manifestName, &l.manifest); err != nil {
		return err
	}
	if l.manifest.Format != workdir.FormatVersion {
		return fmt.Errorf("%w: its manifest has format %d; this version reads %d", ErrVersion, l.manifest.Format, workdir.FormatVersion)
	}
	seen := map[workdir.Kind]bool{}
	announced := slices.Clone(l.head.ByHand)
	for _, c := range l.manifest.Collections {
		if !slices.Contains(workdir.Kinds(), c.Kind) || seen[c.Kind] {
			return fmt.Errorf("%w: its manifest names the kind %.40q, which is unknown or listed twice", ErrDamaged, c.Kind)
		}
		seen[c.Kind] = true
		announced = append(announced, c.Files...)
	}
	return l.announce(announced)
}

// announce checks the names of the files that follow.
func (l *loader) announce(files []workdir.File) error {
	for _, f := range files {
		if _, twice := l.missing[f.Path]; twice {
			return fmt.Errorf("%w: it lists %.200q twice", ErrDamaged, f.Path)
		}
		if !workdir.IsData(f.Path) {
			return fmt.Errorf("%w: it lists %.200q, which is not the path of collected data: nothing is installed", ErrDamaged, f.Path)
		}
		l.missing[f.Path] = f
	}
	return nil
}

// readJSON reads the next file, which must have that name, into v.
func (l *loader) readJSON(name string, v any) error {
	h, err := l.tar.Next()
	if err != nil {
		return l.explain(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || h.Size > workdir.MaxText {
		return fmt.Errorf("%w: it holds %.100q where %s should be", l.invalid, h.Name, name)
	}
	text, err := io.ReadAll(l.content)
	if err != nil {
		return l.explain(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return nil
}

// stageFiles stages all announced files, and compares each with its announcement. It
// adds the image, which is the last one.
func (l *loader) stageFiles(stage *workdir.Staging) error {
	image := l.head.Image
	for {
		h, err := l.tar.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return l.explain(err)
		}
		if image != nil && h.Name == imageName && len(l.missing) == 0 {
			if err := l.readImage(h); err != nil {
				return err
			}
			image = nil
			continue
		}
		want, ok := l.missing[h.Name]
		if !ok || h.Typeflag != tar.TypeReg || h.Size != want.Size {
			return fmt.Errorf("%w: %.200q differs from its entry in the manifest", ErrDamaged, h.Name)
		}
		delete(l.missing, h.Name)
		file, err := l.meter.Keep(h.Name, h.Size, l.content)
		if err != nil {
			return err
		}
		have, err := stage.Copy(l.ctx, file, stage.Join(h.Name))
		if err != nil {
			return l.explain(err)
		}
		if have.SHA256 != want.SHA256 {
			return fmt.Errorf("%w: the sha256 of %s differs from the one in the manifest: copy the bundle again", ErrDamaged, h.Name)
		}
	}
	if image != nil {
		return fmt.Errorf("%w: %s is missing, or is not the last file", ErrDamaged, imageName)
	}
	for name := range l.missing {
		return fmt.Errorf("%w: %d files are missing, %s among them", ErrDamaged, len(l.missing), name)
	}
	return nil
}

// readImage compares the image with its announcement and adds it.
func (l *loader) readImage(h *tar.Header) error {
	want := l.head.Image
	if h.Typeflag != tar.TypeReg || h.Size != want.Size {
		return fmt.Errorf("%w: %s differs from its entry in %s", ErrDamaged, imageName, headName)
	}
	content := &checkedReader{Reader: l.content, sum: sha256.New(), want: want.SHA256}
	if l.add != nil {
		if l.imageID, l.imageErr = l.add(l.ctx, *want, content); l.imageErr != nil {
			l.imageID = ""
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil { // also for a part that was not needed
		return l.explain(err)
	}
	return l.ctx.Err()
}

// checkedReader is a reader that fails at the end of content with another digest.
type checkedReader struct {
	io.Reader
	sum  hash.Hash
	want string
	err  error
}

func (r *checkedReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.Reader.Read(p)
	r.sum.Write(p[:n])
	if r.err = err; err == io.EOF && hex.EncodeToString(r.sum.Sum(nil)) != r.want {
		r.err = errDigest
	}
	return n, r.err
}

var errDigest = fmt.Errorf("%w: the sha256 of %s differs from the one in %s: copy the bundle again", ErrDamaged, imageName, headName)

// explain returns the error for a failed read of the bundle.
func (l *loader) explain(err error) error {
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case errors.Is(err, archive.ErrLimit), errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is cut off: copy it again", ErrDamaged)
	}
	return fmt.Errorf("%w: it cannot be unpacked: %w", l.invalid, err)
}
