package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/archive"
)

// content is what the test image unpacks to.
var content = map[string]string{"usr/bin/tool": "new tool", "etc/kept": "kept"}

// image returns an image of two layers for a processor: the second replaces a file, and
// removes one.
func image(t *testing.T, architecture string) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image,
		tarLayer(t, "usr/bin/tool", "old tool", "etc/kept", "kept", "etc/removed", "x"),
		tarLayer(t, "usr/bin/tool", "new tool", "etc/.wh.removed", ""))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

func tarLayer(t *testing.T, namesAndTexts ...string) v1.Layer {
	t.Helper()
	raw := tarOf(t, namesAndTexts...)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tarOf(t *testing.T, namesAndTexts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(namesAndTexts); i += 2 {
		text := namesAndTexts[i+1]
		if err := w.WriteHeader(&tar.Header{Name: namesAndTexts[i], Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func limits() archive.Limits {
	return archive.Limits{Bytes: 1 << 30, Ratio: 250, Entries: 1000}
}

// unpack opens a source and unpacks it.
func unpack(t *testing.T, ctx context.Context, source string) (Image, map[string]string, error) {
	t.Helper()
	read := int64(0)
	scratch, dir := t.TempDir(), t.TempDir()
	options := Options{Scratch: scratch, Limits: limits(), Progress: func(n, _ int64) { read = n }}
	img, err := Open(ctx, source, options)
	if err != nil {
		return Image{}, nil, err
	}
	defer img.Close()
	u, err := img.Unpack(ctx, dir, options)
	if err == nil && read == 0 {
		t.Error("no progress was reported")
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("left in the scratch folder: %v", left)
	}
	return u, tree(t, dir), err
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// serve starts a registry that needs a login, and configures docker's credentials for it.
func serve(t *testing.T, change func(http.Handler) http.Handler) (host string) {
	t.Helper()
	h := change(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	login(t, host)
	return host
}

// login writes the file that docker login writes.
func login(t *testing.T, host string) {
	t.Helper()
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("me:secret"))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths":{"`+host+`":{"auth":"`+auth+`"}}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

func unchanged(h http.Handler) http.Handler { return h }

func upload(t *testing.T, reference string, what remote.Taggable) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	option := remote.WithAuthFromKeychain(loggedIn{})
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(ref, what, option)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, what, option)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeDocker(t *testing.T, path string, images map[string]v1.Image) {
	t.Helper()
	tags := map[name.Tag]v1.Image{}
	for text, img := range images {
		tag, err := name.NewTag(text)
		if err != nil {
			t.Fatal(err)
		}
		tags[tag] = img
	}
	if err := tarball.MultiWriteToFile(path, tags); err != nil {
		t.Fatal(err)
	}
}

// makeLayout writes a layout with one entry for each name.
func makeLayout(t *testing.T, dir string, entries map[string]mutate.Appendable) {
	t.Helper()
	p, err := ocilayout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range slices.Sorted(maps.Keys(entries)) { // an index without images can't be the first: it makes no folder
		option := ocilayout.WithAnnotations(map[string]string{annotationOf: text})
		switch what := entries[text].(type) {
		case v1.Image:
			err = p.AppendImage(what, option)
		case v1.ImageIndex:
			err = p.AppendIndex(what, option)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pack writes the files in a folder as a tar.
func pack(t *testing.T, dir, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// compress writes a file compressed.
func compress(t *testing.T, from, to string, with func(io.Writer) io.WriteCloser) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	w := with(f)
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func gzipped(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }

func zstandard(w io.Writer) io.WriteCloser {
	z, _ := zstd.NewWriter(w) // fails for wrong options only
	return z
}

// platforms returns an index of the image for this machine and one for another.
func platforms(t *testing.T) v1.ImageIndex {
	t.Helper()
	of := func(architecture string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: image(t, architecture),
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}}
	}
	return mutate.AppendManifests(empty.Index, of("s390x"), of(runtime.GOARCH))
}

// TestEverySource checks that an image of every kind of source has the same files and ID.
func TestEverySource(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	img := image(t, runtime.GOARCH)
	host := serve(t, unchanged)
	upload(t, host+"/ns/ovn:v1", img)
	upload(t, host+"/ns/ovn:many", platforms(t))
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	writeDocker(t, at("docker.tar"), map[string]v1.Image{"example.com/ns/ovn:v1": img})
	writeDocker(t, at("two.tar"), map[string]v1.Image{"example.com/ns/ovn:v1": img,
		"example.com/ns/other:v1": image(t, "s390x")})
	compress(t, at("docker.tar"), at("docker.tar.gz"), gzipped)
	compress(t, at("docker.tar"), at("docker.tar.zst"), zstandard)
	makeLayout(t, at("layout"), map[string]mutate.Appendable{"v1": img})
	makeLayout(t, at("named"), map[string]mutate.Appendable{"v1": img, "v2": image(t, "s390x"),
		"v3": mutate.AppendManifests(empty.Index)})
	makeLayout(t, at("platforms"), map[string]mutate.Appendable{"v1": platforms(t)})
	pack(t, at("layout"), at("layout.tar"))
	compress(t, at("layout.tar"), at("layout.tar.gz"), gzipped)
	want, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, source := range []string{
		host + "/ns/ovn:v1", "docker://" + host + "/ns/ovn:v1", host + "/ns/ovn@" + digest.String(), host + "/ns/ovn:many",
		at("docker.tar"), "docker.tar", "docker-archive:" + at("docker.tar"),
		"docker-archive:docker.tar:example.com/ns/ovn:v1",
		"docker-archive:two.tar:example.com/ns/ovn:v1", at("docker.tar.gz"), at("docker.tar.zst"),
		at("layout"), "layout/", "oci:layout", "oci:layout:v1", "oci:named:v1", at("platforms"),
		at("layout.tar"), "oci-archive:layout.tar", "oci-archive:layout.tar:v1", at("layout.tar.gz"),
	} {
		u, found, err := unpack(t, t.Context(), source)
		if err != nil || u.ID != want.String() || !maps.Equal(found, content) {
			t.Errorf("%s: %v %q %v", source, u.ID, found, err)
		}
	}
	for _, source := range []string{"docker-archive:two.tar", "two.tar"} {
		if _, _, err := unpack(t, t.Context(), source); err == nil ||
			!strings.Contains(err.Error(), "example.com/ns/other:v1") {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, source := range []string{"oci:layout:v2", "docker-archive:docker.tar:v2"} {
		if _, _, err := unpack(t, t.Context(), source); err == nil || !strings.Contains(err.Error(), `"v2"`) ||
			!strings.Contains(err.Error(), "v1") {
			t.Errorf("%s: %v", source, err)
		}
	}
	os.MkdirAll(at("root/usr/bin"), 0o700)
	os.WriteFile(at("root/usr/bin/tool"), []byte("tool"), 0o755)
	for _, source := range []string{at("root"), "root", "dir:" + at("root")} {
		u, found, err := unpack(t, t.Context(), source)
		if err != nil || !strings.HasPrefix(u.ID, "sha256:") ||
			!maps.Equal(found, map[string]string{"usr/bin/tool": "tool"}) {
			t.Errorf("%s: %+v %q %v", source, u, found, err)
		}
	}
}

// TestSourcesThatAreNone checks the message for each source that can't be read.
func TestSourcesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	host := serve(t, unchanged)
	upload(t, host+"/other:v1", image(t, "s390x"))
	writeDocker(t, "other.tar", map[string]v1.Image{"other:v1": image(t, "s390x")})
	os.WriteFile("empty", nil, 0o600)
	os.WriteFile("text", bytes.Repeat([]byte("text "), 1000), 0o600)
	os.WriteFile("rootfs.tar", tarOf(t, "usr/bin/tool", "x"), 0o600)
	makeLayout(t, "layout", map[string]mutate.Appendable{"v1": image(t, runtime.GOARCH)})
	for source, want := range map[string]string{
		"nosuch.tar":                  "no such file",
		"./nosuch":                    "no such file",
		"oci:nosuch":                  "no such file",
		"dir:nosuch":                  "no such file",
		"empty":                       "neither manifest.json",
		"text":                        "not a source",
		"rootfs.tar":                  "name the folder into which it was unpacked",
		"oci:text":                    "is a file; oci: takes a folder",
		"docker-archive:layout":       "is a folder; docker-archive: takes a file",
		"containers-storage:x":        "podman save",
		"docker-daemon:x":             "docker save",
		"UPPER CASE":                  "nor the reference of an image",
		"other.tar":                   "is for linux/s390x",
		host + "/other:v1":            "is for linux/s390x",
		host + "/ns/nosuch:v1":        "NAME_UNKNOWN",
		"docker://" + host + "/xx:v1": "NAME_UNKNOWN",
		"localhost:1/ns/xx:v1":        "refused; a file of podman save or docker save and a root directory can be added as well",
	} {
		if _, _, err := unpack(t, t.Context(), source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", source, err)
		}
	}
	login(t, "example.com")
	if _, _, err := unpack(t, t.Context(), host+"/ns/ovn:v1"); err == nil ||
		!strings.Contains(err.Error(), "podman login "+host) {
		t.Errorf("without a login: %v", err)
	}
}

// TestWrongDigestsAreRefused checks that no changed content is taken, wherever it is.
func TestWrongDigestsAreRefused(t *testing.T) {
	img := image(t, runtime.GOARCH)
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	z := gzip.NewWriter(&other)
	z.Write(tarOf(t, "usr/bin/tool", "another tool"))
	z.Close()
	config, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	otherConfig := bytes.Replace(config, []byte(`"linux"`), []byte(`"linux" `), 1)
	blobs := map[v1.Hash][]byte{manifest.Layers[1].Digest: other.Bytes(), manifest.Config.Digest: otherConfig}

	for blob, text := range blobs {
		host := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, blob.Hex) {
					w.Write(text)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		upload(t, host+"/ovn:v1", img)
		if _, _, err := unpack(t, t.Context(), host+"/ovn:v1"); err == nil {
			t.Errorf("a registry with another %v: %v", blob, err)
		}
	}
	blobs[digest] = []byte(strings.Replace(string(must(img.RawManifest())), "{", "{ ", 1))
	for blob, text := range blobs {
		dir := filepath.Join(t.TempDir(), "layout")
		makeLayout(t, dir, map[string]mutate.Appendable{"v1": img})
		if err := os.WriteFile(filepath.Join(dir, "blobs", blob.Algorithm, blob.Hex), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := unpack(t, t.Context(), dir); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "digest") {
			t.Errorf("a layout with another %v: %v", blob, err)
		}
		pack(t, dir, dir+".tar")
		if _, _, err := unpack(t, t.Context(), dir+".tar"); !errors.Is(err, ErrRefused) ||
			!strings.Contains(err.Error(), "digest") {
			t.Errorf("a tar of a layout with another %v: %v", blob, err)
		}
	}
	path := filepath.Join(t.TempDir(), "docker.tar")
	writeDocker(t, path, map[string]v1.Image{"ovn:v1": img})
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, changed := range map[string][]byte{
		"configuration": bytes.Replace(raw, []byte(`"type":"layers"`), []byte(`"typf":"layers"`), 1),
		"short file":    raw[:len(raw)/2],
		"layer":         bytes.Replace(raw, []byte("\x1f\x8b\x08\x00"), []byte("\x1f\x8b\x08\x04"), 1),
	} {
		if bytes.Equal(raw, changed) {
			t.Fatalf("the %s is not changed", what)
		}
		os.WriteFile(path, changed, 0o600)
		if _, _, err := unpack(t, t.Context(), path); err == nil {
			t.Errorf("an archive with a changed %s is taken", what)
		}
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// TestHostileArchives checks that hostile documents cost neither memory nor time.
func TestHostileArchives(t *testing.T) {
	loop := func() []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "manifest.json", Linkname: "a"})
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "manifest.json"})
		w.Close()
		return b.Bytes()
	}()
	zeros := make([]byte, 512<<20)
	var bomb bytes.Buffer
	z, _ := zstd.NewWriter(&bomb)
	z.Write(tarOf(t, "manifest.json", `[{"Config":"c"}]`)[:1024])
	z.Write(zeros)
	z.Close()
	nested := `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","size":1,"digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`
	for what, raw := range map[string][]byte{
		"links in a circle":     loop,
		"a large manifest":      tarOf(t, "manifest.json", "["+strings.Repeat(" ", 8<<20)+"]"),
		"no JSON":               tarOf(t, "manifest.json", "x"),
		"no images":             tarOf(t, "manifest.json", "[]"),
		"a missing config":      tarOf(t, "manifest.json", `[{"Config":"../../../etc/passwd","Layers":["/etc/passwd"]}]`),
		"a config that is null": tarOf(t, "manifest.json", `[{"Config":"c"}]`, "c", "null"),
		"layers that don't fit": tarOf(t, "manifest.json", `[{"Config":"c","Layers":["a","b"]}]`, "c",
			`{"rootfs":{"diff_ids":[]}}`),
		"a missing layer": tarOf(t, "manifest.json", `[{"Config":"c","Layers":["a"]}]`, "c",
			`{"rootfs":{"diff_ids":["sha256:`+strings.Repeat("0", 64)+`"]}}`),
		"a digest that is none": tarOf(t, "manifest.json", `[{"Config":"c","Layers":["a"]}]`, "c",
			`{"rootfs":{"diff_ids":["sha256:../../x"]}}`),
		"an index of a blob":     tarOf(t, "oci-layout", "{}", "index.json", nested),
		"an index of no digest":  tarOf(t, "oci-layout", "{}", "index.json", strings.ReplaceAll(nested, "0000", "../.")),
		"a bomb":                 bomb.Bytes(),
		"many entries":           tarOf(t, strings.Split(strings.Repeat("a,b,", 2000)+"x,y", ",")...),
		"a manifest of no image": tarOf(t, "oci-layout", "{}", "index.json", `{"manifests":[{"mediaType":"text/plain"}]}`),
	} {
		path := filepath.Join(t.TempDir(), "x.tar")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		u, _, err := unpack(t, t.Context(), path)
		if err == nil && what != "a config that is null" {
			t.Errorf("%s: taken as %+v", what, u)
		}
		if (what == "a bomb" || what == "many entries") && !errors.Is(err, archive.ErrLimit) {
			t.Errorf("%s: %v", what, err)
		}
	}
	dir := t.TempDir()
	makeLayout(t, dir, map[string]mutate.Appendable{"v1": image(t, runtime.GOARCH)})
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs/sha256/*"))
	if err != nil || len(blobs) == 0 {
		t.Fatal(blobs, err)
	}
	for _, blob := range blobs {
		os.Rename(blob, blob+"-outside")
		if err := os.Symlink("/etc/passwd", blob); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := unpack(t, t.Context(), dir); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("a layout of links to outside: %v", err)
	}
	for _, blob := range blobs {
		if err := errors.Join(os.Remove(blob), unix.Mkfifo(blob, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := unpack(t, t.Context(), dir); !errors.Is(err, ErrRefused) ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a layout of FIFOs: %v", err)
	}
}

// TestInterruptEndsAPull checks that a registry that stalls does not hold a pull.
func TestInterruptEndsAPull(t *testing.T) {
	img := image(t, runtime.GOARCH)
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	stalled := make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	host := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, manifest.Layers[1].Digest.Hex) {
				w.Header().Set("Content-Length", fmt.Sprint(manifest.Layers[1].Size))
				w.Write([]byte("\x1f\x8b"))
				w.(http.Flusher).Flush()
				close(stalled)
				<-r.Context().Done()
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	upload(t, host+"/ovn:v1", img)
	go func() { <-stalled; cancel() }()
	if _, _, err := unpack(t, ctx, host+"/ovn:v1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
