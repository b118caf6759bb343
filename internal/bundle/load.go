package bundle

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strings"

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
// The error wraps ErrSet for a bundle of a set.
func Load(ctx context.Context, wd *workdir.Dir, r io.Reader, limits archive.Limits, add AddImage) (Loaded, error) {
	b, err := Open(ctx, r, limits)
	if err != nil {
		return Loaded{}, err
	}
	defer b.Close()
	return b.Load(wd, add)
}

// Reader is a bundle whose head and manifests are read.
type Reader struct {
	zip      *zstd.Decoder
	ctx      context.Context
	tar      *tar.Reader
	content  io.Reader // of the current file of tar
	limits   archive.Limits
	head     Head
	parts    []*loadedPart
	expected map[string]*announced // files that are not read yet, by their names in tar
	sources  map[blob]string       // of the files that are in the bundle once: the staged file
	copies   map[blob][]*announced // files of the wanted parts with the same content as one of them
	invalid  error                 // wrapped by errors about the content

	add      AddImage
	imageID  string // of the image that was added
	imageErr error  // why it was not added
}

// loadedPart is the data of one workdir.
type loadedPart struct {
	name, prefix string
	byHand       []workdir.File
	manifest     workdir.Manifest
	stage        *workdir.Staging // nil for a node that is not wanted
	copies       []workdir.File   // files that are in the bundle as those of another node
	kept         *archive.Meter
}

// announced is a file that follows.
type announced struct {
	file workdir.File
	part *loadedPart
}

// Open reads the head of a bundle. Call Load or LoadSet next, and Close at the end.
func Open(ctx context.Context, r io.Reader, limits archive.Limits) (*Reader, error) {
	packed := &archive.Counter{Reader: interrupt.Reader(ctx, r)}
	meter := archive.New(limits, func() int64 { return packed.N })
	// With a concurrency of one, zstd reads in its caller's goroutine.
	zip, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBundle, err)
	}
	b := &Reader{zip: zip, ctx: ctx, tar: tar.NewReader(zip), limits: limits, expected: map[string]*announced{}, sources: map[blob]string{}, copies: map[blob][]*announced{}, invalid: ErrNotBundle}
	b.content = meter.Unpacked(b.tar) // counted here, because tar expands sparse files
	if err := b.readHead(meter); err != nil {
		zip.Close()
		return nil, err
	}
	return b, nil
}

// Close releases what Open took.
func (l *Reader) Close() { l.zip.Close() }

