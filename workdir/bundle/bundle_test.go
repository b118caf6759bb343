package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

func lock(t *testing.T) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	return wd
}

// filled returns a workdir with a collection and a file that was added by hand.
func filled(t *testing.T) *workdir.Dir {
	t.Helper()
	wd := lock(t)
	stage, err := wd.Stage()
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Replace(workdir.OVS, false); err != nil {
		t.Fatal(err)
	}
	f, err := stage.Copy(context.Background(), strings.NewReader("flow\n"), stage.DumpFile("br-int", workdir.Flows))
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Install(workdir.Collection{Kind: workdir.OVS, Host: "node1", Files: []workdir.File{f}}); err != nil {
		t.Fatal(err)
	}
	files.Write(t, wd.DumpFile("br-ex", workdir.Flows), "by hand\n")
	return wd
}

// content returns every file below a workdir, except for its lock, which holds a pid.
func content(t *testing.T, wd *workdir.Dir) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(wd.Path(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ".lock" {
			return err
		}
		raw, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, wd.Path())] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t *testing.T, a, b map[string]string) {
	t.Helper()
	for name, text := range a {
		expect.Equal(t, b[name], text, name)
	}
	if len(a) != len(b) {
		t.Errorf("%d files, not %d", len(b), len(a))
	}
}

func save(t *testing.T, wd *workdir.Dir) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := Save(context.Background(), wd, "test", Extras{}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	wd, other := filled(t), lock(t)
	first := save(t, wd)
	if _, err := load(context.Background(), other, bytes.NewReader(first), archive.Limits{}, nil); err != nil {
		t.Fatal(err)
	}
	same(t, content(t, wd), content(t, other))
	if !bytes.Equal(first, save(t, other)) {
		t.Error("the loaded workdir is saved with other bytes")
	}
}

func TestChangedFilesAreRemarked(t *testing.T) {
	wd, other := filled(t), lock(t)
	files.Write(t, wd.DumpFile("br-int", workdir.Flows), "another flow\n")
	if err := os.Symlink("/etc/passwd", wd.DumpFile("br-x", workdir.Flows)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	remarks, err := Save(context.Background(), wd, "test", Extras{}, &b)
	if err != nil || len(remarks) != 2 || !strings.Contains(remarks[0], "br-x.flows.dump is not a regular file") ||
		!strings.Contains(remarks[1], "br-int.flows.dump: changed by hand") {
		t.Errorf("got %q, %v, want a remark about each of the two dumps", remarks, err)
	}
	loaded, err := load(context.Background(), other, &b, archive.Limits{}, nil)
	if err != nil || len(loaded.Collections) != 1 || len(loaded.Collections[0].Files[0].Remarks) != 1 {
		t.Errorf("got %+v, %v, want one collection whose first file has a remark", loaded, err)
	}
	if _, err := os.Lstat(other.DumpFile("br-x", workdir.Flows)); err == nil {
		t.Error("the bundle holds a link")
	}
}

func TestSaveRefusesEmptyWorkdir(t *testing.T) {
	if _, err := Save(context.Background(), lock(t), "test", Extras{}, &bytes.Buffer{}); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

// image returns an image to save, whose archive is text.
func image(text string) *ImageSource {
	return &ImageSource{Image: Image{Name: "ovs-3.5.0", OVS: "3.5.0"}, Write: func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}}
}

// adding returns an AddImage that reads n bytes of an image, or all for -1, and returns err.
func adding(n int64, err error, got *string) AddImage {
	return func(_ context.Context, _ Image, archive io.Reader) (string, error) {
		if n >= 0 {
			archive = io.LimitReader(archive, n)
		}
		text, readErr := io.ReadAll(archive)
		*got = string(text)
		return "sha256:1234", cmp.Or(readErr, err)
	}
}

// TestImageIsHandedOver checks that the image is in the bundle once, that it is passed
// on only if it is wanted, and that one that cannot be added does not cost the data.
func TestImageIsHandedOver(t *testing.T) {
	wd := filled(t)
	var b bytes.Buffer
	if _, err := Save(t.Context(), wd, "test", Extras{Image: image("the archive")}, &b); err != nil {
		t.Fatal(err)
	}
	var got string
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		add     AddImage
		got, id string
		err     error
	}{
		"not wanted":         {nil, "", "", nil},
		"added":              {adding(-1, nil, &got), "the archive", "sha256:1234", nil},
		"refused early":      {adding(3, refused, &got), "the", "", refused},
		"refused at the end": {adding(-1, refused, &got), "the archive", "", refused},
	} {
		t.Run(name, func(t *testing.T) {
			other := lock(t)
			got = ""
			loaded, err := load(t.Context(), other, bytes.NewReader(b.Bytes()), archive.Limits{}, c.add)
			if err != nil || got != c.got || !errors.Is(loaded.ImageError, c.err) || loaded.Image == nil ||
				loaded.Image.OVS != "3.5.0" || loaded.Image.Size != 11 {
				t.Fatalf("got %q, %+v, %v", got, loaded, err)
			}
			m, err := other.Manifest()
			if err != nil || len(m.Collections) != 1 || m.Collections[0].LoadedImage != c.id {
				t.Errorf("got %+v, %v, want one collection with the image %q", m, err, c.id)
			}
			if !bytes.Equal(save(t, wd), save(t, other)) {
				t.Error("without an image, the loaded workdir is saved with other bytes")
			}
		})
	}
}

