package bundle

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/workdir"
)

// Load puts the data of a bundle into a workdir, in place of all that it holds,
// or leaves the workdir as it is. It returns what was collected and what a
// person should know of it.
func Load(ctx context.Context, wd *workdir.Dir, r io.Reader, limits archive.Limits) ([]workdir.Collection, []string, error) {
	packed := &archive.Counter{Reader: interrupt.Reader(ctx, r)}
	meter := archive.New(limits, func() int64 { return packed.N })
	// With one decoder, all is read by who asks for it.
	zip, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	defer zip.Close()
	l := &loader{ctx: ctx, tar: tar.NewReader(zip), meter: meter, left: map[string]workdir.File{}}
	l.content = meter.Unpacked(l.tar) // of a sparse file more comes out of tar than of zstd
	if err := l.start(); err != nil {
		return nil, nil, err
	}
	stage, err := wd.Stage()
	if err != nil {
		return nil, nil, err
	}
	defer stage.Discard()
	for _, k := range workdir.Kinds() {
		if err := stage.Replace(k, false); err != nil {
			return nil, nil, err
		}
	}
	if err := l.files(stage); err != nil {
		return nil, nil, err
	}
	// Install may be asked for once only, so all is checked by now.
	if err := stage.Install(l.manifest.Collections...); err != nil {
		return nil, nil, err
	}
	var remarks []string
	if n := len(l.head.ByHand); n > 0 {
		remarks = append(remarks, fmt.Sprintf("%d files that were put there by hand are among them", n))
	}
	return l.manifest.Collections, remarks, nil
}

type loader struct {
	ctx      context.Context
	tar      *tar.Reader
	content  io.Reader // of the file at which tar is
	meter    *archive.Meter
	head     Head
	manifest workdir.Manifest
	left     map[string]workdir.File // those that are announced and yet to come
}

// start reads the first two files and checks what they announce.
func (l *loader) start() error {
	if err := l.json(headName, &l.head); err != nil {
		if l.told(err) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	if l.head.Format != Format || l.head.Workdir != workdir.FormatVersion {
		return fmt.Errorf("%w: bundle format %d, workdir format %d, written by ovs-offline %.40q; this one reads %d and %d: use that version",
			ErrVersion, l.head.Format, l.head.Workdir, l.head.Program, Format, workdir.FormatVersion)
	}
	if err := l.json(manifestName, &l.manifest); err != nil {
		return err
	}
	if l.manifest.Format != workdir.FormatVersion {
		return fmt.Errorf("%w: its manifest is of format %d, this version reads %d", ErrVersion, l.manifest.Format, workdir.FormatVersion)
	}
	seen := map[workdir.Kind]bool{}
	announced := slices.Clone(l.head.ByHand)
	for _, c := range l.manifest.Collections {
		if !slices.Contains(workdir.Kinds(), c.Kind) || seen[c.Kind] {
			return fmt.Errorf("%w: its manifest names the kind %.40q, unknown or twice", ErrDamaged, c.Kind)
		}
		seen[c.Kind] = true
		announced = append(announced, c.Files...)
	}
	return l.announce(announced)
}

// announce checks the names and sizes of the files that are to come.
func (l *loader) announce(files []workdir.File) error {
	var total int64
	for _, f := range files {
		if _, twice := l.left[f.Path]; twice {
			return fmt.Errorf("%w: it announces %.200q twice", ErrDamaged, f.Path)
		}
		if len(f.Path) > maxNameSize || !workdir.IsData(f.Path) {
			return fmt.Errorf("%w: it announces %.200q, which is no place for collected data: nothing is installed", ErrDamaged, f.Path)
		}
		if f.Size < 0 || f.Size > maxTotal-total || len(l.left) == maxFiles {
			return fmt.Errorf("%w: it announces more than %d files or %d GiB", ErrDamaged, maxFiles, maxTotal>>30)
		}
		total += f.Size
		l.left[f.Path] = f
	}
	return nil
}

// json reads the next file, which must be name, into v.
func (l *loader) json(name string, v any) error {
	h, err := l.tar.Next()
	if err != nil {
		return l.broken(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || h.Size > maxHead {
		return fmt.Errorf("it holds %.100q where %s should be", h.Name, name)
	}
	raw, err := io.ReadAll(l.content)
	if err != nil {
		return l.broken(err)
	}
	if err := workdir.DecodeJSON(raw, v); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return nil
}

func (l *loader) broken(err error) error {
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	if errors.Is(err, archive.ErrLimit) {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut off: copy it again", ErrDamaged)
	}
	return fmt.Errorf("it can't be unpacked: %w", err)
}

// files stages all announced files, each compared with what was announced.
func (l *loader) files(stage *workdir.Staging) error {
	for {
		h, err := l.tar.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return l.damaged(err)
		}
		want, ok := l.left[h.Name]
		if !ok || h.Typeflag != tar.TypeReg || h.Size != want.Size {
			return fmt.Errorf("%w: %.200q is not what its manifest announces", ErrDamaged, h.Name)
		}
		delete(l.left, h.Name)
		file, err := l.meter.Keep(h.Name, h.Size, l.content)
		if err != nil {
			return err
		}
		have, err := stage.Copy(l.ctx, file, stage.Join(h.Name))
		if err != nil {
			return l.damaged(err)
		}
		if have.SHA256 != want.SHA256 {
			return fmt.Errorf("%w: the sha256 of %s is not that of its manifest: copy the bundle again", ErrDamaged, h.Name)
		}
	}
	for name := range l.left {
		return fmt.Errorf("%w: %d files are missing, %s among them", ErrDamaged, len(l.left), name)
	}
	return nil
}

func (l *loader) damaged(err error) error {
	err = l.broken(err)
	if l.told(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// told tells the errors that say what is the matter by themselves.
func (l *loader) told(err error) bool {
	return l.ctx.Err() != nil || errors.Is(err, ErrDamaged) || errors.Is(err, archive.ErrLimit)
}