// Nodes returns the names of the nodes of a set; nil for the bundle of one workdir.
func (l *Reader) Nodes() []string {
	var names []string
	for _, n := range l.head.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// Load is the function Load for the rest of the bundle.
func (l *Reader) Load(wd *workdir.Dir, add AddImage) (Loaded, error) {
	if l.head.Format == FormatSet {
		return Loaded{}, fmt.Errorf("%w: %s", ErrSet, strings.Join(l.Nodes(), ", "))
	}
	loaded, err := l.load(nil, []Node{{Dir: wd}}, add)
	if err != nil {
		return Loaded{}, err
	}
	return loaded[0], nil
}

// LoadSet works like Load for these nodes of a set, whose workdirs are in a folder, and
// returns what was loaded in their order. All workdirs are changed or none.
func (l *Reader) LoadSet(folder *workdir.Dir, nodes []Node, add AddImage) ([]Loaded, error) {
	return l.load(folder, nodes, add)
}

// load loads nodes into workdirs in a folder, or one into a workdir of its own, for nil.
func (l *Reader) load(folder *workdir.Dir, nodes []Node, add AddImage) ([]Loaded, error) {
	l.add = add
	var parts []*loadedPart
	defer func() {
		for _, p := range parts {
			p.stage.Discard()
		}
	}()
	for _, n := range nodes {
		i := slices.IndexFunc(l.parts, func(p *loadedPart) bool { return p.name == n.Name })
		if i < 0 {
			return nil, fmt.Errorf("the bundle holds no node %q", n.Name)
		}
		p := l.parts[i]
		var err error
		if p.stage, err = n.Dir.Stage(); err != nil {
			return nil, err
		}
		parts = append(parts, p)
		for _, k := range workdir.Kinds() {
			if err := p.stage.Replace(k, false); err != nil {
				return nil, err
			}
		}
		for _, f := range p.copies {
			key := blob{f.Size, f.SHA256}
			l.copies[key] = append(l.copies[key], &announced{f, p})
		}
	}
	if err := l.stageFiles(); err != nil {
		return nil, err
	}
	return l.install(folder, parts)
}

// install installs the staged parts.
func (l *Reader) install(folder *workdir.Dir, parts []*loadedPart) ([]Loaded, error) {
	var all []Loaded
	var staged []workdir.Staged
	for _, p := range parts {
		for i := range p.manifest.Collections {
			p.manifest.Collections[i].LoadedImage = l.imageID
		}
		staged = append(staged, workdir.Staged{Staging: p.stage, Collections: p.manifest.Collections})
		loaded := Loaded{Collections: p.manifest.Collections, Image: l.head.Image, ImageError: l.imageErr}
		if n := len(p.byHand); n > 0 {
			loaded.Remarks = append(loaded.Remarks, fmt.Sprintf("%d of the files were added by hand", n))
		}
		all = append(all, loaded)
	}
	if folder == nil {
		return all, staged[0].Install(staged[0].Collections...)
	}
	parent, err := folder.Stage()
	if err != nil {
		return nil, err
	}
	defer parent.Discard()
	return all, parent.InstallAll(staged)
}

// readHead reads bundle.json and the manifests, and checks what they announce.
func (l *Reader) readHead(meter *archive.Meter) error {
	if err := l.readJSON(headName, &l.head); err != nil {
		return err
	}
	if l.head.Format < Format || l.head.Format > FormatSet || l.head.Workdir != workdir.FormatVersion {
		return fmt.Errorf("%w: bundle format %d, workdir format %d, written by ovs-offline %.40q; this one reads %d to %d, and %d: use that version",
			ErrVersion, l.head.Format, l.head.Workdir, l.head.Program, Format, FormatSet, workdir.FormatVersion)
	}
	l.invalid = ErrDamaged
	isSet := l.head.Format == FormatSet
	if !isSet && (l.head.Format == FormatWithImage) != (l.head.Image != nil) || isSet != (len(l.head.Nodes) > 0) {
		return fmt.Errorf("%w: %s of format %d", ErrDamaged, headName, l.head.Format)
	}
	l.parts = []*loadedPart{{byHand: l.head.ByHand, kept: meter}}
	if isSet {
		if err := l.addNodes(); err != nil {
			return err
		}
	}
	for _, p := range l.parts {
		if err := l.readManifest(p); err != nil {
			return err
		}
	}
	return nil
}

// addNodes makes a part of each node of a set.
func (l *Reader) addNodes() error {
	l.parts = nil
	if err := l.limits.CheckNodes(len(l.head.Nodes)); err != nil {
		return err
	}
	last := ""
	for _, n := range l.head.Nodes {
		if !workdir.IsNodeName(n.Name) || n.Name <= last {
			return fmt.Errorf("%w: the node %.200q has no name for a folder, or is listed twice", ErrDamaged, n.Name)
		}
		last = n.Name
		l.parts = append(l.parts, &loadedPart{name: n.Name, prefix: n.Name + "/", byHand: n.ByHand, kept: archive.New(l.limits, nil)})
	}
	return nil
}

func (l *Reader) readManifest(p *loadedPart) error {
	if err := l.readJSON(p.prefix+manifestName, &p.manifest); err != nil {
		return err
	}
	if p.manifest.Format != workdir.FormatVersion {
		return fmt.Errorf("%w: its manifest has format %d; this version reads %d", ErrVersion, p.manifest.Format, workdir.FormatVersion)
	}
	seen := map[workdir.Kind]bool{}
	files := slices.Clone(p.byHand)
	for _, c := range p.manifest.Collections {
		if !slices.Contains(workdir.Kinds(), c.Kind) || seen[c.Kind] {
			return fmt.Errorf("%w: its manifest names the kind %.40q, which is unknown or listed twice", ErrDamaged, c.Kind)
		}
		seen[c.Kind] = true
		files = append(files, c.Files...)
	}
	return l.announce(p, files)
}

// announce checks the names of the files that follow, and notes which of them several nodes
// share: the bundle holds these once.
func (l *Reader) announce(p *loadedPart, files []workdir.File) error {
	slices.SortFunc(files, func(a, b workdir.File) int { return cmp.Compare(a.Path, b.Path) })
	for i, f := range files {
		if i > 0 && files[i-1].Path == f.Path {
			return fmt.Errorf("%w: it lists %.200q twice", ErrDamaged, f.Path)
		}
		if !workdir.IsData(f.Path) {
			return fmt.Errorf("%w: it lists %.200q, which is not the path of collected data: nothing is installed", ErrDamaged, f.Path)
		}
		key := blob{f.Size, f.SHA256}
		if _, known := l.sources[key]; known && l.head.Format == FormatSet {
			p.copies = append(p.copies, f)
			continue
		}
		l.sources[key] = ""
		l.expected[p.prefix+f.Path] = &announced{f, p}
	}
	return nil
}

// readJSON reads the next file, which must have that name, into v.
func (l *Reader) readJSON(name string, v any) error {
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
func (l *Reader) stageFiles() error {
	image := l.head.Image
	for {
		h, err := l.tar.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return l.explain(err)
		}
		if image != nil && h.Name == imageName && len(l.expected) == 0 {
			if err := l.readImage(h); err != nil {
				return err
			}
			image = nil
			continue
		}
		want, ok := l.expected[h.Name]
		if !ok || h.Typeflag != tar.TypeReg || h.Size != want.file.Size {
			return fmt.Errorf("%w: %.200q differs from its entry in the manifest", ErrDamaged, h.Name)
		}
		delete(l.expected, h.Name)
		if err := l.stageFile(want); err != nil {
			return err
		}
	}
	if image != nil {
		return fmt.Errorf("%w: %s is missing, or is not the last file", ErrDamaged, imageName)
	}
	for name := range l.expected {
		return fmt.Errorf("%w: %d files are missing, %s among them", ErrDamaged, len(l.expected), name)
	}
	return l.stageCopies()
}

// stageFile stages the next file, for the first wanted part that has it. A file that no
// wanted part has is read all the same, and compared.
func (l *Reader) stageFile(want *announced) error {
	key := blob{want.file.Size, want.file.SHA256}
	if copies := l.copies[key]; want.part.stage == nil && len(copies) > 0 {
		want, l.copies[key] = copies[0], copies[1:]
	}
	p, f := want.part, want.file
	in, err := p.kept.Keep(f.Path, f.Size, l.content)
	if err != nil {
		return err
	}
	if p.stage == nil {
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			return l.explain(err)
		}
		return compareSum(hex.EncodeToString(sum.Sum(nil)), f)
	}
	path := p.stage.Join(f.Path)
	have, err := p.stage.Copy(l.ctx, in, path)
	if err != nil {
		return l.explain(err)
	}
	l.sources[key] = path
	return compareSum(have.SHA256, f)
}

