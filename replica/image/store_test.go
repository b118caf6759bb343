package image_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"ovs-offline/internal/archive"
	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// shared is the folder with files that several tests read.
var shared struct {
	dir  string
	once sync.Once
	err  error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ovs-offline-store-")
	if err != nil {
		log.Fatal(err)
	}
	shared.dir = dir
	code := engines.Main(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// hostImage returns an archive of docker save with the tools of this host.
func hostImage(t *testing.T) string {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-trace", "ovn-detrace")
	path := filepath.Join(shared.dir, "host.tar")
	shared.once.Do(func() {
		host, err := build.FromHost(context.Background())
		var f *os.File
		if err == nil {
			f, err = os.Create(path)
		}
		if err == nil {
			err = errors.Join(host.Write(context.Background(), f, "example.com/ns/ovs-offline:host", "1"), f.Close())
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return path
}

// open opens a store of the test's own.
func open(t *testing.T) *image.Store {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s *image.Store, source, name string) image.Image {
	t.Helper()
	i, err := s.Add(t.Context(), source, image.AddOptions{Name: name})
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return i
}

// names returns the names of the images in a image.
func names(t *testing.T, s *image.Store) []string {
	t.Helper()
	images, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, i := range images {
		list = append(list, i.Name)
	}
	return list
}

// onHost returns the version that a tool of this host prints.
func onHost(t *testing.T, tool string) string {
	t.Helper()
	path, err := process.Find(tool)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line[strings.LastIndexByte(line, ' ')+1:]
}

// TestToolsOfAnImageRun adds this host's own tools from an archive, a registry and a
// folder, and runs them in the image.
func TestToolsOfAnImageRun(t *testing.T) {
	archived := hostImage(t)
	s := open(t)
	began := time.Now()
	first := add(t, s, archived, "")
	expect.Equal(t, first.Name, "example.com/ns/ovs-offline:host", first)
	expect.Equal(t, first.OVS, onHost(t, "ovs-vswitchd"), first)
	expect.Equal(t, first.OVN, onHost(t, "ovn-nbctl"), first)
	if len(first.Remarks) > 0 || first.Source != archived || first.Added.Before(began.Truncate(time.Second)) ||
		first.Added.After(time.Now()) {
		t.Errorf("got %+v, want no remarks, the source %s, and a time since %s", first, archived, began)
	}
	found, err := s.Find(first.Name)
	if err != nil || found.Root != first.Root || found.ID != first.ID {
		t.Errorf("found %+v, %v", found, err)
	}
	if found, err = s.Find(first.ID[:len("sha256:")+8]); err != nil || found.Root != first.Root {
		t.Errorf("found %+v, %v", found, err)
	}
	for _, tool := range []string{"ovs-vsctl", "ovsdb-tool", "ovn-trace"} {
		out, err := process.New(process.Options{Root: first.Root}).Tool(t.Context(), "/tmp", nil, tool, "--version")
		if err != nil || !strings.Contains(string(out), " "+onHost(t, tool)+"\n") {
			t.Errorf("%s prints %q, %v", tool, out, err)
		}
	}
	if size := sizeOf(t, first.Root); size != first.Size {
		t.Errorf("its files have %d bytes, and its size is %d", size, first.Size)
	}

	host := serve(t, archived)
	pulled := add(t, open(t), host+"/ovn:host", "")
	expect.Equal(t, pulled.ID, first.ID, "pulled")
	expect.Equal(t, pulled.Name, host+"/ovn:host", "pulled")
	expect.Equal(t, pulled.OVS, first.OVS, "pulled")
	expect.Equal(t, pulled.Size, first.Size, "pulled")
	copied := add(t, open(t), first.Root, "")
	expect.Equal(t, copied.Name, "ovs-"+first.OVS+"-ovn-"+first.OVN, "copied")
	expect.Equal(t, copied.OVS, first.OVS, "copied")
	expect.Equal(t, copied.OVN, first.OVN, "copied")
	expect.Equal(t, copied.Size, first.Size, "copied")
}

func sizeOf(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		sum += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// serve starts a registry that has the image of an archive as ovn:host.
func serve(t *testing.T, archived string) (host string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	img, err := tarball.ImageFromPath(archived, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/ovn:host")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return host
}

// fakeRoot makes a root file system whose tools are scripts that print a version, run by
// the shell of this host's image.
func fakeRoot(t *testing.T, s *image.Store, ovsVersion, ovnVersion string) string {
	t.Helper()
	base := add(t, s, hostImage(t), "base")
	root := filepath.Join(t.TempDir(), "root")
	if err := os.CopyFS(root, os.DirFS(base.Root)); err != nil {
		t.Fatal(err)
	}
	for tool, version := range map[string]string{"ovs-vswitchd": "(Open vSwitch) " + ovsVersion, "ovn-nbctl": ovnVersion} {
		found, err := process.FindIn(root, tool)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, found)
		os.Remove(path)
		if version != "" {
			script := "#!/bin/sh\necho '" + tool + " " + version + "'\n"
			if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNames checks which name an image has, and that each name is that of one image.
func TestNames(t *testing.T) {
	s := open(t)
	root := fakeRoot(t, s, "7.6.5", "98.03.1")
	base := add(t, s, hostImage(t), "") // it is there already, and gets its own name again
	expect.Equal(t, names(t, s), []string{"example.com/ns/ovs-offline:host"})
	first := add(t, s, root, "")
	expect.Equal(t, first.Name, "ovs-7.6.5-ovn-98.03.1", first)
	expect.Equal(t, first.OVS, "7.6.5", first)
	expect.Equal(t, first.OVN, "98.03.1", first)
	again := add(t, s, root, "")
	if again.ID != first.ID || again.Name != first.Name || !again.Added.Equal(first.Added) {
		t.Errorf("added again: got %+v, want %+v", again, first)
	}
	add(t, s, root, "mine")
	expect.Equal(t, names(t, s), []string{base.Name, "mine"})
	renamed := ""
	if _, err := s.Add(t.Context(), hostImage(t),
		image.AddOptions{Name: "mine", Renamed: func(before, now string) { renamed = before + " " + now }}); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, renamed, "mine mine@"+strings.TrimPrefix(first.ID, "sha256:")[:12], "renamed")
	expect.Equal(t, names(t, s), []string{"mine", "mine@" + strings.TrimPrefix(first.ID, "sha256:")[:12]})
	for _, name := range []string{"-f", "a b", "a\nb", "a@b", strings.Repeat("x", 300), "\x1b[31m"} {
		if _, err := s.Add(t.Context(), root, image.AddOptions{Name: name}); !errors.Is(err, image.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := s.Remove(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
	if _, err := s.Find("mine"); !errors.Is(err, runtime.ErrNoImage) {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), first.ID); err != nil || len(names(t, s)) > 0 {
		t.Error(err, names(t, s))
	}
	if left := entries(t, s); !slices.Equal(left, []string{".lock"}) {
		t.Errorf("left: %q", left)
	}
}

// TestKeptNames adds an archive from a stream, whose name another image has.
func TestKeptNames(t *testing.T) {
	s := open(t)
	mine := add(t, s, fakeRoot(t, s, "7.6.5", "98.03.1"), "mine")
	if err := s.Remove(t.Context(), "base"); err != nil {
		t.Fatal(err)
	}
	options := image.AddOptions{Name: "mine", Source: "a colleague", KeepNames: true}
	for range 2 { // the second time, it is there already
		archive, err := os.Open(hostImage(t))
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := s.AddArchive(t.Context(), archive, options)
		archive.Close()
		if err != nil || theirs.Name != "mine@"+strings.TrimPrefix(theirs.ID, "sha256:")[:12] ||
			theirs.Source != "a colleague" {
			t.Errorf("%+v, %v", theirs, err)
		}
		if found, err := s.Find("mine"); err != nil || found.ID != mine.ID || len(names(t, s)) != 2 {
			t.Errorf("mine is %+v, %v; there are %q", found, err, names(t, s))
		}
		options.Name = "another"
	}
	if _, err := s.AddArchive(t.Context(), strings.NewReader("no archive"), options); err == nil {
		t.Error("a text was added as an image")
	}
	if left := entries(t, s); len(left) != 3 {
		t.Errorf("left: %q", left)
	}
}

func entries(t *testing.T, s *image.Store) []string {
	t.Helper()
	found, err := os.ReadDir(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range found {
		list = append(list, e.Name())
	}
	return list
}

// TestImagesThatCannotRunAReplica checks that each is refused with the reason, and that
// an image without OVN is taken.
func TestImagesThatCannotRunAReplica(t *testing.T) {
	s := open(t)
	root := fakeRoot(t, s, "7.6.5", "")
	before := entries(t, s)
	refused := func(want ...string) {
		t.Helper()
		_, err := s.Add(t.Context(), root, image.AddOptions{})
		if !errors.Is(err, image.ErrIncomplete) {
			t.Errorf("got %v, want %v", err, image.ErrIncomplete)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("no %q in %v", w, err)
			}
		}
		if left := entries(t, s); !slices.Equal(left, before) {
			t.Errorf("left: %q", left)
		}
	}
	for _, tool := range []string{"ovs-ofctl", "ovsdb-tool"} {
		path := mustFind(t, root, tool)
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	refused("no ovs-ofctl", "no ovsdb-tool")
	for _, tool := range []string{"ovs-ofctl", "ovsdb-tool"} {
		path := mustFind(t, root, tool+".away")
		if err := os.Rename(path, strings.TrimSuffix(path, ".away")); err != nil {
			t.Fatal(err)
		}
	}
	vswitchd := mustFind(t, root, "ovs-vswitchd")
	script := files.Read(t, vswitchd)
	os.WriteFile(vswitchd, []byte("#!/bin/sh\necho nothing\n"), 0o755)
	refused("ovs-vswitchd --version prints no version")
	os.WriteFile(vswitchd, []byte(script), 0o755)

	os.Remove(mustFind(t, root, "ovn-sbctl"))
	os.Remove(mustFind(t, root, "ovn-trace"))
	os.Remove(mustFind(t, root, "ovn-detrace"))
	i := add(t, s, root, "")
	if i.Name != "ovs-7.6.5" || i.OVN != "" || len(i.Remarks) != 1 ||
		!strings.Contains(i.Remarks[0], "no ovn-nbctl, no ovn-sbctl, no ovn-trace, no ovn-detrace") {
		t.Errorf("%+v", i)
	}
}

// mustFind returns the path on this host of a program in a root file system.
func mustFind(t *testing.T, root, program string) string {
	t.Helper()
	path, err := process.FindIn(root, program)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, path)
}

// TestFailedAddLeavesNothing checks that a failed or interrupted Add changes nothing.
func TestFailedAddLeavesNothing(t *testing.T) {
	archived := hostImage(t)
	raw := []byte(files.Read(t, archived))
	raw[len(raw)/2] ^= 1
	damaged := filepath.Join(t.TempDir(), "damaged.tar")
	if err := os.WriteFile(damaged, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t)
	if _, err := s.Add(t.Context(), damaged, image.AddOptions{}); !errors.Is(err, image.ErrRefused) ||
		!strings.Contains(err.Error(), "digest") {
		t.Errorf("a damaged archive: %v", err)
	}
	if _, err := s.Add(t.Context(), archived,
		image.AddOptions{Limits: archive.Limits{Bytes: 1 << 20, Entries: 1000}}); !errors.Is(err, archive.ErrLimit) {
		t.Errorf("a large archive: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	interrupt := func(read, total int64) {
		if read > total/2 {
			cancel()
		}
	}
	if _, err := s.Add(ctx, archived, image.AddOptions{Progress: interrupt}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted Add: %v", err)
	}
	if left := entries(t, s); !slices.Equal(left, []string{".lock"}) {
		t.Errorf("left: %q", left)
	}
}

// TestStoreOfAnother checks that a store that others could change is not used.
func TestStoreOfAnother(t *testing.T) {
	s := open(t)
	if images, err := s.List(); err != nil || len(images) > 0 {
		t.Errorf("a store that does not exist: %v %v", images, err)
	}
	if err := s.Remove(t.Context(), "x"); !errors.Is(err, runtime.ErrNoImage) {
		t.Error(err)
	}
	if _, err := os.Stat(s.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a store: %v", err)
	}
	mkdir(t, s.Path())
	if err := os.Chmod(s.Path(), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(); err == nil || !strings.Contains(err.Error(), "written to by others") {
		t.Error(err)
	}
	os.Chmod(s.Path(), 0o700)
	if os.Geteuid() == 0 {
		os.Chown(s.Path(), 65534, 65534)
		if _, err := s.List(); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
			t.Error(err)
		}
		os.Chown(s.Path(), 0, 0)
	}
	files.Write(t, filepath.Join(s.Path(), "0123", "image.json"), "{}")
	if _, err := s.List(); err == nil || !strings.Contains(err.Error(), filepath.Join(s.Path(), "0123")) {
		t.Error(err)
	}
}
