//go:build linux

package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/engines"
)

// rootVariant is set in a test process that runs all daemons and tools in a root file
// system: see process_test.go.
const rootVariant = "OVS_OFFLINE_TEST_ROOT"

// hostRoot returns a root file system of this machine's tools, with a file that tells
// it from this machine's.
func hostRoot(t *testing.T) string {
	t.Helper()
	if os.Getenv(rootVariant) != "" {
		t.Skip("this process runs the other tests in a root file system")
	}
	image, _ := engines.HostImage(t)
	root := image.Root
	write(t, filepath.Join(root, "usr/share/image"), "the image")
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// in returns a runtime in a root file system, which ends with the test.
func in(t *testing.T, root string, folders ...string) *process.Runtime {
	t.Helper()
	r := process.New(process.Options{Root: root, Folders: folders})
	t.Cleanup(func() {
		if err := r.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// both runs a shell script as a tool and as a program of the user, and returns the output.
func both(t *testing.T, r *process.Runtime, script string) (outputs []string) {
	t.Helper()
	out, err := r.Tool(t.Context(), "/tmp", nil, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	exit, err := r.Exec(t.Context(), runtime.Command{Argv: []string{"sh", "-c", script}, Stdout: &printed,
		Stderr: &printed})
	if err != nil || exit != 0 {
		t.Fatalf("exit code %d, %v: %s", exit, err, &printed)
	}
	return []string{string(out), printed.String()}
}

// TestRootRunsEveryTest runs the other tests of this package in a root file system.
func TestRootRunsEveryTest(t *testing.T) {
	root := hostRoot(t)
	// These tests are about this host's own programs.
	const skip = "TestEndedContextLeavesNothing|TestFindSkipsWrappers|TestInitialisedFirst|TestToolEnvironmentAndErrors"
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=Test[^AW]", "-test.skip="+skip, "-test.v")
	again.Dir = "/"
	again.Env = append(os.Environ(), rootVariant+"="+root)
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || strings.Count(string(out), "--- PASS") < 9 {
		t.Error(err)
	}
}

// TestRootShowsTheImageAndTheFolders checks what tools see and what they can change.
func TestRootShowsTheImageAndTheFolders(t *testing.T) {
	root := hostRoot(t)
	write(t, filepath.Join(root, "secret"), "kept")
	dir, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(other, "host"), "of the host")
	before := listing(t, root)
	r := in(t, root, filepath.Join(dir, "shared"), filepath.Join(dir, "missing"))
	write(t, filepath.Join(dir, "shared/file"), "of the replica")
	write(t, filepath.Join(dir, "beside"), "of the host")
	open, err := os.Open(filepath.Join(dir, "beside"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	t.Setenv("OVN_NB_DB", "tcp:192.0.2.1:6641")
	for script, want := range map[string]string{
		"cat /usr/share/image":        "the image",
		"cat " + dir + "/shared/file": "of the replica",
		"ls " + dir:                   "shared\n",
		"cat " + other + "/host 2>/dev/null || echo hidden": "hidden\n",
		"ls /dev":                          "fd\nfull\nnull\nrandom\nstderr\nstdin\nstdout\nurandom\nzero\n",
		"echo x >/dev/null; cat /dev/null": "",
		"(echo x >/usr/share/new) 2>/dev/null || echo refused":    "refused\n",
		"(echo x >>/usr/share/image) 2>/dev/null || echo refused": "refused\n",
		"(echo x >/secret) 2>/dev/null || echo refused":           "refused\n",
		"ls /proc/sys": "",
		fmt.Sprintf("cat /proc/%d/fd/%d 2>/dev/null || cat /proc/%d/root/etc/passwd 2>/dev/null || echo refused", os.Getpid(),
			open.Fd(), os.Getpid()): "refused\n",
		"cat /proc/$PPID/exe >/dev/null 2>&1 && echo open || echo refused": "refused\n",
		"echo $OVN_NB_DB": "\n",
		"while read name _; do case $name in *:) echo $name; esac; done </proc/net/dev":                                                                   "lo:\n",
		"while read name value; do case $name in Cap[PEIA]*|NoNewPrivs:) echo $value; esac; done </proc/self/status":                                      strings.Repeat("0000000000000000\n", 4) + "1\n",
		"for f in /proc/self/fd/*; do case $f in */0|*/1|*/2|*/10) ;; *) [ -e $f ] && [ $f != /proc/self/fd/255 ] && echo $f; esac; done; echo none else": "none else\n",
	} {
		for _, out := range both(t, r, script) {
			expect.Equal(t, out, want, script)
		}
	}
	both(t, r, "echo written >"+dir+"/shared/new; echo x >/tmp/private; echo x >/new; true")
	if text, err := os.ReadFile(filepath.Join(dir, "shared/new")); err != nil || string(text) != "written\n" {
		t.Errorf("the replica's folder: %q %v", text, err)
	}
	if _, err := os.Stat("/tmp/private"); err == nil {
		t.Error("a tool wrote to this host's /tmp")
	}
	if after := listing(t, root); after != before {
		t.Errorf("the image was changed:\n%s\nbefore:\n%s", after, before)
	}
}

// listing returns the paths, sizes and times of all files below a folder.
func listing(t *testing.T, root string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "find", root, "-printf", "%p %s %t %l\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestRootHasAnyWorkdir mounts a folder at paths that the image lacks, has, or has links at.
func TestRootHasAnyWorkdir(t *testing.T) {
	root := hostRoot(t)
	dir, err := os.MkdirTemp("/var/tmp", "ovs offline,") // not in /tmp, which is never the image's
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	shared := filepath.Join(dir, "a", "b")
	write(t, filepath.Join(shared, "file"), "x")
	etc := changed(t, "/etc")
	for name, prepare := range map[string]func(image string) error{
		"the image lacks its folders": func(string) error { return nil },
		"the image has another there": func(image string) error {
			write(t, filepath.Join(image, "var/tmp/other"), "kept")
			write(t, filepath.Join(image, dir, "a/other"), "kept")
			return os.Symlink("other", filepath.Join(image, "var/tmp/link"))
		},
		"the image has it": func(image string) error { return os.MkdirAll(filepath.Join(image, shared), 0o755) },
		"a link to a folder of the host": func(image string) error {
			return errors.Join(os.RemoveAll(filepath.Join(image, "var/tmp")),
				os.Symlink("/etc", filepath.Join(image, "var/tmp")))
		},
		"the first folder is a link": func(image string) error {
			return errors.Join(os.RemoveAll(filepath.Join(image, "var")), os.Symlink("/nowhere", filepath.Join(image, "var")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			image := filepath.Join(t.TempDir(), "image")
			if out, err := exec.CommandContext(t.Context(), "cp", "-a", root, image).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err := prepare(image); err != nil {
				t.Fatal(err)
			}
			before := listing(t, image)
			for _, out := range both(t, in(t, image, shared), "cat '"+shared+"/file'; cat /usr/share/image") {
				expect.Equal(t, out, "xthe image", "it printed")
			}
			if strings.Contains(name, "another") {
				for _, out := range both(t, in(t, image, shared), "cat /var/tmp/other /var/tmp/link '"+dir+"/a/other'") {
					expect.Equal(t, out, "keptkeptkept", "beside it stands")
				}
			}
			if after := listing(t, image); after != before {
				t.Errorf("the image was changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
	if !changed(t, "/etc").Equal(etc) {
		t.Error("this host's /etc was changed")
	}
}

// changed returns the time when a folder got or lost an entry.
func changed(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// TestRootFilesAreFoundInside checks that links of an image lead to files of the image.
func TestRootFilesAreFoundInside(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "etc/real"), "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(root, "etc/real"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"usr/bin/absolute": "/etc/real", "usr/bin/upwards": "../../../../../../etc/real", "usr/bin/twice": "absolute",
		"usr/bin/host": "/etc/passwd", "usr/bin/hostup": "../../../../../../../../../../../etc/passwd",
		"usr/bin/loop": "loop", "bin": "usr/bin",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o755),
			os.Symlink(target, filepath.Join(root, link))); err != nil {
			t.Fatal(err)
		}
	}
	r := process.New(process.Options{Root: root})
	for _, name := range []string{"absolute", "upwards", "twice"} {
		if path, err := process.FindIn(root, name); err != nil || path != "/usr/bin/"+name {
			t.Errorf("%s: %q %v", name, path, err)
		}
		if text, err := r.ReadFile(t.Context(), "/bin/"+name); err != nil || string(text) != "#!/bin/sh\n" {
			t.Errorf("%s holds %q %v", name, text, err)
		}
	}
	for _, name := range []string{"host", "hostup", "loop", "absent", "sh"} {
		if path, err := process.FindIn(root, name); !errors.Is(err, runtime.ErrNotInstalled) {
			t.Errorf("%s: %q %v", name, path, err)
		}
		if text, err := r.ReadFile(t.Context(), "/bin/"+name); err == nil {
			t.Errorf("%s holds %q", name, text)
		}
	}
}

// TestRootPassesStreams checks the streams, the errors and the end of tools in a root.
func TestRootPassesStreams(t *testing.T) {
	r := in(t, hostRoot(t))
	ctx := t.Context()
	long := strings.Repeat("a long line\n", 1<<17)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var out bytes.Buffer
			if err := r.ToolTo(ctx, "/tmp", strings.NewReader(long), &out, "cat"); err != nil || out.String() != long {
				t.Errorf("%d: %d bytes of %d, %v", i, out.Len(), len(long), err)
			}
		})
	}
	all.Wait()
	if _, err := r.Tool(ctx, "/tmp", strings.NewReader(long), "sh", "-c", ":"); err != nil {
		t.Errorf("a tool that does not read its input: %v", err)
	}
	if out, err := r.Tool(ctx, "/tmp", nil, "cat"); err != nil || len(out) != 0 {
		t.Errorf("without input: %q %v", out, err)
	}
	argument := strings.Repeat("x", 100_000)
	if out, err := r.Tool(ctx, "/tmp", nil, "sh", "-c", `echo ${#1} ${#2} ${#3}`, "sh", argument, argument,
		argument); err != nil || string(out) != "100000 100000 100000\n" {
		t.Errorf("long arguments: %q %v", out, err)
	}
	out, err := r.Tool(ctx, "/tmp", nil, "sh", "-c", "echo before; echo reason >&2; exit 7")
	var failed *command.Error
	if !errors.As(err, &failed) || failed.Stderr != "reason\n" || string(out) != "before\n" ||
		err.Error() != "sh: exit status 7: reason" {
		t.Errorf("a tool that fails: %q %v", out, err)
	}
	if _, err := r.Tool(ctx, "/tmp", nil, "sh", "-c", "kill -9 $$"); err == nil ||
		!strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("a tool that is killed: %v", err)
	}
	if _, err := r.Tool(ctx, "/tmp", nil, "cat", "a\x00b"); err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("an argument with a NUL: %v", err)
	}
	if _, err := r.Tool(ctx, "/tmp", nil, "ovn-nothing"); !errors.Is(err, runtime.ErrNotInstalled) ||
		!errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing tool: %v", err)
	}
	if exit, err := r.Exec(ctx, runtime.Command{Argv: []string{"sh", "-c", "exit 9"}}); exit != 9 || err != nil {
		t.Errorf("exit code %d, %v", exit, err)
	}
}

// TestRootToolsEndWithTheirContext also checks that no process is left.
func TestRootToolsEndWithTheirContext(t *testing.T) {
	mark := fmt.Sprintf("10000%d", os.Getpid())
	r := in(t, hostRoot(t))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := r.Tool(ctx, "/tmp", nil, "sh", "-c", "read never </dev/zero; echo "+mark)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if out, err := exec.CommandContext(t.Context(), "pgrep", "-af", mark).CombinedOutput(); err == nil {
		t.Errorf("left running: %s", out)
	}
	if out, err := r.Tool(t.Context(), "/tmp", nil, "sh", "-c", "echo on"); err != nil || string(out) != "on\n" {
		t.Errorf("the next tool: %q %v", out, err)
	}
}

// TestRootToolsSeeAFolderThatIsMadeAnew removes a folder and makes another of the same name.
func TestRootToolsSeeAFolderThatIsMadeAnew(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	r := in(t, hostRoot(t), folder)
	look := func() string {
		out, err := r.Tool(t.Context(), "/tmp", nil, "sh", "-c", `cat "$0" 2>/dev/null || echo none`,
			filepath.Join(folder, "file"))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := look(); got != "none\n" {
		t.Errorf("without the folder: %q", got)
	}
	// A tool that runs meanwhile is not disturbed, nor are those that start.
	var all sync.WaitGroup
	all.Go(func() {
		out, err := r.Tool(t.Context(), "/tmp", strings.NewReader("x"), "sh", "-c",
			"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; cat")
		if err != nil || string(out) != "x" {
			t.Errorf("a tool that ran meanwhile: %q %v", out, err)
		}
	})
	for range 10 {
		all.Go(func() {
			for range 20 {
				if out, err := r.Tool(t.Context(), "/tmp", nil, "sh", "-c", "echo on"); err != nil || string(out) != "on\n" {
					t.Errorf("a tool that started meanwhile: %q %v", out, err)
				}
			}
		})
	}
	defer all.Wait()
	for _, text := range []string{"first", "second", "third", "fourth"} {
		write(t, filepath.Join(folder, "file"), text)
		expect.Equal(t, look(), text)
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRootThatIsGone checks the error for an image that was removed.
func TestRootThatIsGone(t *testing.T) {
	r := in(t, filepath.Join(t.TempDir(), "removed"))
	if _, err := r.Tool(t.Context(), "/tmp", nil, "sh"); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "root file system of the image") {
		t.Errorf("error: %v", err)
	}
	relative := in(t, "some/folder")
	if _, err := relative.Tool(t.Context(), "/tmp", nil, "sh"); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("error: %v", err)
	}
}

// forbidden is set in a test process for which the system forbids user namespaces.
const forbidden = "OVS_OFFLINE_TEST_FORBIDDEN"

// again runs a test once more in a process that is started through a command line.
func again(t *testing.T, name, root string, prefix ...string) {
	t.Helper()
	program := filepath.Join(root, "test")
	raw, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, raw, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), prefix[0], append(prefix[1:], program, "-test.run=^"+name+"$", "-test.v")...)
	c.Dir, c.Env = "/", append(os.Environ(), forbidden+"="+root)
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
		t.Error(err)
	}
}

// TestRootWhereAUserMayHaveNoNamespaces checks that the error names the next step.
func TestWithoutNamespacesAUserHasNoRoot(t *testing.T) {
	if root := os.Getenv(forbidden); root != "" {
		r := in(t, root)
		_, err := r.Tool(t.Context(), "/tmp", nil, "sh")
		if err == nil || !strings.Contains(err.Error(), "operation not permitted") ||
			!strings.Contains(err.Error(), "use --runtime podman or docker") {
			t.Errorf("a tool: %v", err)
		}
		if _, err = r.Exec(t.Context(), runtime.Command{Argv: []string{"sh"}}); err == nil ||
			!strings.Contains(err.Error(), "use --runtime podman or docker") {
			t.Errorf("a program of the user: %v", err)
		}
		dir := t.TempDir()
		err = r.Start(t.Context(), runtime.Daemon{Role: "ovsdb-server-ovs", Program: "ovsdb-server", RunDir: dir,
			Log: filepath.Join(dir, "log")})
		if err == nil || !strings.Contains(err.Error(), "use --runtime podman or docker") {
			t.Errorf("a daemon: %v", err)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can forbid namespaces to another user")
	}
	root := hostRoot(t)
	for path := root; path != "/tmp" && path != "/"; path = filepath.Dir(path) {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A process whose root is not that of its mount namespace can make no user namespace.
	again(t, t.Name(), root, "unshare", "-m", "sh", "-c",
		`mount --rbind / /mnt && exec chroot --userspec=65534:65534 /mnt "$@"`, "sh")
}

// TestWithoutNamespacesRootHasARoot checks that root needs no user namespaces.
func TestWithoutUserNamespacesRootRunsTools(t *testing.T) {
	if root := os.Getenv(forbidden); root != "" {
		write(t, filepath.Join(root, "usr/share/image"), "the image")
		for _, out := range both(t, in(t, root),
			"cat /usr/share/image; while read name value; do case $name in Cap[PEIA]*|NoNewPrivs:) echo $value; esac; done </proc/self/status") {
			expect.Equal(t, out, "the image"+strings.Repeat("0000000000000000\n", 4)+"1\n", "it printed")
		}
		startsServer(t, root)
		return
	}
	again(t, t.Name(), hostRoot(t), "unshare", "-Urm", "sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$@"`, "sh")
}

// startsServer starts and ends an ovsdb-server in a root.
func startsServer(t *testing.T, root string) {
	t.Helper()
	dir := t.TempDir()
	r := in(t, root, dir)
	db := filepath.Join(dir, "conf.db")
	if _, err := r.Tool(t.Context(), dir, nil, "ovsdb-tool", "create", db); err != nil {
		t.Fatal(err)
	}
	d := runtime.Daemon{Role: "ovsdb-server-ovs", Program: "ovsdb-server", RunDir: dir, Args: []string{db},
		Log: filepath.Join(dir, "log")}
	if err := r.Start(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, process.RunningRoot(filepath.Dir(dir)), root, "it runs in")
	if err := r.Stop(t.Context(), d); err != nil {
		t.Error(err)
	}
}
