//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// node is an OVS database server and an ovs-vswitchd in one directory.
type node struct {
	dir          string
	server, vswd runtime.Daemon
	r            *Runtime
}

func newNode(t *testing.T, options Options, subdir string) *node {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovs-vswitchd", "ovsdb-tool", "ovs-vsctl", "ovs-appctl", "ovs-ofctl")
	dir := filepath.Join(t.TempDir(), subdir)
	run := filepath.Join(dir, "var-run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	options.Root, options.Folders = os.Getenv(rootVariant), []string{dir}
	n := &node{dir: dir, r: New(options)}
	t.Cleanup(func() {
		if err := n.r.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	db, sock := filepath.Join(dir, "conf.db"), filepath.Join(run, "db.sock")
	n.server = runtime.Daemon{Role: "ovsdb-server-ovs", Program: "ovsdb-server", RunDir: run,
		Args: []string{db, "--remote=punix:" + sock}, Log: filepath.Join(dir, "ovsdb-server.log")}
	n.vswd = runtime.Daemon{Role: "ovs-vswitchd", Program: "ovs-vswitchd", RunDir: run,
		Args: []string{"--enable-dummy=system", "unix:" + sock}, Log: filepath.Join(dir, "ovs-vswitchd.log")}
	n.tool(t, "ovsdb-tool", "create", db)
	t.Cleanup(func() {
		for _, d := range []runtime.Daemon{n.vswd, n.server} {
			if err := n.r.Stop(context.Background(), d); err != nil {
				t.Error(err)
			}
		}
	})
	return n
}

func (n *node) start(t *testing.T) {
	t.Helper()
	for _, d := range []runtime.Daemon{n.server, n.vswd} {
		if err := n.r.Start(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *node) tool(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := n.r.Tool(t.Context(), n.server.RunDir, nil, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (n *node) pid(t *testing.T, d runtime.Daemon) int {
	t.Helper()
	s, err := n.r.State(t.Context(), d)
	if err != nil || !s.Running || s.PID == 0 {
		t.Fatalf("%s: %+v, %v", d.Role, s, err)
	}
	return s.PID
}

// remarks returns the runtime's remarks but for the one about a kernel without Landlock.
func (n *node) remarks() []string {
	return slices.DeleteFunc(n.r.Remarks(), func(line string) bool { return line == noLandlock })
}

// hasEnded checks that a daemon does not run.
func (n *node) hasEnded(t *testing.T, d runtime.Daemon) {
	t.Helper()
	if s, err := n.r.State(t.Context(), d); err != nil || s.Running {
		t.Errorf("%s: got %+v, %v, want that it has ended", d.Role, s, err)
	}
}

// left lists the files in the run directory and beside the database.
func (n *node) left(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"var-run/*", "var-run/.*", ".*lock~"} {
		found, err := filepath.Glob(filepath.Join(n.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if base := filepath.Base(path); base != "." && base != ".." {
				names = append(names, base)
			}
		}
	}
	return names
}

func status(t *testing.T, pid int, field string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestDaemonsAreReadyAloneAndUnprivileged(t *testing.T) {
	n := newNode(t, Options{}, "work dir")
	if ok, why := n.r.Isolated(t.Context()); !ok {
		t.Skip("no namespaces here: ", why)
	}
	n.start(t)
	if c, err := net.Dial("unix", filepath.Join(n.server.RunDir, "db.sock")); err != nil {
		t.Errorf("not ready: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	n.tool(t, "ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
	if out := n.tool(t, "ovs-ofctl", "dump-flows", "br0"); !strings.Contains(out, "NORMAL") {
		t.Errorf("flows by the bridge's name: %q", out)
	}
	expect.Equal(t, RunningRoot(n.dir), os.Getenv(rootVariant), "the daemons run in")
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []runtime.Daemon{n.server, n.vswd} {
		pid := n.pid(t, d)
		checkUnprivileged(t, pid)
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil || ns == own {
			t.Errorf("%s shares the network namespace %s (%v)", d.Role, ns, err)
		}
		for _, kind := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
			table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, kind))
			if err != nil || strings.Count(string(table), "\n") > 1 {
				t.Errorf("%s has %s sockets: %s %v", d.Role, kind, table, err)
			}
		}
	}
	routes, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/fib_trie", n.pid(t, n.vswd)))
	if err != nil || !strings.Contains(string(routes), "127.0.0.1") {
		t.Errorf("lo is not up: %q %v", routes, err)
	}
	if remarks := n.remarks(); len(remarks) != 0 {
		t.Errorf("remarks: %q", remarks)
	}
}

func checkUnprivileged(t *testing.T, pid int) {
	t.Helper()
	for field, want := range map[string]string{"CapEff": "0000000000000000", "CapPrm": "0000000000000000",
		"CapInh": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1"} {
		expect.Equal(t, status(t, pid, field), want, "process", pid, field)
	}
}

func TestSecondStartIsRefusedAndStopLeavesNothing(t *testing.T) {
	n := newNode(t, Options{StopTimeout: time.Hour}, "")
	n.start(t)
	n.tool(t, "ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
	for _, d := range []runtime.Daemon{n.server, n.vswd} {
		if err := n.r.Start(t.Context(), d); !errors.Is(err, runtime.ErrRunning) {
			t.Errorf("%s: %v", d.Role, err)
		}
		// The process is found even if the pid file was deleted.
		if err := os.Rename(daemon.PIDFile(d), daemon.PIDFile(d)+".away"); err != nil {
			t.Fatal(err)
		}
		if err := n.r.Start(t.Context(), d); !errors.Is(err, runtime.ErrRunning) {
			t.Errorf("%s without a pid file: %v", d.Role, err)
		}
		if err := os.Rename(daemon.PIDFile(d)+".away", daemon.PIDFile(d)); err != nil {
			t.Fatal(err)
		}
	}
	n.tool(t, "ovs-appctl", "time/stop")
	for _, d := range []runtime.Daemon{n.vswd, n.server} {
		// A daemon that has to be killed outlives this context.
		if err := n.r.Stop(ovs.Context(t), d); err != nil {
			t.Error(err)
		}
	}
	if left := n.left(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	if root := RunningRoot(n.dir); root != "" {
		t.Errorf("no daemon runs, in %q", root)
	}
}

func TestStartAfterKill(t *testing.T) {
	n := newNode(t, Options{}, "")
	n.start(t)
	n.tool(t, "ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
	for _, d := range []runtime.Daemon{n.server, n.vswd} {
		pid := n.pid(t, d)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { s, err := n.r.State(t.Context(), d); return err == nil && !s.Running })
		if s, _ := n.r.State(t.Context(), d); s.Problem == "" {
			t.Errorf("%s was killed and State knows of no problem", d.Role)
		}
	}
	n.start(t)
	sockets, err := filepath.Glob(filepath.Join(n.server.RunDir, "*.ctl"))
	if err != nil || len(sockets) != 2 {
		t.Errorf("control sockets: %q %v", sockets, err)
	}
	n.tool(t, "ovs-ofctl", "dump-flows", "br0")
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	ovs.Await(t, "the condition of this line", so)
}

func TestStopEndsADaemonThatDoesNotListen(t *testing.T) {
	n := newNode(t, Options{StopTimeout: 500 * time.Millisecond}, "")
	n.start(t)
	if err := syscall.Kill(n.pid(t, n.vswd), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := n.r.Stop(t.Context(), n.vswd); err != nil {
		t.Fatal(err)
	}
	n.hasEnded(t, n.vswd)
}

// TestStopEndsADaemonOfAKilledStart stops a daemon at each moment of its start, which another process has begun and no
// longer waits for: a daemon forks itself, and the child takes the lock.
func TestStopEndsADaemonOfAKilledStart(t *testing.T) {
	n := newNode(t, Options{}, "")
	program, err := exec.LookPath("ovsdb-server")
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 20
	for round := range rounds {
		cmd := exec.Command(program, append([]string{"--pidfile=" + daemon.PIDFile(n.server), "--detach"},
			n.server.Args...)...)
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+n.server.RunDir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(round) * 200 * time.Microsecond)
		if err := n.r.Stop(t.Context(), n.server); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		_ = cmd.Wait()
		n.hasEnded(t, n.server)
	}
}

func TestLongPath(t *testing.T) {
	n := newNode(t, Options{}, strings.Repeat("a long name/", 15))
	n.start(t)
	n.tool(t, "ovs-vsctl", "show")
	if err := os.Remove(daemon.PIDFile(n.vswd)); err != nil {
		t.Fatal(err)
	}
	if err := n.r.Start(t.Context(), n.vswd); !errors.Is(err, runtime.ErrRunning) {
		t.Errorf("a control socket beyond 107 bytes was not found alive: %v", err)
	}
	n.pid(t, n.vswd) // State finds it too, and Stop ends it, which the cleanup checks
	if err := n.r.Stop(t.Context(), n.vswd); err != nil {
		t.Error(err)
	}
	n.hasEnded(t, n.vswd)
}

func TestFailedStartGivesReasonAndLeavesNothing(t *testing.T) {
	n := newNode(t, Options{}, "")
	if err := os.WriteFile(filepath.Join(n.dir, "conf.db"), []byte("no database\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := n.r.Start(t.Context(), n.server)
	if err == nil || !strings.Contains(err.Error(), "unexpected file format") {
		t.Errorf("error: %v", err)
	}
	if left := n.left(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestDamagedDatabaseIsRemarked(t *testing.T) {
	n := newNode(t, Options{}, "")
	f, err := os.OpenFile(filepath.Join(n.dir, "conf.db"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("OVSDB JSON 500 0123456789012345678901234567890123456789\n{\"half"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.r.Start(t.Context(), n.server); err != nil {
		t.Fatal(err)
	}
	if remarks := strings.Join(n.r.Remarks(), "\n"); !strings.Contains(remarks, "conf.db: error reading 500 bytes") {
		t.Errorf("remarks: %q", remarks)
	}
}

// TestEndedContextLeavesNothing starts a program that hangs, as a daemon may, and ends
// the context.
func TestEndedContextLeavesNothing(t *testing.T) {
	n := newNode(t, Options{}, "")
	bin := t.TempDir()
	// The program behaves like a daemon that hangs after it has forked and become a
	// session leader.
	script := "#!/bin/sh\nsetsid sh -c 'echo $$ >" + n.dir + "/child; exec sleep 1000' &\nexec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(bin, "ovs-vswitchd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_ = ovs.Until(ctx, "the child", func() bool { return daemon.LogSize(filepath.Join(n.dir, "child")) > 0 })
	}()
	if err := n.r.Start(ctx, n.vswd); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	if left := sleepers(t, n); left != "" {
		t.Errorf("left running: %s", left)
	}
	n.r.options.StartTimeout = 300 * time.Millisecond
	if err := n.r.Start(t.Context(), n.vswd); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "300ms") {
		t.Errorf("error: %v", err)
	}
	if left := sleepers(t, n); left != "" {
		t.Errorf("left running: %s", left)
	}
}

// sleepers lists living processes with this node's directory in their
// environment.
func sleepers(t *testing.T, n *node) string {
	t.Helper()
	var found []string
	l := launch{variable: "OVS_RUNDIR=" + n.server.RunDir}
	for _, pid := range processes(l.isMarked) {
		found = append(found, fmt.Sprint(pid, " ", status(t, pid, "Name")))
	}
	return strings.Join(found, ", ")
}

// TestInterruptedStartLeavesNothing interrupts the start of a real daemon at later and
// later moments.
func TestInterruptedStartLeavesNothing(t *testing.T) {
	n := newNode(t, Options{}, "")
	n.r.Isolated(t.Context())
	for delay := time.Duration(0); delay < 60*time.Millisecond; delay += 3 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), delay)
		err := n.r.Start(ctx, n.server)
		cancel()
		if err == nil {
			if err := n.r.Stop(t.Context(), n.server); err != nil {
				t.Fatal(err)
			}
		}
		if left := sleepers(t, n); left != "" {
			t.Fatalf("after %v (%v) left running: %s", delay, err, left)
		}
		if left := n.left(t); len(left) != 0 {
			t.Fatalf("after %v (%v) left: %q", delay, err, left)
		}
	}
}

func TestDaemonKeepsNoInheritedFile(t *testing.T) {
	n := newNode(t, Options{}, "")
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil { // without close-on-exec, as a shell's 3>&1
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(pipe[0]), "reader")
	defer func() { _ = reader.Close() }()
	if err := n.r.Start(t.Context(), n.server); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(pipe[1]); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { _, err := reader.Read(make([]byte, 1)); read <- err }()
	if err := ovs.Receive(t, "the end of a pipe that the daemon must not hold open", read); err == nil {
		t.Error("something was written into the pipe")
	}
}

func TestToolEnvironmentAndErrors(t *testing.T) {
	n := newNode(t, Options{}, "")
	t.Setenv("OVN_NB_DB", "tcp:192.0.2.1:6641")
	t.Setenv("OVS_RUNDIR", "/elsewhere")
	env := n.tool(t, "env")
	if strings.Contains(env, "192.0.2.1") || strings.Contains(env, "elsewhere") ||
		!strings.Contains(env, "OVS_RUNDIR="+n.server.RunDir) {
		t.Errorf("environment: %s", env)
	}
	_, err := n.r.Tool(t.Context(), n.server.RunDir, nil, "ovn-nothing", "x")
	var failed *command.Error
	if !errors.As(err, &failed) || !errors.Is(err, runtime.ErrNotInstalled) || !errors.Is(err, exec.ErrNotFound) ||
		!strings.Contains(err.Error(), "ovn-common") {
		t.Errorf("error: %v", err)
	}
	if err := Missing("ovs-vsctl", "ovs-vswitchd-none"); !errors.Is(err, runtime.ErrNotInstalled) ||
		strings.Contains(err.Error(), "ovs-vsctl") {
		t.Errorf("missing: %v", err)
	}
}

func TestFindSkipsWrappers(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"ovs-vsctl", WrapperMark} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if path, err := Find("ovs-vsctl"); err == nil && filepath.Dir(path) == bin {
		t.Errorf("found the wrapper %s", path)
	}
}

func TestWithoutNamespacesAndFilter(t *testing.T) {
	n := newNode(t, Options{NoNamespaces: true, NoFilter: true}, "")
	checkFallback(t, n)
}

func checkFallback(t *testing.T, n *node) {
	t.Helper()
	ok, why := n.r.Isolated(t.Context())
	if ok || why == "" {
		t.Fatalf("isolated: %v, %q", ok, why)
	}
	t.Log(why)
	n.start(t)
	checkUnprivileged(t, n.pid(t, n.server))
	checkUnprivileged(t, n.pid(t, n.vswd))
	if remarks := n.remarks(); len(remarks) != 1 || !strings.Contains(remarks[0], "without a network namespace") {
		t.Errorf("remarks: %q", remarks)
	}
}

// rootVariant is the environment variable that names the root file system in which the
// tests run daemons and tools; unset for this host's.
const rootVariant = "OVS_OFFLINE_TEST_ROOT"

// variant is the environment variable that selects the test that the test binary runs
// when it starts itself again.
const variant = "OVS_OFFLINE_TEST_VARIANT"

func TestWhereNamespacesAreForbidden(t *testing.T) {
	ovs.Need(t)
	if os.Getenv(variant) == "forbidden" {
		checkFilter(t, newNode(t, Options{}, ""))
		return
	}
	if out, err := exec.Command("unshare", "-Ur", "true").CombinedOutput(); err != nil {
		t.Skipf("there are no namespaces here to forbid: %v %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The limit applies to the user namespace in which it is written.
	again := exec.Command("unshare", "-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$@"`,
		"sh", self, "-test.run=^TestWhereNamespacesAreForbidden$", "-test.v")
	again.Env = append(os.Environ(), variant+"=forbidden")
	out, err := again.CombinedOutput()
	if again.ProcessState != nil && again.ProcessState.ExitCode() == 77 || errors.Is(err, exec.ErrNotFound) {
		t.Skipf("can't forbid namespaces here: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestAsOrdinaryUser(t *testing.T) {
	ovs.Need(t)
	if os.Getuid() != 0 || os.Getenv(variant) != "" {
		t.Skip("only root can become another user")
	}
	again := exec.Command("/proc/self/exe", "-test.run=Test[^AW]", "-test.v")
	if !sweep.Whole() { // root runs every test in a root file system, and an ordinary user those that are about one
		again.Args = append(again.Args, "-test.skip=TestRootRunsEveryTest")
	}
	again.Dir = "/"
	again.Env = append(os.Environ(), variant+"=nobody", "TMPDIR=/tmp", "HOME=/nonexistent")
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
