package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
)

// member is an entry of a layer.
type member struct {
	tar.Header
	text string
}

func file(name, text string) member {
	return member{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}, text}
}

func folder(name string) member {
	return member{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}}
}

func link(name, to string) member {
	return member{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}}
}

func hardLink(name, to string) member {
	return member{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}}
}

func special(kind byte, name string) member {
	return member{Header: tar.Header{Typeflag: kind, Name: name, Mode: 0o666, Devmajor: 1, Devminor: 3}}
}

func with(m member, mode int64) member {
	m.Mode = mode
	return m
}

type layerOf []member

func (l layerOf) tar(t testing.TB) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range l {
		if err := w.WriteHeader(&m.Header); err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// write writes layers into dir.
func write(t *testing.T, dir string, layers ...layerOf) error {
	t.Helper()
	w, err := newWriter(dir, archive.New(limits(), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, l := range layers {
		if err := w.writeLayer(t.Context(), l.tar(t)); err != nil {
			return err
		}
	}
	return nil
}

// wholeTree returns what is below a folder: the content of files, and the targets of links.
func wholeTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case e.IsDir():
			found[name+"/"] = ""
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			found[name] = "-> " + to
			return err
		case e.Type().IsRegular():
			text, err := os.ReadFile(path)
			found[name] = string(text)
			return err
		default:
			found[name] = e.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLayersReplaceAndRemove(t *testing.T) {
	for name, c := range map[string]struct {
		layers []layerOf
		want   map[string]string
	}{
		"names with and without a slash": {[]layerOf{{folder("./"), file("./a", "1"), file("/b/c", "2"), file("d", "3")}},
			map[string]string{"a": "1", "b/": "", "b/c": "2", "d": "3"}},
		"a later layer replaces a file": {[]layerOf{{file("a", "old"), file("b", "stays")}, {file("a", "new")}},
			map[string]string{"a": "new", "b": "stays"}},
		"a whiteout removes a file": {[]layerOf{{file("d/a", "1"), file("d/b", "2")}, {file("d/.wh.a", "")}},
			map[string]string{"d/": "", "d/b": "2"}},
		"a whiteout removes a folder": {[]layerOf{{file("d/e/a", "1"), file("d/b", "2")}, {file("d/.wh.e", "")}},
			map[string]string{"d/": "", "d/b": "2"}},
		"a whiteout of nothing": {[]layerOf{{file("a", "1")}, {file(".wh.b", "")}}, map[string]string{"a": "1"}},
		"a whiteout spares its own layer": {[]layerOf{{file("d/a", "old"), file("d/x/y", "old")},
			{file("d/a", "new"), file("d/x/z", "new"), file("d/.wh.a", ""), file("d/.wh.x", "")}},
			map[string]string{"d/": "", "d/a": "new", "d/x/": "", "d/x/z": "new"}},
		"an opaque folder": {[]layerOf{{file("d/a", "1"), file("d/e/b", "2"), file("x", "3")},
			{folder("d"), file("d/.wh..wh..opq", ""), file("d/c", "4")}}, map[string]string{"d/": "", "d/c": "4", "x": "3"}},
		"an opaque folder, late": {[]layerOf{{file("d/a", "1"), file("d/e/b", "2")},
			{file("d/c", "4"), file("d/e/f", "5"), file("d/.wh..wh..opq", "")}},
			map[string]string{"d/": "", "d/c": "4", "d/e/": "", "d/e/f": "5"}},
		"an opaque root": {[]layerOf{{file("d/a", "1")}, {file(".wh..wh..opq", ""), file("b", "2")}},
			map[string]string{"b": "2"}},
		"metadata of aufs": {[]layerOf{{file("a", "1"), file(".wh..wh.aufs", ""), file(".wh..wh.plnk/1", "")}},
			map[string]string{"a": "1", ".wh..wh.plnk/": "", ".wh..wh.plnk/1": ""}},
		"a file replaces a folder": {[]layerOf{{file("d/a", "1")}, {file("d", "2")}}, map[string]string{"d": "2"}},
		"a folder replaces a file": {[]layerOf{{file("d", "1")}, {folder("d"), file("d/a", "2")}},
			map[string]string{"d/": "", "d/a": "2"}},
		"a folder replaces a link": {[]layerOf{{folder("e"), file("e/x", "1"), link("d", "e")},
			{folder("d"), file("d/a", "2")}}, map[string]string{"d/": "", "d/a": "2", "e/": "", "e/x": "1"}},
		"a link replaces a folder": {[]layerOf{{file("d/a", "1")}, {link("d", "e")}}, map[string]string{"d": "-> e"}},
		"a folder stays":           {[]layerOf{{file("d/a", "1")}, {folder("d")}}, map[string]string{"d/": "", "d/a": "1"}},
		"through a relative link": {[]layerOf{{folder("usr/lib"), link("lib", "usr/lib")}, {file("lib/a", "1")}},
			map[string]string{"usr/": "", "usr/lib/": "", "lib": "-> usr/lib", "usr/lib/a": "1"}},
		"through an absolute link": {[]layerOf{{link("lib", "/usr/lib")}, {file("lib/a", "1")}},
			map[string]string{"usr/": "", "usr/lib/": "", "lib": "-> /usr/lib", "usr/lib/a": "1"}},
		"a hard link": {[]layerOf{{file("a/b", "1"), hardLink("c", "a/b"), hardLink("d", "/a/b")}},
			map[string]string{"a/": "", "a/b": "1", "c": "1", "d": "1"}},
		"one name of a linked file": {[]layerOf{{file("a", "old"), hardLink("b", "a")}, {file("a", "new")}},
			map[string]string{"a": "new", "b": "old"}},
		"a hard link to itself": {[]layerOf{{file("a", "1"), hardLink("a", "a")}}, map[string]string{"a": "1"}},
		"special files are not made": {[]layerOf{{file("dev/x", "below"), special(tar.TypeChar, "dev/null"),
			special(tar.TypeBlock, "dev/sda"), special(tar.TypeFifo, "run/f")}, {special(tar.TypeChar, "dev/x")}},
			map[string]string{"dev/": "", "run/": ""}},
	} {
		dir := t.TempDir()
		if err := write(t, dir, c.layers...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expect.Equal(t, wholeTree(t, dir), c.want, name)
	}
}

// TestModes checks that each file belongs to the caller, who can read and remove it, and
// that nothing is setuid or writable for others.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	su := with(file("su", "x"), 0o6755)
	su.Uid, su.Gid, su.ModTime = 12, 34, when
	err := write(t, dir, layerOf{su, with(file("secret", "x"), 0), with(file("open", "x"), 0o666),
		with(folder("closed"), 0o1777), with(file("closed/a", "x"), 0o4711), with(folder("closed"), 0o2000),
		file("closed/b", "x")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"su": 0o755, "secret": 0o400, "open": 0o644,
		"closed": fs.ModeDir | 0o700, "closed/a": 0o711} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has the mode %v, want %v", name, info.Mode(), want)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() {
			t.Errorf("%s belongs to %d", name, st.Uid)
		}
		if name == "su" && !info.ModTime().Equal(when) {
			t.Errorf("its time is %v", info.ModTime())
		}
	}
}

// TestHostileLayers checks that hostile layers change nothing outside of their folder,
// in which they may be refused or harmless.
func TestHostileLayers(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, up := strings.TrimPrefix(outside, "/"), strings.Repeat("../", 30)
	refused := map[string][]layerOf{
		"a name with ..":              {{file("../outside", "x")}},
		"a name with .. inside":       {{file("a/../../outside", "x")}},
		"a name with many ..":         {{file(up+out, "x")}},
		"an absolute name with ..":    {{file("/../outside", "x")}},
		"a folder named ..":           {{folder("..")}},
		"a link named ..":             {{link("../outside", "/etc/passwd")}},
		"a hard link to ..":           {{hardLink("a", "../outside")}},
		"a hard link to many ..":      {{hardLink("a", up+out)}},
		"a hard link to an absolute":  {{hardLink("a", outside)}},
		"a hard link through a link":  {{link("l", up), hardLink("a", "l/"+out)}},
		"a hard link to nothing":      {{hardLink("a", "b")}},
		"a hard link to its folder":   {{file("a/b", "x"), hardLink("a", "a/b")}},
		"a hard link to a folder":     {{folder("a"), hardLink("b", "a")}},
		"a hard link without a name":  {{hardLink("a", "")}},
		"a whiteout of the folder":    {{file("d/.wh..", "")}},
		"a whiteout of what is above": {{file("d/.wh...", "")}},
		"a whiteout of ..":            {{file("../.wh.outside", "")}},
		"a root that is a file":       {{file(".", "x")}},
		"a root that is a link":       {{link("./", top)}},
		"a file below a file":         {{file("a", "x"), file("a/b", "x")}},
		"links in a circle":           {{link("a", "b"), link("b", "a"), file("a/c", "x")}},
		"a link to itself":            {{link("a", "a"), file("a/c", "x")}},
		"a link without a target":     {{link("a", "")}},
		"a long target":               {{link("a", strings.Repeat("x/", 4000))}},
		"a long name":                 {{file(strings.Repeat("x/", 4000)+"x", "x")}},
		"a deep name":                 {{file(strings.Repeat("x/", 300)+"x", "x")}},
		"a deep tree of links": {{link("l", strings.Repeat("x/", 200)),
			link(strings.Repeat("x/", 200)+"l", strings.Repeat("y/", 200)), file("l/l/a", "x")}},
		"an unknown type": {{special('Z', "a")}},
	}
	harmless := map[string][]layerOf{
		"a file through an absolute link": {{link("d", top)}, {file("d/outside", "x")}},
		"a file through a link with ..":   {{link("d", up+top)}, {file("d/outside", "x")}},
		"a file at a link":                {{link("a", outside)}, {file("a", "x")}},
		"a file at a link of its layer":   {{link("a", outside), file("a", "x")}},
		"a folder at a link":              {{link("d", top)}, {with(folder("d"), 0o777)}},
		"a whiteout through a link":       {{link("d", top)}, {file("d/.wh.outside", "")}},
		"an opaque folder at a link":      {{link("d", top)}, {file("d/.wh..wh..opq", "")}},
		"a device":                        {{special(tar.TypeChar, "null")}},
		"a link chain":                    {{link("a", "b"), link("b", up+"c"), link("c", top), file("a/outside", "x")}},
	}
	before := wholeTree(t, top)
	inside := filepath.Join(top, "root")
	for _, mustFail := range []bool{true, false} {
		all := harmless
		if mustFail {
			all = refused
		}
		for name, layers := range all {
			if err := os.Mkdir(inside, 0o700); err != nil {
				t.Fatal(err)
			}
			err := write(t, inside, layers...)
			if mustFail != (err != nil) {
				t.Errorf("%s: %v", name, err)
			}
			if err := os.RemoveAll(inside); err != nil {
				t.Errorf("%s: what is left cannot be removed: %v", name, err)
			}
			if after := wholeTree(t, top); !maps.Equal(before, after) {
				t.Fatalf("%s: outside of its folder, %q became %q", name, before, after)
			}
		}
	}
}

// TestBombsAreBounded checks that an image can't fill the disk.
func TestBombsAreBounded(t *testing.T) {
	const most = 16 << 20
	for name, layer := range map[string]io.Reader{
		"a large file":  zeros(t, 1<<40),
		"a larger size": zeros(t, 1<<62),
		"many entries":  many(t, 2000),
		"a sparse file": sparseFile(t, 1<<62),
		"endless zeros": io.MultiReader(layerOf{file("a", "x")}.tar(t), zeroReader{}),
	} {
		dir := t.TempDir()
		w, err := newWriter(dir, archive.New(archive.Limits{Bytes: most, Entries: 1000}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.writeLayer(t.Context(), layer); !errors.Is(err, archive.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		w.close()
		var used unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, "hole"), &used); err == nil && used.Blocks*512 > most+1<<20 {
			t.Errorf("%s: %d bytes were written", name, used.Blocks*512)
		}
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// zeros returns a layer with one large file.
func zeros(t *testing.T, size int64) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "hole", Size: size, Mode: 0o644,
		Format: tar.FormatGNU}); err != nil {
		t.Fatal(err)
	}
	return io.MultiReader(&b, io.LimitReader(zeroReader{}, size))
}

// sparseFile returns a layer with a file that is a hole, in the PAX format.
func sparseFile(t *testing.T, size int64) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	records := ""
	for key, value := range map[string]string{"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "hole",
		"GNU.sparse.size": fmt.Sprint(size), "GNU.sparse.numblocks": "0", "GNU.sparse.map": ""} {
		record := " " + key + "=" + value + "\n"
		n := len(record) + 2
		records += fmt.Sprint(n) + record
	}
	// package tar writes no sparse files, so the PAX header is written as a file and its
	// type is changed.
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "pax", Size: int64(len(records)), Mode: 0o644,
		Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, records)
	w.Flush()
	retype(b.Bytes()[:512], tar.TypeXHeader)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "y", Mode: 0o644,
		Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return &b
}