func TestFailedImageFailsTheSave(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	failed := errors.New("the engine has ended")
	source := image("")
	source.Write = func(context.Context, io.Writer) error { return failed }
	if _, err := Save(t.Context(), filled(t), "test", Extras{Image: source}, &bytes.Buffer{}); !errors.Is(err, failed) {
		t.Error(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// entry is one file of a bundle for a test.
type entry struct {
	header tar.Header
	text   string
}

func plain(name, text string) entry {
	return entry{tar.Header{Name: name, Size: int64(len(text)), Typeflag: tar.TypeReg, Mode: 0o600}, text}
}

func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zip, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zip)
	for _, e := range entries {
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func head(files ...workdir.File) entry {
	raw, _ := json.Marshal(Head{Format: Format, Workdir: workdir.FormatVersion, ByHand: files})
	return plain(headName, string(raw))
}

// headWithImage returns the head of a bundle with an image.
func headWithImage(text string, size int64) entry {
	raw, _ := json.Marshal(Head{Format: FormatWithImage, Workdir: workdir.FormatVersion,
		Image: &Image{Size: size, SHA256: file("", text).SHA256}})
	return plain(headName, string(raw))
}

func file(path, text string) workdir.File {
	sum := sha256.Sum256([]byte(text))
	return workdir.File{Path: path, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}
}

// TestHostileBundles checks that each hostile bundle is refused, that the workdir is
// unchanged, and that no file appears outside of it.
func TestHostileBundles(t *testing.T) {
	empty := plain(manifestName, `{"format":1}`)
	link := entry{header: tar.Header{Name: "recorded/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}
	huge := file("recorded/x", "x")
	huge.Size = 1 << 40
	cases := map[string]struct {
		entries []entry
		want    error
	}{
		"upwards": {[]entry{head(file("recorded/../../x", "x")), empty, plain("recorded/../../x", "x")},
			ErrDamaged},
		"absolute":             {[]entry{head(file("/tmp/x", "x")), empty, plain("/tmp/x", "x")}, ErrDamaged},
		"of the running state": {[]entry{head(file("bin/activate", "x")), empty, plain("bin/activate", "x")}, ErrDamaged},
		"a unit itself":        {[]entry{head(file("recorded", "x")), empty, plain("recorded", "x")}, ErrDamaged},
		"a control character": {[]entry{head(file("recorded/\x1b[31m", "x")), empty, plain("recorded/\x1b[31m", "x")},
			ErrDamaged},
		"not announced": {[]entry{head(), empty, plain("recorded/x", "x")}, ErrDamaged},
		"announced twice": {[]entry{head(file("recorded/x", "x"), file("recorded/x", "x")), empty,
			plain("recorded/x", "x")}, ErrDamaged},
		"there twice": {[]entry{head(file("recorded/x", "x")), empty, plain("recorded/x", "x"),
			plain("recorded/x", "x")}, ErrDamaged},
		"missing":      {[]entry{head(file("recorded/x", "x")), empty}, ErrDamaged},
		"another text": {[]entry{head(file("recorded/x", "x")), empty, plain("recorded/x", "y")}, ErrDamaged},
		"longer":       {[]entry{head(file("recorded/x", "x")), empty, plain("recorded/x", "xx")}, ErrDamaged},
		"a file and a folder": {[]entry{head(file("recorded/x", "x"), file("recorded/x/y", "y")), empty,
			plain("recorded/x", "x"), plain("recorded/x/y", "y")}, ErrDamaged},
		"a link": {[]entry{head(file("recorded/x", "")), empty, link}, ErrDamaged},
		"huge":   {[]entry{head(huge), empty, plain("recorded/x", "x")}, ErrDamaged},
		"an unknown kind": {[]entry{head(), plain(manifestName, `{"format":1,"collections":[{"kind":"../x"}]}`)},
			ErrDamaged},
		"a later format":      {[]entry{plain(headName, `{"format":5,"workdir_format":1}`), empty}, ErrVersion},
		"no image announced":  {[]entry{plain(headName, `{"format":2,"workdir_format":1}`), empty}, ErrDamaged},
		"an image announced":  {[]entry{plain(headName, `{"format":1,"workdir_format":1,"image":{}}`), empty}, ErrDamaged},
		"no image":            {[]entry{headWithImage("x", 1), empty}, ErrDamaged},
		"an unexpected image": {[]entry{head(), empty, plain(imageName, "x")}, ErrDamaged},
		"two images": {[]entry{headWithImage("x", 1), empty, plain(imageName, "x"), plain(imageName, "x")},
			ErrDamaged},
		"another image":  {[]entry{headWithImage("x", 1), empty, plain(imageName, "y")}, ErrDamaged},
		"a longer image": {[]entry{headWithImage("x", 1), empty, plain(imageName, "xx")}, ErrDamaged},
		"an image that links": {[]entry{headWithImage("", 0), empty,
			{header: tar.Header{Name: imageName, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}}, ErrDamaged},
		"a later workdir":  {[]entry{plain(headName, `{"format":1,"workdir_format":9}`), empty}, ErrVersion},
		"a later manifest": {[]entry{head(), plain(manifestName, `{"format":7}`)}, ErrVersion},
		"another tar":      {[]entry{plain("etc/passwd", "x")}, ErrNotBundle},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wd := filled(t)
			before, beside := content(t, wd), filepath.Join(filepath.Dir(wd.Path()), "x")
			var got string
			for _, add := range []AddImage{nil, adding(-1, nil, &got)} {
				_, err := load(context.Background(), wd, bytes.NewReader(pack(t, c.entries...)), archive.Limits{}, add)
				if !errors.Is(err, c.want) {
					t.Errorf("%v, not %v", err, c.want)
				}
			}
			same(t, before, content(t, wd))
			if _, err := os.Lstat(beside); err == nil {
				t.Error("a file appeared beside the workdir")
			}
		})
	}
}

// TestBombDoesNotFillTheDisk checks that a small bundle does not fill the disk, and
// that the error names the flag that raises the limit.
func TestBombDoesNotFillTheDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("it unpacks 150 MiB")
	}
	zeros := strings.Repeat("\x00", 150<<20)
	bomb := pack(t, head(file("recorded/x", zeros)), plain(manifestName, `{"format":1}`), plain("recorded/x", zeros))
	wd := lock(t)
	_, err := load(context.Background(), wd, bytes.NewReader(bomb), archive.Limits{}, nil)
	if !errors.Is(err, archive.ErrLimit) || errors.Is(err, ErrDamaged) ||
		!strings.Contains(err.Error(), "times its size") {
		t.Errorf("%d bytes: %v", len(bomb), err)
	}
	same(t, nil, content(t, wd))
	limits := archive.Default()
	limits.FileBytes = 1 << 20
	if _, err := load(context.Background(), wd, bytes.NewReader(bomb), limits, nil); !errors.Is(err, archive.ErrLimit) ||
		!strings.Contains(err.Error(), "has over 1048576 bytes") {
		t.Errorf("one large file: %v", err)
	}
	limits = archive.Default()
	limits.Ratio = 1 << 20
	if _, err := load(context.Background(), wd, bytes.NewReader(bomb), limits, nil); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

// TestCutOffAndChangedBundlesAreRefused cuts a bundle at every byte, and changes every
// byte.
func TestCutOffAndChangedBundlesAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it unpacks many bundles")
	}
	wd := filled(t)
	whole := save(t, wd)
	other := filled(t)
	before := content(t, other)
	for n := range whole {
		if _, err := load(context.Background(), other, bytes.NewReader(whole[:n]), archive.Limits{}, nil); err == nil {
			t.Fatalf("the first %d of %d bytes are loaded", n, len(whole))
		}
	}
	same(t, before, content(t, other))
	for n := range whole {
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		fresh := lock(t)
		if _, err := load(context.Background(), fresh, bytes.NewReader(changed), archive.Limits{}, nil); err == nil {
			// Some bits of zstd's header have no meaning: the data is unchanged.
			same(t, content(t, wd), content(t, fresh))
		} else {
			same(t, nil, content(t, fresh))
		}
		fresh.Unlock()
	}
}

// load replaces the data of a workdir with the data of a bundle.
func load(ctx context.Context, wd *workdir.Dir, r io.Reader, limits archive.Limits, add AddImage) (Loaded, error) {
	b, err := Open(ctx, r, limits)
	if err != nil {
		return Loaded{}, err
	}
	defer b.Close()
	return b.Load(wd, add)
}
