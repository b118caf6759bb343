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
	"ovs-offline/workdir"
)

// ImageSource is an image to save.
type ImageSource struct {
	Image            // without size and digest
	Remarks []string // what it lacks
	// Write writes an archive in the format of docker save.
	Write func(ctx context.Context, w io.Writer) error
}

// Extras is what a bundle holds beside data.
type Extras struct {
	Image *ImageSource // nil for none
	Page  []byte       // of the case; nil for none
}

// Save writes the collected data of a workdir to w; without extras, the
// same data gives the same bytes. The remarks name files that are left out or changed
// since they were collected. program is the version of ovs-offline.
func Save(ctx context.Context, wd *workdir.Dir, program string, extras Extras, w io.Writer) (remarks []string, err error) {
	p, remarks, err := gather(ctx, wd)
	if err != nil {
		return nil, err
	}
	head := Head{Format: Format, Workdir: workdir.FormatVersion, Program: program, ByHand: p.byHand}
	if extras.Image != nil {
		head.Format = FormatWithImage
	}
	more, err := write(ctx, head, []*part{p}, extras, w)
	return append(remarks, more...), err
}

// SaveSet works like Save for the nodes of a set. A file that several nodes have is in
// the bundle once.
func SaveSet(ctx context.Context, nodes []Workdir, program string, extras Extras, w io.Writer) (remarks []string, err error) {
	head := Head{Format: FormatSet, Workdir: workdir.FormatVersion, Program: program}
	var parts []*part
	for _, node := range slices.SortedFunc(slices.Values(nodes), func(a, b Workdir) int { return cmp.Compare(a.Name, b.Name) }) {
		part, more, err := gather(ctx, node.Dir)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", node.Name, err)
		}
		for _, remark := range more {
			remarks = append(remarks, node.Name+": "+remark)
		}
		part.prefix = node.Name + "/"
		parts = append(parts, part)
		head.Nodes = append(head.Nodes, HeadNode{node.Name, part.byHand})
	}
	more, err := write(ctx, head, parts, extras, w)
	return append(remarks, more...), err
}

// part is the data of one workdir.
type part struct {
	prefix   string // of its files in the bundle: "" or "NODE/"
	wd       *workdir.Dir
	manifest *workdir.Manifest
	byHand   []workdir.File
}

// gather returns the data of a workdir, with its sizes and sums brought up to date.
func gather(ctx context.Context, wd *workdir.Dir) (p *part, remarks []string, err error) {
	p = &part{wd: wd}
	if p.manifest, err = wd.Manifest(); err != nil {
		return nil, nil, err
	}
	files, other, err := wd.DataFiles()
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("%w in %s: collect something first", ErrNothing, wd.Path())
	}
	for _, name := range other {
		remarks = append(remarks, name+" is not a regular file, so it is not in the bundle")
	}
	slices.Sort(files)
	changes, err := p.describe(ctx, files)
	return p, append(remarks, changes...), err
}