func compareSum(have string, want workdir.File) error {
	if have != want.SHA256 {
		return fmt.Errorf("%w: the sha256 of %s differs from the one in the manifest: copy the bundle again", ErrDamaged, want.Path)
	}
	return nil
}

// stageCopies copies the files that are in the bundle once for several nodes. Together
// they are limited too.
func (l *Reader) stageCopies() error {
	meter := archive.New(l.limits, nil)
	for key, copies := range l.copies {
		for _, c := range copies {
			if err := l.stageCopy(c, l.sources[key], meter); err != nil {
				return l.explain(err)
			}
		}
	}
	return nil
}

func (l *Reader) stageCopy(c *announced, source string, meter *archive.Meter) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	in, err := c.part.kept.Keep(c.file.Path, c.file.Size, meter.Unpacked(from))
	if err != nil {
		return err
	}
	_, err = c.part.stage.Copy(l.ctx, in, c.part.stage.Join(c.file.Path))
	return err
}

// readImage compares the image with its announcement and adds it.
func (l *Reader) readImage(h *tar.Header) error {
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
func (l *Reader) explain(err error) error {
	switch {
	case l.ctx.Err() != nil:
		return l.ctx.Err()
	case errors.Is(err, archive.ErrLimit), errors.Is(err, ErrDamaged), archive.CannotWrite(err):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is cut off: copy it again", ErrDamaged)
	}
	return fmt.Errorf("%w: it cannot be unpacked: %w", l.invalid, err)
}
