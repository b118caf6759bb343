package cmd

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
)

// nobodyUID is the user id of nobody, an unprivileged user, on Debian and Fedora.
const nobodyUID = 65534

// built is ovs-offline, which the first test that needs it builds. TestMain removes its folder.
var built struct {
	sync.Mutex
	dir, path string
}

// program returns the path of ovs-offline, which every user may run.
func program(t *testing.T) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.path != "" {
		return built.path
	}
	dir, err := os.MkdirTemp("", "ovs-offline-program-")
	if err != nil {
		t.Fatal(err)
	}
	built.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ovs-offline")
	// With -trimpath, go would compile all packages once more.
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	built.path = path
	return path
}

// actAs makes a program at a path, of the name ovs-offline, of this test binary: TestMain acts as ovs-offline under
// that name.
func actAs(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, path) == nil {
		return // a copy takes time, and cannot run while a child of another test still has it open for writing
	}
	copyFile(t, self, path)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// public makes a temporary folder that every user may enter, unlike t.TempDir.
func public(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ovs-offline-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ordinaryUser runs programs as an unprivileged user, from a folder of its own.
type ordinaryUser struct {
	t         *testing.T
	dir, home string
}

func newOrdinaryUser(t *testing.T) ordinaryUser {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as you")
	}
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl")
	u := ordinaryUser{t: t, dir: public(t)}
	u.home = filepath.Join(u.dir, "home")
	if err := os.Mkdir(u.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(u.home, nobodyUID, nobodyUID); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u ordinaryUser) run(argv ...string) string {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = u.home, []string{"PATH=/usr/bin:/bin", "HOME=" + u.home, "OVS_DBG_WORKDIR=" + u.home + "/wd"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	out, err := c.CombinedOutput()
	if err != nil {
		u.t.Errorf("%v: %v\n%s", argv, err, out)
	}
	return string(out)
}

// replay runs collect, start, a trace and stop.
func (u ordinaryUser) replay(bin string, start ...string) {
	u.t.Helper()
	report := filepath.Join(u.dir, "sosreport.tar.xz")
	copyFile(u.t, "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz", report)
	u.run(bin, "collect-sos", report)
	u.run(append([]string{bin, "start"}, start...)...)
	if out := u.run(u.home+"/wd/bin/ovs-appctl", "ofproto/trace", "breth0", "in_port=1,icmp"); !strings.Contains(out,
		"Datapath actions: ") {
		u.t.Errorf("the trace printed %s", out)
	}
	u.run(bin, "stop")
	if _, err := os.Stat(u.home + "/wd/db/ovs/conf.db"); err != nil {
		u.t.Error(err)
	}
	if left := left(u.t, u.home); len(left) > 0 {
		u.t.Errorf("processes are left: %v", left)
	}
}

// TestOrdinaryUserCanReplay runs a session as an unprivileged user.
func TestOrdinaryUserCanReplay(t *testing.T) {
	u := newOrdinaryUser(t)
	u.replay(program(t))
}

// TestWhatMayNotBeReadIsNamed collects reports of which the user may not read one, and into a folder that is another
// user's.
func TestWhatMayNotBeReadIsNamed(t *testing.T) {
	u := newOrdinaryUser(t)
	bin := program(t)
	for name, mode := range map[string]os.FileMode{"mine.tar.xz": 0o644, "yours.tar.xz": 0} {
		report := filepath.Join(u.dir, "reports", name)
		if err := os.MkdirAll(filepath.Dir(report), 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, captures.Report(t, "captures/ovn-kubernetes-worker"), report)
		if err := os.Chmod(report, mode); err != nil {
			t.Fatal(err)
		}
	}
	const explained = `"$@" 2>&1; echo "exit $?"`
	run := func(args ...string) string {
		return u.run(append([]string{"sh", "-c", explained, "sh", bin}, args...)...)
	}
	for what, want := range map[string][]string{
		run("collect", u.dir+"/reports"): {"yours.tar.xz: ", "permission denied", "exit 3"},
		run("compare", u.dir+"/reports/mine.tar.xz", u.dir+"/reports/yours.tar.xz"): {"yours.tar.xz: permission denied",
			"another user may read it", "exit 1"},
		run("-w", u.dir+"/wd", "collect", u.dir+"/reports/mine.tar.xz"): {"permission denied",
			"choose another with -w", "exit 1"},
	} {
		for _, text := range want {
			if !strings.Contains(what, text) {
				t.Errorf("no %q in %s", text, what)
			}
		}
	}
}

// TestOrdinaryUserCanReplayInAnImage does the same in an image that the user added.
func TestOrdinaryUserCanReplayInAnImage(t *testing.T) {
	sweep.Only(t, "TestImagesOfAnOrdinaryUser/used")
	u := newOrdinaryUser(t)
	bin, archive := program(t), filepath.Join(u.dir, "image.tar")
	engines.HostArchive(t, archive)
	u.run(bin, "image", "add", "docker-archive:"+archive, "-t", "mine")
	u.replay(bin, "--image=mine")
	u.run(bin, "image", "rm", "mine")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	opened  = regexp.MustCompile(`open(?:at)?\((?:AT_FDCWD, )?"([^"]*)", ([A-Z_|]*O_(?:CREAT|WRONLY|RDWR)[A-Z_|]*).*\) = [0-9]`)
	changed = regexp.MustCompile(`(?:mkdir|rename|unlink|symlink|link|rmdir|chmod|truncate)[a-z0-9]*\(.*"(/[^"]*)".*\) = 0`)
)

// TestWritesOnlyTheWorkdir traces all files that collect and start, their daemons
// and tools open for writing.
func TestWritesOnlyTheWorkdir(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: ", err)
	}
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl")
	dir := t.TempDir()
	bin, wd := program(t), filepath.Join(dir, "wd")
	report := "../testdata/captures/ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"
	// strace ends with the last process that it follows, so one run starts and stops
	// the daemons.
	const both = `"$0" -w "$1" start && "$0" -w "$1" stop`
	for _, args := range [][]string{{bin, "-w", wd, "collect-sos", report}, {"sh", "-c", both, bin, wd}} {
		log := filepath.Join(dir, filepath.Base(args[0])+".strace")
		argv := append([]string{"-f", "-qq", "-o", log, "-e",
			"trace=open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,symlink,symlinkat,link,linkat,rmdir,truncate,pivot_root,execve"}, args...)
		if out, err := exec.Command(strace, argv...).CombinedOutput(); err != nil {
			if bytes.Contains(out, []byte("Operation not permitted")) {
				t.Skip("strace may not trace here: ", string(out))
			}
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if n := checkWrites(t, log, wd); n == 0 {
			t.Error("strace saw no writes in the workdir")
		}
	}
}

// checkWrites reports writes outside of the workdir and returns the number of
// writes inside. Between pivot_root and execve, a process makes the root of its daemon, which is a file system in memory.
func checkWrites(t *testing.T, log, wd string) (inside int) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	ofDaemon := map[string]bool{} // by process
	for scanner.Scan() {
		line := scanner.Text()
		process, call, _ := strings.Cut(line, " ")
		switch call = strings.TrimSpace(call); {
		case (strings.HasPrefix(call, "pivot_root(") || strings.HasPrefix(call, "<... pivot_root ")) && strings.HasSuffix(call, "= 0"):
			ofDaemon[process] = true
		case strings.HasPrefix(call, "execve("):
			delete(ofDaemon, process)
		}
		if ofDaemon[process] {
			continue
		}
		m := opened.FindStringSubmatch(line)
		if m == nil {
			m = changed.FindStringSubmatch(line)
		}
		if m == nil {
			continue
		}
		switch path := m[1]; {
		case path == wd || strings.HasPrefix(path, wd+"/"):
			inside++
		case !filepath.IsAbs(path), // relative to an open folder of the workdir
			strings.HasPrefix(path, "/dev/"), strings.HasPrefix(path, "/proc/"),
			strings.Contains(line, "O_TMPFILE"): // has no name, and is removed with its process
		default:
			t.Errorf("%s: written outside of the workdir: %s", filepath.Base(log), line)
		}
	}
	return inside
}
