package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// imageUser is a user with a home, a program and an archive of this host's tools. It is
// an unprivileged one if the test runs as root.
type imageUser struct {
	t                  *testing.T
	program, home, tar string
	env                []string
}

func newImageUser(t *testing.T) *imageUser {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-trace", "ovn-detrace")
	dir := public(t)
	u := &imageUser{t: t, program: filepath.Join(dir, "ovs-offline"), home: filepath.Join(dir, "home"),
		tar: filepath.Join(dir, "host.tar")}
	u.env = []string{"PATH=/usr/bin:/bin", "HOME=" + u.home, "OVS_DBG_WORKDIR=" + u.home + "/wd"}
	actAs(t, u.program)
	host, err := build.FromHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(u.tar)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(host.Write(t.Context(), f, "ovs-offline:host", "1"), f.Close(),
		os.Mkdir(u.home, 0o700)); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(u.home, nobodyUID, nobodyUID); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// command returns a command line of ovs-offline that the user runs.
func (u *imageUser) command(args ...string) *exec.Cmd {
	c := exec.Command(u.program, args...)
	c.Dir, c.Env = u.home, u.env
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	}
	return c
}

// run runs ovs-offline and returns its standard output, its messages and its exit code.
func (u *imageUser) run(args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	c := u.command(args...)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		u.t.Fatal(err)
	}
	return out.String(), messages.String(), c.ProcessState.ExitCode()
}

// expect runs ovs-offline, and checks its exit code and that a pattern matches its output.
func (u *imageUser) expect(code int, pattern string, args ...string) string {
	u.t.Helper()
	out, messages, got := u.run(args...)
	if got != code || !regexp.MustCompile(pattern).MatchString(out+messages) {
		u.t.Errorf("%q: exit code %d, not %d, or no %q in:\n%s%s", args, got, code, pattern, out, messages)
	}
	return out
}

// stored returns the names in the user's folder of images.
func (u *imageUser) stored() []string {
	u.t.Helper()
	entries, err := os.ReadDir(filepath.Join(u.home, ".local/share/ovs-offline/images"))
	if err != nil {
		u.t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			list = append(list, e.Name())
		}
	}
	return list
}

func TestImagesOfAnOrdinaryUser(t *testing.T) {
	u := newImageUser(t)
	for name, test := range map[string]func(*testing.T, *imageUser){"add, list and remove": addListRemove,
		"push": pushImages, "stopped": stopAdd, "used": removeUsed} {
		t.Run(name, func(t *testing.T) {
			u.t = t
			test(t, u)
		})
	}
}

