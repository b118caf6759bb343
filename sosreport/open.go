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
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	c := &contents{spool: spool, files: map[string]spooled{}, links: map[string]string{}}
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
	if len(c.files) == 0 {
		return nil, fmt.Errorf("%s %w (no sos_commands/openvswitch, no databases of OVS or OVN)", source, ErrEmpty)
	}
	r := &Report{BytesRead: read}
	if err := c.index(r); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return r, nil
}

// counter counts what goes through a reader.
type counter struct {
	io.Reader
	n        int64
	total    int64
	progress Progress
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
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
	stream, err := decompress(counted)
	if err != nil {
		return 0, fmt.Errorf("%s is %w: %w", source, ErrNotArchive, err)
	}
	defer stream.Close()
	entries := 0
	err = archives.Tar{}.Extract(ctx, stream, func(_ context.Context, e archives.FileInfo) error {
		entries++
		return c.takeEntry(e)
	})
	switch {
	case err == nil && entries > 0:
		return counted.n, nil
	case err == nil, errors.Is(err, tar.ErrHeader) && entries == 0:
		return 0, fmt.Errorf("%s is %w: no tar archive in it", source, ErrNotArchive)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, fmt.Errorf("%s is cut off after %d of its files: copy it again and compare its sha256", source, entries)
	default:
		return 0, fmt.Errorf("%s can't be read beyond its file %d: %w: copy it again and compare its sha256", source, entries, err)
	}
}

// decompress looks at the first bytes; a name says nothing for sure.
func decompress(r io.Reader) (io.ReadCloser, error) {
	start := make([]byte, 512)
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
	case len(start) == 512 && bytes.HasPrefix(start[257:], []byte("ustar")):
		return io.NopCloser(whole), nil
	default:
		return nil, errors.New("its first bytes are of no tar, xz, gzip, bzip2 or zstd file")
	}
}

func (c *contents) takeEntry(e archives.FileInfo) error {
	header, ok := e.Header.(*tar.Header)
	if !ok {
		return fmt.Errorf("%q: no tar header", e.NameInArchive)
	}
	rel, ok := c.relative(header.Name)
	if !ok {
		return nil
	}
	switch header.Typeflag {
	case tar.TypeReg:
		in, err := e.Open()
		if err != nil {
			return err
		}
		return c.keep(rel, in)
	case tar.TypeSymlink:
		c.links[rel] = header.Linkname
	case tar.TypeLink:
		if target, ok := c.relative(header.Linkname); ok {
			c.links[rel] = "/" + target
		}
	}
	return nil
}

// readDirectory takes the same files from an extracted report. os.Root keeps
// every access inside, whatever links the tree holds.
func (c *contents) readDirectory(ctx context.Context, source string) error {
	root, err := os.OpenRoot(source)
	if err != nil {
		return err
	}
	defer root.Close()
	c.top = filepath.Base(filepath.Clean(source))
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
	rel, ok := c.relative(name)
	if !ok {
		return nil
	}
	if e.Type() == fs.ModeSymlink {
		target, err := root.Readlink(name)
		if err == nil {
			c.links[rel] = target
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
	return c.keep(rel, f)
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

// relative turns a name in the source into one below the report's top folder,
// if it is wanted. Names that point out of the tree are never wanted.
func (c *contents) relative(name string) (string, bool) {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	if !filepath.IsLocal(name) {
		return "", false
	}
	if wanted(name) {
		return name, true
	}
	top, below, _ := strings.Cut(name, "/")
	if wanted(below) {
		if c.top == "" {
			c.top = top
		}
		return below, true
	}
	return "", false
}