// retype changes the type in a tar header, and its sum.
func retype(header []byte, kind byte) {
	header[156] = kind
	copy(header[148:156], "        ")
	sum := 0
	for _, c := range header {
		sum += int(c)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

func many(t *testing.T, n int) io.Reader {
	var l layerOf
	for i := range n {
		l = append(l, link(fmt.Sprint(i), "x"))
	}
	return l.tar(t)
}

func TestInterruptEndsALayer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := newWriter(t.TempDir(), archive.New(archive.Limits{Bytes: 1 << 62, Entries: 10}, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	r, out := io.Pipe()
	go func() {
		io.CopyN(out, zeros(t, 1<<40), 1<<20)
		cancel()
		io.Copy(out, zeroReader{})
	}()
	if err := w.writeLayer(ctx, r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.Close()
}

// TestCopyOfAFolder checks that a copy has the same files, in its own folder only, and
// that its digest depends on them alone.
func TestCopyOfAFolder(t *testing.T) {
	top := t.TempDir()
	source := filepath.Join(top, "source")
	outside := filepath.Join(top, "outside")
	os.WriteFile(outside, []byte("canary"), 0o600)
	if err := write(t, mkdir(t, source), layerOf{file("usr/bin/a", "1"), link("bin", "usr/bin"), link("out", outside),
		link("up", "../outside"), hardLink("usr/b", "usr/bin/a")}); err != nil {
		t.Fatal(err)
	}
	os.Chmod(filepath.Join(source, "usr/bin/a"), fs.ModeSetuid|0o755)
	if err := unix.Mkfifo(filepath.Join(source, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := wholeTree(t, source)
	delete(want, "fifo")
	digest := ""
	// The second copy is below its source, the third is of a changed one.
	for i, target := range []string{filepath.Join(top, "one"), filepath.Join(source, "usr/two"),
		filepath.Join(top, "three")} {
		if i == 2 {
			os.RemoveAll(filepath.Join(source, "usr/two"))
			os.Chmod(filepath.Join(source, "usr/b"), 0o644)
		}
		copied := copyOf(t, source, mkdir(t, target))
		expect.Equal(t, wholeTree(t, target), want, target)
		if info, err := os.Stat(filepath.Join(target, "usr/bin/a")); err != nil || info.Mode()&fs.ModeSetuid != 0 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if same := copied == digest; i > 0 && same != (i == 1) {
			t.Errorf("%s: the digest is %s, after %s", target, copied, digest)
		}
		digest = copied
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// copyOf copies a folder, and returns the digest.
func copyOf(t *testing.T, source, target string) string {
	t.Helper()
	w, err := newWriter(target, archive.New(limits(), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	digest, unreadable, err := w.copyFolder(t.Context(), source, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, unreadable, nil, "unreadable")
	return digest
}