// files returns the files of the part in the order of their names.
func (p *part) files() []workdir.File {
	files := slices.Clone(p.byHand)
	for _, collection := range p.manifest.Collections {
		files = append(files, collection.Files...)
	}
	slices.SortStableFunc(files, func(a, b workdir.File) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(files, func(a, b workdir.File) bool { return a.Path == b.Path })
}

// write writes a bundle with its extras.
func write(ctx context.Context, head Head, parts []*part, extras Extras, w io.Writer) (remarks []string, err error) {
	if extras.Page != nil {
		sum := sha256.Sum256(extras.Page)
		head.Format, head.Page = FormatWithPage, &Page{Size: int64(len(extras.Page)), SHA256: hex.EncodeToString(sum[:])}
	}
	image := extras.Image
	if image == nil {
		return nil, writeBundle(ctx, head, parts, extras.Page, nil, w)
	}
	archive, err := spoolImage(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("the image %s: %w", image.Name, err)
	}
	defer archive.Close()
	head.Image = &image.Image
	return image.Remarks, writeBundle(ctx, head, parts, extras.Page, archive, w)
}

// spoolImage writes an image into a temporary file without a name, at its beginning: tar
// needs its size first, and that of an engine's archive is unknown. It sets the size and
// the digest.
func spoolImage(ctx context.Context, image *ImageSource) (*os.File, error) {
	file, err := os.CreateTemp("", "ovs-offline-image-")
	if err != nil {
		return nil, err
	}
	os.Remove(file.Name())
	sum := sha256.New()
	if err = image.Write(ctx, io.MultiWriter(file, sum)); err == nil {
		image.Size, err = file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	image.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return file, nil
}

// writeBundle writes the bundle. page and image are nil for a bundle without them.
func writeBundle(ctx context.Context, head Head, parts []*part, page []byte, image io.Reader, w io.Writer) error {
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	out := &writer{ctx: ctx, tar: tar.NewWriter(zip), time: newest(parts)}
	err = out.json(headName, head)
	for _, part := range parts {
		if err == nil {
			err = out.json(part.prefix+manifestName, part.manifest)
		}
	}
	written := blobs{}
	for _, part := range parts {
		for _, file := range part.files() {
			if err == nil && (!head.isSet() || written.add(file)) {
				err = out.file(part.prefix+file.Path, part.wd.Join(file.Path))
			}
		}
	}
	if err == nil && page != nil {
		err = out.entry(PageName, head.Page.Size, bytes.NewReader(page))
	}
	if err == nil && image != nil {
		err = out.entry(imageName, head.Image.Size, image)
	}
	return cmp.Or(err, out.tar.Close(), zip.Close())
}

// blobs are the contents of files, by size and sum.
type blobs map[blob]bool

type blob struct {
	size int64
	sum  string
}

// add adds the content of a file, and reports whether it is new.
func (c blobs) add(file workdir.File) bool {
	key := blob{file.Size, file.SHA256}
	known := c[key]
	c[key] = true
	return !known
}

// describe brings the sizes and sums in the manifest up to date, and sets the files
// that the manifest does not list.
func (p *part) describe(ctx context.Context, files []string) (remarks []string, err error) {
	listed := map[string]*workdir.File{}
	collections := p.manifest.Collections
	for i := range collections {
		collections[i].LoadedImage = "" // it is in the store of this machine
		for j := range collections[i].Files {
			listed[collections[i].Files[j].Path] = &collections[i].Files[j]
		}
	}
	for _, name := range files {
		size, sum, err := digest(ctx, p.wd.Join(name))
		if err != nil {
			return nil, err
		}
		file := listed[name]
		delete(listed, name)
		switch {
		case file == nil:
			p.byHand = append(p.byHand, workdir.File{Path: name, Origin: "added by hand", Size: size, SHA256: sum})
		case file.SHA256 != sum:
			const changed = "changed by hand after it was collected"
			file.Size, file.SHA256 = size, sum
			if !slices.Contains(file.Remarks, changed) {
				file.Remarks = append(file.Remarks, changed)
			}
			remarks = append(remarks, name+": "+changed)
		}
	}
	for i := range collections {
		collection := &collections[i]
		collection.Files = slices.DeleteFunc(collection.Files, func(file workdir.File) bool {
			_, missing := listed[file.Path]
			if missing {
				remarks = append(remarks, file.Path+" was collected, but no longer exists")
			}
			return missing
		})
	}
	return remarks, nil
}

func digest(ctx context.Context, path string) (int64, string, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, interrupt.Reader(ctx, file))
	return n, hex.EncodeToString(sum.Sum(nil)), err
}

// newest returns the time of the last collection.
func newest(parts []*part) time.Time {
	moment := time.Unix(0, 0)
	for _, part := range parts {
		for _, collection := range part.manifest.Collections {
			if collection.Collected.After(moment) {
				moment = collection.Collected
			}
		}
	}
	return moment.UTC().Truncate(time.Second)
}

// writer writes a tar file whose entries all have the same time.
type writer struct {
	ctx  context.Context
	tar  *tar.Writer
	time time.Time
}

func (w *writer) json(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(name, int64(len(text)), bytes.NewReader(text))
}

func (w *writer) file(name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return w.entry(name, info.Size(), file)
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
