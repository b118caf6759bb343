package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ovs-offline/test/check/sweep"
)

// namespace is a mount namespace with a small file system.
type namespace struct {
	*bench
	pid int    // of the process that holds the namespace
	top string // mount point of the file system, inside the namespace
}

// newNamespace makes a namespace, which ends with the test.
func newNamespace(t *testing.T, b *bench, kilobytes int) *namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	top := filepath.Join(b.dir, fmt.Sprintf("disk-%d", kilobytes))
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("unshare", "-m", "sh", "-c",
		`mount -t tmpfs -o "size=$1k" none "$2" && echo ready && exec sleep 600`, "sh", strconv.Itoa(kilobytes), top)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Skip("no mount namespace here: ", err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	printed := make([]byte, 5)
	if _, err := out.Read(printed); err != nil || string(printed) != "ready" {
		t.Skip("no file system can be mounted here")
	}
	return &namespace{bench: b, pid: holder.Process.Pid, top: top}
}

// inside returns the path at which this process sees a path of the namespace.
func (n *namespace) inside(path string) string { return fmt.Sprintf("/proc/%d/root%s", n.pid, path) }

// do runs a program in the namespace.
func (n *namespace) do(argv ...string) (code int, printed string) {
	return outcome(exec.Command("nsenter", append([]string{"-m", "-t", strconv.Itoa(n.pid), "--"}, argv...)...))
}

func (n *namespace) must(t *testing.T, argv ...string) {
	t.Helper()
	if code, printed := n.do(argv...); code != 0 {
		t.Fatalf("%v: exit code %d\n%s", argv, code, printed)
	}
}

