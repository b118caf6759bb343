package sosreport

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mholt/archives"

	"ovs-offline/internal/limit"
)

// ErrNotArchive is wrapped when a file is neither a tar nor a compressed tar.
var ErrNotArchive = errors.New("not a sos report")

// ErrEmpty is wrapped when a source holds nothing of a sos report.
var ErrEmpty = errors.New("holds nothing of a sos report")

// Progress is told how much of the source was read, in bytes, of how many;
// total is 0 where it is not known.
type Progress func(read, total int64)

// Open reads the report at source and keeps what it knows a meaning for in
// spool, a folder of the caller's. An archive is read once from its beginning
// to its end. The error wraps ErrNotArchive or ErrEmpty where that is the
// reason; a truncated archive is an error, since nobody can tell what it lacks.
func Open(ctx context.Context, source, spool string, progress Progress) (*Report, error) {
	return OpenWithin(ctx, source, spool, limit.Default(), progress)
}

// OpenWithin is Open with other limits. The error wraps limit.ErrLimit where
// the source holds more.
func OpenWithin(ctx context.Context, source, spool string, limits limit.Limits, progress Progress) (*Report, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	c := &contents{spool: spool, trees: map[string]*tree{}, meter: limit.New(limits, nil), limits: limits}
	var read int64
	if info.IsDir() {
		err = c.readDirectory(ctx, source)
		read = c.bytes
	} else {
		read, err = c.readArchive(ctx, source, info.Size(), progress)
	}
	if err != nil {
		return nil, err
	}
	several := c.choose()
	if len(several) > 1 {
		return nil, fmt.Errorf("%s holds several reports (%s): give one of them", source, strings.Join(several, ", "))
	}
	if c.tree == nil || len(c.names("")) == 0 {
		return nil, fmt.Errorf("%s %w (no sos_commands/openvswitch, no databases of OVS or OVN)", source, ErrEmpty)
	}
	r := &Report{BytesRead: read}
	if err := c.index(r); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return r, nil
}

// counter counts what goes through a reader, and knows when it came to its end.
type counter struct {
	io.Reader
	n        int64
	ended    bool
	total    int64
	progress Progress
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.ended = c.ended || errors.Is(err, io.EOF)
	if c.progress != nil {
		c.progress(c.n, c.total)
	}
	return n, err
}

func (c *contents) readArchive(ctx context.Context, source string, size int64, progress Progress) (int64, error) {
	f, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	counted := &counter{Reader: f, total: size, progress: progress}
	packed, err := decompress(counted)
	if err != nil {
		return 0, fmt.Errorf("%s is %w: %w", source, ErrNotArchive, err)
	}
	defer packed.Close()
	c.meter = limit.New(c.limits, func() int64 { return counted.n })
	stream := &counter{Reader: c.meter.Unpacked(packed)}
	entries, err := c.readTar(ctx, stream)
	switch {
	case err == nil && entries > 0:
		return counted.n, nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0, err
	case errors.Is(err, limit.ErrLimit):
		return 0, fmt.Errorf("%s: %w", source, err)
	case entries == 0 && (err == nil || stream.ended && stream.n < tarBlock || errors.Is(err, tar.ErrHeader)):
		return 0, fmt.Errorf("%s is %w: no tar archive in it", source, ErrNotArchive)
	case errors.Is(err, io.ErrUnexpectedEOF), counted.ended && strings.Contains(err.Error(), "truncated"): // xz has words of its own for it
		return 0, fmt.Errorf("%s is cut off after %d of its files: copy it again and compare its sha256", source, entries)
	default:
		return 0, fmt.Errorf("%s can't be read beyond its file %d: %w: copy it again and compare its sha256", source, entries, err)
	}
}

// tarBlock is the unit of a tar archive; a block of zeros ends it.
const tarBlock = 512

// readTar takes the entries of an archive, or of several in a row. It reads on
// to the end of the stream: only there are the sums that tell damage.
func (c *contents) readTar(ctx context.Context, stream *counter) (entries int, err error) {
	for next := io.Reader(stream); next != nil && err == nil; {
		var last int64 // where the last entry ended
		err = archives.Tar{}.Extract(ctx, next, func(_ context.Context, e archives.FileInfo) error {
			entries++
			if err := c.meter.Entry(); err != nil {
				return err
			}
			err := c.takeEntry(e)
			last = stream.n
			return err
		})
		if err == nil && stream.n-last < tarBlock {
			return entries, io.ErrUnexpectedEOF // the tar package takes a cut between two entries for the end
		}
		if err == nil {
			next, err = nextArchive(stream)
		}
	}
	return entries, err
}

// padding is how much may follow an archive; tar pads to 10 KiB, or as told.
const padding = 64 << 20

// nextArchive reads on behind the end of an archive, to another one (reports
// are concatenated at times) or to the end of the stream, where it returns nil.
func nextArchive(stream io.Reader) (io.Reader, error) {
	block := make([]byte, tarBlock)
	for n := 0; ; n += tarBlock {
		if n > padding {
			return nil, fmt.Errorf("%w: over %d bytes follow the archive that are none", limit.ErrLimit, padding)
		}
		_, err := io.ReadFull(stream, block)
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			// The end of the padding, or of a stream that was cut: reading on tells.
			if _, err := stream.Read(block[:1]); errors.Is(err, io.EOF) {
				return nil, nil
			}
			return nil, err
		case err != nil:
			return nil, err
		case isTar(block):
			return io.MultiReader(bytes.NewReader(block), stream), nil
		}
	}
}

func isTar(start []byte) bool {
	return len(start) == tarBlock && bytes.HasPrefix(start[257:], []byte("ustar"))
}