// addListRemove uses the commands as a user would.
func addListRemove(t *testing.T, u *imageUser) {
	u.expect(0, `^There are no images: `, "image", "list")
	u.expect(0, `(?m)^mine$\n^Open vSwitch [0-9.]+, OVN [0-9.]+, [0-9]+ MB, in /.*/root$`, "image", "add", u.tar, "-t",
		"mine")
	u.expect(0, ` mine +process +[0-9.]+ +[0-9.]+ +[0-9]+ MB`, "image", "ls")
	var listed []image.Listed
	if err := json.Unmarshal([]byte(u.expect(0, `"used_by": \[\]`, "image", "list", "-o", "json")), &listed); err != nil ||
		len(listed) != 1 {
		t.Fatalf("%v %+v", err, listed)
	}
	root := listed[0].Root
	if name := u.expect(0, `"ovs": "[0-9.]+"`, "image", "add", root, "-o", "json"); !strings.Contains(name,
		`"name": "ovs-`) {
		t.Errorf("the copy of a folder: %s", name)
	}
	if os.Geteuid() == 0 { // the user may not read a file that root writes
		if err := os.WriteFile(filepath.Join(root, "etc/secret"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		u.expect(0, `warning: left out, because you may not read it: etc/secret\n`, "image", "add", root)
	}
	u.expect(0, `(?m)^mine\tOpen vSwitch .*\n(?s).*:4`, "__complete", "image", "rm", "")
	u.expect(2, `rm takes the NAME of each image`, "image", "rm")
	u.expect(2, `unknown command "nosuch" for "ovs-offline image"`, "image", "nosuch")
	u.expect(2, `image add is for local processes`, "--runtime", "podman", "image", "add", u.tar)
	u.expect(2, `not a name for an image`, "image", "add", u.tar, "-t", "a b")
	u.expect(1, `no image nosuch: "ovs-offline image list"`, "image", "rm", "nosuch")
	u.expect(1, `--max-size allows more`, "image", "add", root, "--max-size", "1000000")
	if got := u.expect(1, `no image nosuch`, "image", "rm", "mine", "nosuch", listed[0].ID); got != "removed mine\n" {
		// The list is made once, so the second removal of the same image fails.
		t.Errorf("removed: %s", got)
	}
	left := u.stored()
	if len(left) != 1 {
		t.Fatalf("left: %q", left)
	}
	u.expect(0, `^removed ovs-`, "image", "rm", left[0][:12])
}

// pushImages pushes this machine's tools and an image for local processes to a registry,
// and runs tools in what comes back.
func pushImages(t *testing.T, u *imageUser) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	pushed := u.expect(0, `^`+host+`/net/tools:ovs-[0-9.]+-ovn-[0-9.]+@sha256:[0-9a-f]{64}\nOpen vSwitch [0-9.]+, OVN [0-9.]+, [0-9]+ MB\n`, "image", "push", host+"/net/tools")
	reference, _, _ := strings.Cut(pushed, "\n")
	u.expect(0, `^back\n`, "image", "add", reference, "-t", "back")
	file := u.home + "/host2.tar"
	// Both kinds of files are written with what a registry gets. That of docker is not compressed, which takes seconds.
	to, again := "docker-archive:"+file, file
	if sweep.Whole() {
		to = "oci-archive:" + file
	}
	u.expect(0, `"name": ".*`+file+`[:"]`, "image", "push", to, "--image", "back", "-o", "json")
	if sweep.Whole() { // a registry gets what a file gets
		again = host + "/again:1"
		u.expect(0, `"name": "`+again+`@sha256:`, "image", "push", again, "--image", "back", "-o", "json")
	}
	u.expect(0, `^again\n`, "image", "add", again, "-t", "again")
	var listed []image.Listed
	if err := json.Unmarshal([]byte(u.expect(0, ``, "image", "list", "-o", "json")), &listed); err != nil ||
		len(listed) != 2 {
		t.Fatalf("%v %+v", err, listed)
	}
	program, err := os.ReadFile(u.program)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range listed {
		for _, name := range []string{"ovs-offline", "gather"} {
			info, err := os.Stat(filepath.Join(i.Root, "usr/bin", name))
			if err != nil || info.Mode().Perm()&0o055 != 0o055 {
				t.Errorf("%s of %s: %v %v", name, i.Name, info, err)
			}
		}
		if held, err := os.ReadFile(filepath.Join(i.Root, "usr/bin/ovs-offline")); err != nil || !bytes.Equal(held, program) {
			t.Errorf("%s does not hold the program that pushed it: %v", i.Name, err)
		}
	}
	u.expect(1, `file already exists; --force replaces it`, "image", "push", to)
	u.expect(2, `push takes DESTINATION`, "image", "push")
	u.expect(2, `put oci-archive: or docker-archive: in front`, "image", "push", "./host2.tar")
	u.expect(2, `images in podman are pushed with podman push`, "--runtime", "podman", "image", "push", host+"/x")
	u.expect(1, `no image nosuch`, "image", "push", host+"/net/x", "--image", "nosuch")
	if sweep.Whole() { // the layers are packed before a registry is asked; TestAFailedWriteLeavesNothing has a small image
		u.expect(1, `pushing 127.0.0.1:1/net/x:ovs-`, "image", "push", "127.0.0.1:1/net/x")
	}
	u.expect(0, `(?m)^back\t`, "__complete", "image", "push", "--image", "b")
	u.expect(0, `^removed back\nremoved again`, "image", "rm", "back", "again")
}

// removeUsed removes an image in which a replica runs.
func removeUsed(t *testing.T, u *imageUser) {
	report := filepath.Join(filepath.Dir(u.home), "sosreport.tar.xz")
	copyFile(t, "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz", report)
	u.expect(0, `^mine\n`, "image", "add", u.tar, "-t", "mine")
	u.expect(0, `collected`, "collect-sos", report)
	u.expect(0, `(?m)^runtime: local processes, image mine`, "--runtime", "process", "start", "--image", "mine")
	u.expect(0, ` mine .* MB +`+u.home+`/wd\n`, "image", "list")
	u.expect(0, `Datapath actions: `, "exec", "ovs-appctl", "ofproto/trace", "breth0", "in_port=1,icmp")
	u.expect(1, `the image is used: the replica in `+u.home+`/wd runs in mine`, "image", "rm", "mine")
	u.expect(0, `, runtime process: ready\n`, "status")
	u.expect(0, `^removed mine\n`, "image", "rm", "--force", "mine")
	u.expect(1, `no replica is running`, "status")
	if left := u.stored(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// stopAdd interrupts and kills an add in the middle of a layer.
func stopAdd(t *testing.T, u *imageUser) {
	reference, stalled := stallingRegistry(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		c := u.command("image", "add", reference)
		var messages bytes.Buffer
		c.Stderr = &messages
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		<-stalled
		if signal == syscall.SIGKILL {
			u.expect(1, `in use by another ovs-offline command \(pid `, "image", "add", u.tar)
		}
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil {
			t.Errorf("%v: it ended with exit code 0", signal)
		}
		if text := messages.String(); signal == syscall.SIGINT && !strings.HasSuffix(text, "ovs-offline: interrupted\n") {
			t.Errorf("it printed %s", text)
		}
		if left := u.stored(); len(left) != 0 && signal == syscall.SIGINT || len(left) != 1 && signal == syscall.SIGKILL {
			t.Errorf("%v left %q", signal, left)
		}
		u.expect(0, `^There are no images: `, "image", "list")
	}
	u.expect(0, `^mine\n`, "image", "add", u.tar, "-t", "mine")
	if left := u.stored(); len(left) != 1 || strings.HasPrefix(left[0], ".") {
		t.Errorf("left after the next add: %q", left)
	}
	u.expect(0, `^removed mine\n`, "image", "rm", "mine")
}

// stallingRegistry starts a registry that has an image, and stops in the middle of its
// layer. Each time it does, it sends to stalled.
func stallingRegistry(t *testing.T) (reference string, stalled chan bool) {
	t.Helper()
	img, err := random.Image(1<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layer := manifest.Layers[0]
	stalled = make(chan bool)
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, layer.Digest.Hex) {
			h.ServeHTTP(&halfWriter{ResponseWriter: w, left: int(layer.Size / 2), stop: func() {
				stalled <- true
				<-r.Context().Done()
			}}, r)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	reference = strings.TrimPrefix(server.URL, "http://") + "/ovs-offline:host"
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return reference, stalled
}

// halfWriter calls stop once it has written some bytes.
type halfWriter struct {
	http.ResponseWriter
	left int
	stop func()
}

func (w *halfWriter) Write(p []byte) (int, error) {
	if w.left <= 0 {
		w.stop()
		return 0, errors.New("stopped")
	}
	n, err := w.ResponseWriter.Write(p[:min(len(p), w.left)])
	w.left -= n
	w.ResponseWriter.(http.Flusher).Flush()
	if err == nil && n < len(p) {
		w.stop()
		err = errors.New("stopped")
	}
	return n, err
}