// leave fills the disk until only the given number of kilobytes is left.
func (n *namespace) leave(t *testing.T, kilobytes int) {
	t.Helper()
	fill := n.inside(n.top + "/fill")
	if err := os.WriteFile(fill, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(n.inside(n.top), &st); err != nil {
		t.Fatal(err)
	}
	if size := int64(st.Bavail)*st.Bsize - int64(kilobytes)<<10; size > 0 {
		if err := os.WriteFile(fill, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiskFull fills the disk at increasingly late moments of collect and start. Both
// report it, and the earlier collection is unchanged.
func TestDiskFull(t *testing.T) {
	b := newBench(t)
	n := newNamespace(t, b, 8<<10)
	wd := n.top + "/wd"
	n.must(t, "cp", "-a", b.pristine, wd)
	for _, args := range [][]string{{"collect-sos", "--force", b.after}, {"start"}} {
		failed, passed := 0, 0
		levels := []int{0, 4, 16, 64, 200, 400, 600, 800, 1000, 1300, 1600, 2000, 3000}
		for _, left := range sweep.Rows(levels,
			func(left int) bool { return slices.Contains([]int{0, 64, 400, 1000, 3000}, left) }) {
			n.leave(t, left)
			code, printed := n.do(append([]string{b.bin, "-w", wd}, args...)...)
			switch {
			case code == 0:
				passed++
			case code == 1 && (strings.Contains(printed, "no space left") || strings.Contains(printed, "No space left")),
				code == 3:
				failed++
			default:
				t.Errorf("%s with %d KiB left: exit code %d:\n%s", args[0], left, code, printed)
			}
			if code, printed := n.do(b.bin, "-w", wd, "stop"); code != 0 {
				t.Errorf("stop after %s with %d KiB left: exit code %d:\n%s", args[0], left, code, printed)
			}
			if now := digest(t, n.inside(wd)); now != b.was && now != b.becomes {
				t.Errorf("after %s with %d KiB left: exit code %d, %s:\n%s", args[0], left, code, printed, now)
			}
			b.nothingRuns(t, wd)
			if code == 0 {
				break
			}
		}
		t.Logf("%s: failed %d times, then passed %d times", args[0], failed, passed)
		if failed == 0 || passed == 0 {
			t.Errorf("%s: %d times without room, %d times with it", args[0], failed, passed)
		}
	}
}

// TestReadOnlyDiskIsReported runs commands in a workdir on a read-only file system.
func TestReadOnlyDiskIsReported(t *testing.T) {
	b := newBench(t)
	n := newNamespace(t, b, 8<<10)
	wd := n.top + "/wd"
	n.must(t, "cp", "-a", b.pristine, wd)
	n.must(t, "mount", "-o", "remount,ro", n.top)
	for _, args := range [][]string{{"collect-sos", "--force", b.after}, {"start"}, {"stop"}, {"stop", "--purge"}} {
		if code, printed := n.do(append([]string{b.bin, "-w", wd}, args...)...); code != 1 ||
			!strings.Contains(printed, wd) || !strings.Contains(printed, "read-only file system") {
			t.Errorf("%v: exit code %d:\n%s", args, code, printed)
		}
	}
	if now := digest(t, n.inside(wd)); now != b.was {
		t.Errorf("the collection has changed:\n%s", now)
	}
	b.nothingRuns(t, wd)
}

// TestDaemonsKilledUnderAReplica kills each daemon of a running replica: stop
// still works, and start restarts the daemon.
func TestDaemonsKilledUnderAReplica(t *testing.T) {
	b := newBench(t)
	wd := b.workdir(t, "wd")
	for i, pidFile := range []string{"ovs/ovs-vswitchd.pid", "ovs/ovsdb-server.pid", "ovn_sb/ovsdb-server.pid"} {
		for _, then := range sweep.Rows([]string{"start", "stop"},
			func(then string) bool { return (then == "stop") == (i == 1) }) {
			b.must(t, wd, "start")
			raw, err := os.ReadFile(filepath.Join(wd, "var-run", pidFile))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if then == "start" {
				b.must(t, wd, "start")
				if out, err := exec.Command(filepath.Join(wd, "bin/ovs-ofctl"), "dump-aggregate",
					"br-int").CombinedOutput(); err != nil || !strings.Contains(string(out), "flow_count=958") {
					t.Errorf("after %s was killed: %v %s", pidFile, err, out)
				}
			}
			b.sound(t, wd, b.was)
		}
	}
}

// TestCommandsAtOnce runs many commands in one workdir at the same time.
func TestCommandsAtOnce(t *testing.T) {
	b := newBench(t)
	wd := b.workdir(t, "wd")
	var wg sync.WaitGroup
	for i := range sweep.Count(12, 8) {
		args := [][]string{{"start"}, {"collect-sos", "--force", b.after}, {"stop"},
			{"collect-sos", "--force", b.before}}[i%4]
		wg.Go(func() {
			code, printed := outcome(exec.Command(b.bin, append([]string{"-w", wd}, args...)...))
			if code != 0 && (code != 1 || !strings.Contains(printed, "in use by another ovs-offline command")) {
				t.Errorf("%v: exit code %d\n%s", args, code, printed)
			}
		})
	}
	wg.Wait()
	b.sound(t, wd, b.was, b.becomes)
}

// TestCopiedWorkdir copies the workdir of a running replica: commands in the copy don't
// affect the daemons of the original, even if another user owns the copy.
func TestCopiedWorkdir(t *testing.T) {
	b := newBench(t)
	wd := b.workdir(t, "wd")
	b.must(t, wd, "start")
	other := filepath.Join(b.dir, "copy")
	if out, err := exec.Command("cp", "-a", wd, other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.must(t, other, "stop")
	aggregate := func(wd string) string {
		out, err := exec.Command(filepath.Join(wd, "bin/ovs-ofctl"), "dump-aggregate", "br-int").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", wd, err)
		}
		return string(out)
	}
	if printed := aggregate(wd); !strings.Contains(printed, "flow_count=958") {
		t.Errorf("the first replica answers: %s", printed)
	}
	b.must(t, other, "start")
	b.sound(t, wd, b.was)
	if printed := aggregate(other); !strings.Contains(printed, "flow_count=958") {
		t.Errorf("the replica of the copy answers: %s", printed)
	}
	b.sound(t, other, b.was)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	err := filepath.WalkDir(other, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, nobodyUID, nobodyUID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"start", "stop"} {
		if code, printed := b.run(other, args); code != 1 || !strings.Contains(printed, "belongs to uid 65534") {
			t.Errorf("%s in a workdir of user nobody: exit code %d\n%s", args, code, printed)
		}
		cmd := exec.Command(b.bin, "-w", other, args)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s as user nobody: %v\n%s", args, err, out)
		}
	}
	b.nothingRuns(t, other)
}

// TestClockJumpsAreHarmless starts a replica from files with times in the future,
// and with a clock that jumps.
func TestClockJumpsAreHarmless(t *testing.T) {
	b := newBench(t)
	wd := b.workdir(t, "wd")
	future := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	err := filepath.WalkDir(wd, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(path, future, future)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.must(t, wd, "start")
	b.sound(t, wd, b.was)
	// The clocks of the daemons are years ahead of the command that stops them.
	cmd := exec.Command("unshare", "--time", "--monotonic=99999999", "--boottime=99999999", b.bin, "-w", wd, "start")
	if code, printed := outcome(cmd); code != 0 {
		if strings.Contains(printed, "unshare") {
			t.Skip("no time namespace here: ", printed)
		}
		t.Errorf("exit code %d\n%s", code, printed)
	}
	b.must(t, wd, "collect-sos", "--force", b.after)
	b.sound(t, wd, b.becomes)
}