// decompress looks at the first bytes; a name says nothing for sure.
func decompress(r io.Reader) (io.ReadCloser, error) {
	start := make([]byte, tarBlock)
	n, err := io.ReadFull(r, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("it is empty")
	}
	start = start[:n]
	whole := io.MultiReader(bytes.NewReader(start), r)
	switch {
	case bytes.HasPrefix(start, []byte("\xfd7zXZ\x00")):
		return archives.Xz{}.OpenReader(whole)
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return archives.Gz{}.OpenReader(whole)
	case bytes.HasPrefix(start, []byte("BZh")):
		return archives.Bz2{}.OpenReader(whole)
	case bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		return archives.Zstd{}.OpenReader(whole)
	case isTar(start):
		return io.NopCloser(whole), nil
	default:
		return nil, errors.New("its first bytes are of no tar, xz, gzip, bzip2 or zstd file")
	}
}

// takeEntry keeps an entry that is wanted, and reads past any other.
func (c *contents) takeEntry(e archives.FileInfo) error {
	header, ok := e.Header.(*tar.Header)
	if !ok {
		return fmt.Errorf("%q: no tar header", e.NameInArchive)
	}
	in, err := e.Open()
	if err != nil {
		return err
	}
	tree, rel, ok := c.place(header.Name)
	switch {
	case ok && header.Typeflag == tar.TypeReg:
		return c.keep(tree, rel, header.Size, in)
	case ok && header.Typeflag == tar.TypeSymlink:
		tree.keepLink(rel, header.Linkname)
	case ok && header.Typeflag == tar.TypeLink:
		if other, target, ok := c.place(header.Linkname); ok && other == tree && target != rel {
			tree.keepLink(rel, "/"+target)
		}
	case !isSparse(header): // a hole of exabytes is read past by who knows that it is one
		_, err = io.Copy(io.Discard, in)
	}
	return err
}

// isSparse knows the forms of GNU tar: one of its own, and those of PAX.
func isSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}

// readDirectory takes the same files from an extracted report. os.Root keeps
// every access inside, whatever links the tree holds.
func (c *contents) readDirectory(ctx context.Context, source string) error {
	root, err := os.OpenRoot(source)
	if err != nil {
		return err
	}
	defer root.Close()
	abs, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	c.name = filepath.Base(abs)
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			if name == "." {
				return err
			}
			return nil // an unreadable corner is what the report lacks, not its end
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if e.IsDir() {
			if name != "." && !mayHold(name) {
				return fs.SkipDir
			}
			return nil
		}
		return c.takeFile(root, name, e)
	})
}

func (c *contents) takeFile(root *os.Root, name string, e fs.DirEntry) error {
	if err := c.meter.Entry(); err != nil {
		return err
	}
	tree, rel, ok := c.place(name)
	if !ok {
		return nil
	}
	if e.Type() == fs.ModeSymlink {
		target, err := root.Readlink(name)
		if err == nil {
			tree.keepLink(rel, target)
		}
		return nil
	}
	if !e.Type().IsRegular() {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	return c.keep(tree, rel, 0, f)
}

// places are the files and folders of a report that have a meaning here,
// relative to its top.
func places() []string {
	return []string{
		"version.txt", "hostname", "etc/hostname", "installed-rpms", "sos_reports/manifest.json",
		"sos_commands/host/hostname", "sos_commands/rpm/package-data", "sos_commands/dpkg/dpkg_-l",
		"sos_commands/openvswitch/", "sos_commands/ovn_host/", "sos_commands/ovn_central/",
		"sos_strings/openvswitch/", "sos_strings/ovn_host/", "sos_strings/ovn_central/",
	}
}

// databaseFolders is where databases stand, by deployment; sos puts host/
// before them for some that it cut in a container with the host's root mounted.
func databaseFolders() []string {
	return []string{
		"etc/openvswitch/", "var/lib/openvswitch/", "usr/local/etc/openvswitch/", "etc/ovn/",
		"var/lib/ovn/", "var/lib/ovn-ic/", "var/snap/microovn/common/data/",
	}
}

func wanted(rel string) bool {
	for _, p := range places() {
		if rel == p || strings.HasSuffix(p, "/") && strings.HasPrefix(rel, p) {
			return true
		}
	}
	return isDatabasePlace(rel)
}

func isDatabasePlace(rel string) bool {
	rel = strings.TrimPrefix(rel, "host/")
	for _, folder := range databaseFolders() {
		if strings.HasPrefix(rel, folder) && strings.HasSuffix(rel, ".db") {
			return true
		}
	}
	return false
}

// mayHold tells whether a folder can hold something wanted, at the top of the
// tree or one level down.
func mayHold(dir string) bool {
	_, below, _ := strings.Cut(dir, "/")
	for _, d := range []string{dir + "/", below + "/"} {
		d = strings.TrimPrefix(d, "host/")
		if d == "/" || d == "" {
			return true
		}
		for _, p := range append(places(), databaseFolders()...) {
			if strings.HasPrefix(p, d) || strings.HasPrefix(d, p) {
				return true
			}
		}
	}
	return false
}

// place turns a name in the source into one below a report's top folder, if it
// is wanted. Names that point out of the tree are never wanted.
func (c *contents) place(name string) (*tree, string, bool) {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	if !filepath.IsLocal(name) {
		return nil, "", false
	}
	if wanted(name) {
		return c.treeOf(""), name, true
	}
	top, below, _ := strings.Cut(name, "/")
	if wanted(below) {
		return c.treeOf(top), below, true
	}
	return nil, "", false
}
