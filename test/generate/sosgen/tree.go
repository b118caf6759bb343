package sosgen

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mholt/archives"
)

// File is a file of a collection, or a symbolic link if Link is set.
type File struct {
	Body []byte
	Link string
}

// Tree is a collection: its files by their path, separated by slashes.
type Tree map[string]File

func (t Tree) put(path string, body []byte)          { t[path] = File{Body: body} }
func (t Tree) putText(path, format string, a ...any) { t.put(path, fmt.Appendf(nil, format, a...)) }

// Under returns the tree below a folder. Links are not changed.
func (t Tree) Under(top string) Tree {
	out := Tree{}
	for name, f := range t {
		out[path.Join(top, name)] = f
	}
	return out
}

// With returns the tree with the files of another added.
func (t Tree) With(more Tree) Tree {
	out := maps.Clone(t)
	maps.Copy(out, more)
	return out
}

// Without returns the tree without paths that begin with one of the prefixes.
func (t Tree) Without(prefixes ...string) Tree {
	out := maps.Clone(t)
	maps.DeleteFunc(out, func(name string, _ File) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
	return out
}

// Write writes the tree into a folder.
func (t Tree) Write(dir string) error {
	for name, f := range t {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		var err error
		if f.Link != "" {
			err = os.Symlink(f.Link, file)
		} else {
			err = os.WriteFile(file, f.Body, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Tar returns the tree as a tar archive. As in archives of sos, version.txt is first.
func (t Tree) Tar() []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		if first := path.Base(a) == "version.txt"; first != (path.Base(b) == "version.txt") {
			return map[bool]int{true: -1, false: 1}[first]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		f := t[name]
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.Body)), Format: tar.FormatPAX}
		if f.Link != "" {
			h.Typeflag, h.Linkname, h.Size, h.Mode = tar.TypeSymlink, f.Link, 0, 0o777
		}
		must(w.WriteHeader(h))
		_, err := w.Write(f.Body)
		must(err)
	}
	must(w.Close())
	return out.Bytes()
}

// must panics on an error of a writer into memory, which only a bug here can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Packing is a compression of archives.
type Packing struct {
	Name, Ext string
	pack      func(plain []byte) ([]byte, error)
}

// Pack compresses an archive.
func (p Packing) Pack(plain []byte) ([]byte, error) {
	packed, err := p.pack(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return packed, nil
}

// Packings returns all compressions of sos 3.x to 4.12 and of must-gathers.
func Packings() []Packing {
	return []Packing{
		{"xz", ".tar.xz", with(archives.Xz{})},
		{"xz of many blocks", ".tar.xz", func(plain []byte) ([]byte, error) {
			return filter(plain, "xz", "-T2", "-1", "--block-size=300KiB", "-c")
		}},
		{"xz of many streams", ".tar.xz", inParts(with(archives.Xz{}))},
		{"gzip", ".tar.gz", with(archives.Gz{})},
		{"gzip of many members", ".tar.gz", inParts(with(archives.Gz{}))},
		{"bzip2", ".tar.bz2", with(archives.Bz2{})},
		{"zstd", ".tar.zst", with(archives.Zstd{})},
		{"plain", ".tar", func(plain []byte) ([]byte, error) { return plain, nil }},
	}
}

func with(how archives.Compressor) func([]byte) ([]byte, error) {
	return func(plain []byte) ([]byte, error) {
		var out bytes.Buffer
		w, err := how.OpenWriter(&out)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(plain); err != nil {
			return nil, err
		}
		err = w.Close() // it writes the end
		return out.Bytes(), err
	}
}

// inParts compresses each third by itself and concatenates the results.
func inParts(pack func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(plain []byte) ([]byte, error) {
		var out []byte
		for part := range slices.Chunk(plain, len(plain)/3+1) {
			packed, err := pack(part)
			if err != nil {
				return nil, err
			}
			out = append(out, packed...)
		}
		return out, nil
	}
}

func filter(in []byte, argv ...string) ([]byte, error) {
	c := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	c.Stdin = bytes.NewReader(in)
	return c.Output()
}

// Gzip compresses one file.
func Gzip(plain []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(plain)
	must(err)
	must(w.Close())
	return out.Bytes()
}

// WriteArchive writes a report as an archive into dir, with a .sha256 file as sos
// writes it, and returns the path of the archive.
func WriteArchive(dir, name string, tree Tree, p Packing) (string, error) {
	packed, err := p.Pack(tree.Under(name).Tar())
	if err != nil {
		return "", err
	}
	return writeSummed(filepath.Join(dir, name+p.Ext), packed)
}

func writeSummed(file string, content []byte) (string, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return "", err
	}
	return file, os.WriteFile(file+".sha256", fmt.Appendf(nil, "%x\n", sha256.Sum256(content)), 0o600)
}
