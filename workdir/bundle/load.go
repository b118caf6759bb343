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
	"ovs-offline/workdir"
)

// Loaded is the result of Load.
type Loaded struct {
	Collections []workdir.Collection
	Remarks     []string // for the user
	Image       *Image   // the image in the bundle; nil for none
	Page        bool     // the bundle also holds a page of the case, which is left out
	ImageError  error    // why the image was not added
}

// AddImage adds the image of a bundle to the images of this machine, and returns its ID there.
type AddImage func(ctx context.Context, image Image, archive io.Reader) (id string, err error)

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
	copies       []workdir.File   // files that the bundle holds for another node
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
	reader := &Reader{zip: zip, ctx: ctx, tar: tar.NewReader(zip), limits: limits, invalid: ErrNotBundle,
		expected: map[string]*announced{}, sources: map[blob]string{}, copies: map[blob][]*announced{}}
	reader.content = meter.Unpacked(reader.tar) // counted here, because tar expands sparse files
	if err := reader.readHead(meter); err != nil {
		zip.Close()
		return nil, err
	}
	return reader, nil
}

// Close releases what Open took.
func (l *Reader) Close() { l.zip.Close() }

// Nodes returns the names of the nodes of a set; nil for the bundle of one workdir.
func (l *Reader) Nodes() []string {
	var names []string
	for _, node := range l.head.Nodes {
		names = append(names, node.Name)
	}
	return names
}

// Load replaces all data of a workdir with the data of the bundle. After an error the
// workdir is unchanged. The image of the bundle is passed to add, unless that is nil: then
// it is left out. An image that cannot be added does not keep the data from being loaded.
// The error wraps ErrSet for a bundle of a set.
func (l *Reader) Load(wd *workdir.Dir, add AddImage) (Loaded, error) {
	if l.head.isSet() {
		return Loaded{}, fmt.Errorf("%w: %s", ErrSet, strings.Join(l.Nodes(), ", "))
	}
	loaded, err := l.load(nil, []Workdir{{Dir: wd}}, add)
	if err != nil {
		return Loaded{}, err
	}
	return loaded[0], nil
}

// LoadSet works like Load for these nodes of a set, whose workdirs are in a folder, and
// returns what was loaded in their order. All workdirs are changed or none.
func (l *Reader) LoadSet(folder *workdir.Dir, nodes []Workdir, add AddImage) ([]Loaded, error) {
	return l.load(folder, nodes, add)
}

// load loads nodes into workdirs in a folder, or one into a workdir of its own, for nil.
func (l *Reader) load(folder *workdir.Dir, nodes []Workdir, add AddImage) ([]Loaded, error) {
	l.add = add
	var parts []*loadedPart
	defer func() {
		for _, part := range parts {
			part.stage.Discard()
		}
	}()
	for _, node := range nodes {
		i := slices.IndexFunc(l.parts, func(part *loadedPart) bool { return part.name == node.Name })
		if i < 0 {
			return nil, fmt.Errorf("the bundle holds no node %q", node.Name)
		}
		part := l.parts[i]
		var err error
		if part.stage, err = node.Dir.Stage(); err != nil {
			return nil, err
		}
		parts = append(parts, part)
		for _, kind := range workdir.AllKinds() {
			if err := part.stage.Replace(kind, false); err != nil {
				return nil, err
			}
		}
		for _, file := range part.copies {
			key := blob{file.Size, file.SHA256}
			l.copies[key] = append(l.copies[key], &announced{file, part})
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
	for _, part := range parts {
		for i := range part.manifest.Collections {
			part.manifest.Collections[i].LoadedImage = l.imageID
		}
		staged = append(staged, workdir.Staged{Staging: part.stage, Collections: part.manifest.Collections})
		loaded := Loaded{Collections: part.manifest.Collections, Image: l.head.Image, Page: l.head.Page != nil, ImageError: l.imageErr}
		if n := len(part.byHand); n > 0 {
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
	if l.head.Format < Format || l.head.Format > FormatWithPage || l.head.Workdir != workdir.FormatVersion {
		return fmt.Errorf("%w: ovs-offline %.40q wrote bundle format %d (workdir format %d); this one reads %d to %d (%d): load it with that version",
			ErrVersion, l.head.Program, l.head.Format, l.head.Workdir, Format, FormatWithPage, workdir.FormatVersion)
	}
	l.invalid = ErrDamaged
	if err := l.head.checkFormat(); err != nil {
		return err
	}
	l.parts = []*loadedPart{{byHand: l.head.ByHand, kept: meter}}
	if l.head.isSet() {
		if err := l.addNodes(); err != nil {
			return err
		}
	}
	for _, part := range l.parts {
		if err := l.readManifest(part); err != nil {
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
	for _, node := range l.head.Nodes {
		if !workdir.IsNodeName(node.Name) || node.Name <= last {
			return fmt.Errorf("%w: the node %.200q has no name for a folder, or is listed twice", ErrDamaged, node.Name)
		}
		last = node.Name
		l.parts = append(l.parts, &loadedPart{name: node.Name, prefix: node.Name + "/", byHand: node.ByHand, kept: archive.New(l.limits, nil)})
	}
	return nil
}

func (l *Reader) readManifest(part *loadedPart) error {
	if err := l.readJSON(part.prefix+manifestName, &part.manifest); err != nil {
		return err
	}
	if part.manifest.Format != workdir.FormatVersion {
		return fmt.Errorf("%w: its manifest has format %d; this version reads %d", ErrVersion, part.manifest.Format, workdir.FormatVersion)
	}
	seen := map[workdir.Kind]bool{}
	files := slices.Clone(part.byHand)
	for _, collection := range part.manifest.Collections {
		if !slices.Contains(workdir.AllKinds(), collection.Kind) || seen[collection.Kind] {
			return fmt.Errorf("%w: its manifest names the kind %.40q, which is unknown or listed twice", ErrDamaged, collection.Kind)
		}
		seen[collection.Kind] = true
		files = append(files, collection.Files...)
	}
	return l.noteFiles(part, files)
}

// noteFiles checks the names of the files that follow, and notes which of them several nodes
// share: the bundle holds these once.
func (l *Reader) noteFiles(part *loadedPart, files []workdir.File) error {
	slices.SortFunc(files, func(a, b workdir.File) int { return cmp.Compare(a.Path, b.Path) })
	for i, file := range files {
		if i > 0 && files[i-1].Path == file.Path {
			return fmt.Errorf("%w: it lists %.200q twice", ErrDamaged, file.Path)
		}
		if !workdir.IsData(file.Path) {
			return fmt.Errorf("%w: it lists %.200q, which is not the path of collected data: nothing is installed", ErrDamaged, file.Path)
		}
		key := blob{file.Size, file.SHA256}
		if _, known := l.sources[key]; known && l.head.isSet() {
			part.copies = append(part.copies, file)
			continue
		}
		l.sources[key] = ""
		l.expected[part.prefix+file.Path] = &announced{file, part}
	}
	return nil
}

// readJSON reads the next file, which must have that name, into value.
func (l *Reader) readJSON(name string, value any) error {
	header, err := l.tar.Next()
	if err != nil {
		return l.explain(err)
	}
	if header.Name != name || header.Typeflag != tar.TypeReg || header.Size > workdir.MaxText {
		return fmt.Errorf("%w: it holds %.100q where %s should be", l.invalid, header.Name, name)
	}
	text, err := io.ReadAll(l.content)
	if err != nil {
		return l.explain(err)
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return nil
}

// stageFiles stages all announced files, and compares each with its announcement. It reads the page, and
// adds the image, which are the last ones.
func (l *Reader) stageFiles() error {
	page, image := l.head.Page, l.head.Image
	for {
		header, err := l.tar.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return l.explain(err)
		}
		if page != nil && header.Name == PageName && len(l.expected) == 0 {
			if err := l.readExtra(header, page.Size, page.SHA256, nil); err != nil {
				return err
			}
			page = nil
			continue
		}
		if image != nil && header.Name == imageName && len(l.expected) == 0 {
			if err := l.readImage(header); err != nil {
				return err
			}
			image = nil
			continue
		}
		want, ok := l.expected[header.Name]
		if !ok || header.Typeflag != tar.TypeReg || header.Size != want.file.Size {
			return fmt.Errorf("%w: %.200q differs from its entry in the manifest", ErrDamaged, header.Name)
		}
		delete(l.expected, header.Name)
		if err := l.stageFile(want); err != nil {
			return err
		}
	}
	if image != nil {
		return fmt.Errorf("%w: %s is missing, or is not the last file", ErrDamaged, imageName)
	}
	if page != nil {
		return fmt.Errorf("%w: %s is missing, or is not behind the other files", ErrDamaged, PageName)
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
	part, file := want.part, want.file
	in, err := part.kept.Keep(file.Path, file.Size, l.content)
	if err != nil {
		return err
	}
	if part.stage == nil {
		sum := sha256.New()
		if _, err := io.Copy(sum, in); err != nil {
			return l.explain(err)
		}
		return compareSum(hex.EncodeToString(sum.Sum(nil)), file)
	}
	path := part.stage.Join(file.Path)
	have, err := part.stage.Copy(l.ctx, in, path)
	if err != nil {
		return l.explain(err)
	}
	l.sources[key] = path
	return compareSum(have.SHA256, file)
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
		for _, announced := range copies {
			if err := l.stageCopy(announced, l.sources[key], meter); err != nil {
				return l.explain(err)
			}
		}
	}
	return nil
}

func (l *Reader) stageCopy(announced *announced, source string, meter *archive.Meter) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	in, err := announced.part.kept.Keep(announced.file.Path, announced.file.Size, meter.Unpacked(from))
	if err != nil {
		return err
	}
	_, err = announced.part.stage.Copy(l.ctx, in, announced.part.stage.Join(announced.file.Path))
	return err
}

// readImage compares the image with its announcement and adds it.
func (l *Reader) readImage(header *tar.Header) error {
	want := l.head.Image
	return l.readExtra(header, want.Size, want.SHA256, func(content io.Reader) {
		if l.add != nil {
			if l.imageID, l.imageErr = l.add(l.ctx, *want, content); l.imageErr != nil {
				l.imageID = ""
			}
		}
	})
}

// readExtra compares the next file with its announcement in the head. use reads it; nil for a file that is
// left out.
func (l *Reader) readExtra(header *tar.Header, size int64, sum string, use func(io.Reader)) error {
	if header.Typeflag != tar.TypeReg || header.Size != size {
		return fmt.Errorf("%w: %s differs from its entry in %s", ErrDamaged, header.Name, headName)
	}
	content := &checkedReader{Reader: l.content, sum: sha256.New(), name: header.Name, want: sum}
	if use != nil {
		use(content)
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
	name string // of the file
	want string
	err  error
}

func (r *checkedReader) Read(data []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.Reader.Read(data)
	r.sum.Write(data[:n])
	if r.err = err; err == io.EOF && hex.EncodeToString(r.sum.Sum(nil)) != r.want {
		r.err = fmt.Errorf("%w: the sha256 of %s differs from the one in %s: copy the bundle again", ErrDamaged, r.name, headName)
	}
	return n, r.err
}

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
