package cmd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// bench is the setup of a fault test: the program, two sos reports, and the workdir
// after collecting each.
type bench struct {
	dir, bin         string
	before, after    string // sos reports: the collected one, and the one that --force replaces it with
	pristine         string // a workdir with the collected report before
	was, becomes     string // the digests of the two collections
	mu               sync.Mutex
	walked, survived int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	bin := program(t)
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // syncing a hundred workdirs to a disk takes minutes
	}
	dir := public(t)
	b := &bench{dir: dir, bin: bin, pristine: filepath.Join(dir, "pristine")}
	b.before = capture(t, "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	b.after = capture(t, "ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz")
	b.must(t, b.pristine, "collect-sos", b.before)
	b.was = digest(t, b.pristine)
	other := b.workdir(t, "becomes")
	b.must(t, other, "collect-sos", "--force", b.after)
	b.becomes = digest(t, other)
	if b.was == b.becomes {
		t.Fatal("both reports have the same content: the test could not detect a mixture")
	}
	return b
}

func capture(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../testdata/captures", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// workdir returns a copy of the workdir with the first report.
func (b *bench) workdir(t *testing.T, name string) string {
	t.Helper()
	wd := filepath.Join(b.dir, name)
	if err := os.CopyFS(wd, os.DirFS(b.pristine)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(wd, 0o700); err != nil {
		t.Fatal(err)
	}
	return wd
}

// run runs the program and returns its exit code, -1 if a signal ended it.
func (b *bench) run(wd string, args ...string) (code int, printed string) {
	return unlocked(func() *exec.Cmd { return exec.Command(b.bin, append([]string{"-w", wd}, args...)...) })
}

// unlocked runs a command again and again while its workdir is in use: a killed program's lock
// is held until its forked child has executed another program.
func unlocked(command func() *exec.Cmd) (code int, printed string) {
	// The last outcome says what was in vain.
	_ = ovs.Until(context.Background(), "the lock of a workdir", func() bool {
		code, printed = outcome(command())
		return code != exitFailed || !strings.Contains(printed, workdir.ErrInUse.Error())
	})
	return code, printed
}

// outcome runs a command and returns its exit code and output. The output goes to a
// file: strace keeps it open as long as the daemons run, and a pipe would block.
func outcome(cmd *exec.Cmd) (code int, printed string) {
	return watched(cmd, func(int, <-chan struct{}) {})
}

// watched does the same, and calls watch with the process ID and a channel that is closed
// when the process has ended.
func watched(cmd *exec.Cmd, watch func(pid int, ended <-chan struct{})) (code int, printed string) {
	out, err := os.CreateTemp("", "printed-")
	if err != nil {
		return -2, err.Error()
	}
	defer out.Close()
	os.Remove(out.Name())
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return -2, err.Error()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait() // its error is in ProcessState
	}()
	watch(cmd.Process.Pid, ended)
	<-ended
	raw, err := io.ReadAll(io.NewSectionReader(out, 0, 1<<20))
	if err != nil {
		return -2, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

func (b *bench) must(t *testing.T, wd string, args ...string) {
	t.Helper()
	if code, printed := b.run(wd, args...); code != 0 {
		t.Errorf("%v: exit code %d\n%s", args, code, printed)
	}
}

// digest lists the files of a workdir with their checksums. It reports files that are
// not in the manifest or differ from it.
func digest(t *testing.T, wd string) string {
	t.Helper()
	var m workdir.Manifest
	if err := workdir.ReadJSON(filepath.Join(wd, "manifest.json"), &m); err != nil {
		t.Error(err)
		return ""
	}
	recorded := map[string]string{}
	for _, c := range m.Collections {
		for _, f := range c.Files {
			recorded[f.Path] = f.SHA256
		}
	}
	var lines []string
	err := filepath.WalkDir(wd, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(wd, path)
		if err != nil || rel == "manifest.json" || rel == ".lock" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		line := rel + " " + hex.EncodeToString(sum[:])
		if line != rel+" "+recorded[rel] {
			t.Errorf("%s is not as in the manifest, %q", line, recorded[rel])
		}
		delete(recorded, rel)
		lines = append(lines, line)
		return nil
	})
	if err != nil || len(recorded) > 0 {
		t.Errorf("missing in %s: %v %v", wd, recorded, err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sound checks a workdir after a fault: stop works, the workdir contains one of the
// allowed collections completely, and no process is left.
func (b *bench) sound(t *testing.T, wd string, allowed ...string) {
	t.Helper()
	b.must(t, wd, "stop")
	if now := digest(t, wd); !slices.Contains(allowed, now) {
		t.Errorf("the workdir contains none of the allowed collections:\n%s", now)
	}
	b.nothingRuns(t, wd)
}

// nothingRuns checks that no process of a workdir is left.
func (b *bench) nothingRuns(t *testing.T, wd string) {
	t.Helper()
	for pid, line := range left(t, wd) {
		t.Errorf("process %d is left: %q", pid, line)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// left returns the processes of a workdir that do not end by themselves, as running does. A tool
// that a killed program has started ends after its work; a daemon does not.
func left(t *testing.T, wd string) map[int]string {
	t.Helper()
	var left map[int]string
	// What is left after all that time is in the result.
	_ = ovs.Until(context.WithoutCancel(t.Context()), "tools to end", func() bool {
		left = running(t, wd)
		return len(left) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(left)), isDaemon)
	})
	return left
}

// isDaemon reports whether an argument list is that of a daemon.
func isDaemon(line string) bool { return strings.Contains(line, "\x00--pidfile=") }

// running returns the arguments of the processes that have a path below a workdir among
// them, by process ID.
func running(t *testing.T, wd string) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, e := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		pid, noProcess := strconv.Atoi(e.Name())
		if err == nil && noProcess == nil && bytes.Contains(line, []byte(wd+"/")) &&
			!bytes.HasPrefix(line, []byte("strace")) {
			found[pid] = string(line)
		}
	}
	return found
}

// killPoint is a moment at which a process is killed: the when-th time that any thread
// makes the system call, only on the path if one is given.
type killPoint struct {
	call, path string
	when       int
}

func (f killPoint) String() string {
	if f.path != "" {
		return f.call + " " + f.path
	}
	return fmt.Sprintf("%s %d", f.call, f.when)
}

// strace runs the program under strace. With -D, strace is a grandchild: waiting for
// the program does not wait for the daemons, which strace follows as well.
func (b *bench) strace(t *testing.T, wd, log string, f killPoint, options []string, args ...string) (code int,
	printed string) {
	t.Helper()
	argv := []string{"-D", "-f", "-qq", "-o", log}
	if f.path != "" {
		argv = append(argv, "-P", filepath.Join(wd, f.path))
	}
	if f.call != "" {
		argv = append(argv, "-e", "trace="+f.call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", f.call, f.when))
	}
	argv = append(append(argv, options...), b.bin, "-w", wd)
	return outcome(exec.Command("strace", append(argv, args...)...))
}

var (
	// touched matches calls that change, open or connect to a path.
	touched = regexp.MustCompile(`^\d+ +(mkdirat|renameat|unlinkat|openat|connect|execve|symlinkat|fchmodat|bind)\((.*)`)
	quoted  = regexp.MustCompile(`"(/[^"]*)"`)
	// variable matches names that differ in each run.
	variable = regexp.MustCompile(`\d{4,}`)
)

// points returns the fault points of a run, in order: the first time that each call
// touches each path of the workdir.
func (b *bench) points(t *testing.T, wd string, args ...string) []killPoint {
	t.Helper()
	log := filepath.Join(b.dir, args[0]+".trace")
	code, printed := b.strace(t, wd, log, killPoint{},
		[]string{"-e", "trace=mkdirat,renameat,unlinkat,openat,connect,execve,symlinkat,fchmodat,bind"}, args...)
	if code != 0 {
		if strings.Contains(printed, "Operation not permitted") {
			t.Skip("strace may not trace here: ", printed)
		}
		t.Fatalf("%v: exit code %d\n%s", args, code, printed)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []killPoint
	seen := map[killPoint]bool{}
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		m := touched.FindStringSubmatch(scanner.Text())
		if m == nil {
			continue
		}
		for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
			rel, inside := strings.CutPrefix(q[1], wd+"/")
			point := killPoint{call: m[1], path: rel, when: 1}
			if inside && !variable.MatchString(rel) && !seen[point] {
				seen[point] = true
				list = append(list, point)
			}
		}
	}
	return list
}

// spread returns at most n elements of a list, evenly distributed.
func spread(list []killPoint, n int) []killPoint {
	if len(list) <= n {
		return list
	}
	var out []killPoint
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

// firstInEach returns the points at which a call first touches each folder, or file at the top, of a workdir or of a
// staged collection.
func firstInEach(points []killPoint) (firsts []killPoint) {
	seen := map[string]bool{}
	for _, p := range points {
		staged, folder := "", p.path
		if rest, found := strings.CutPrefix(p.path, ".incoming/"); found {
			staged, folder = ".incoming/", rest
		}
		folder, _, _ = strings.Cut(folder, "/")
		if key := p.call + " " + staged + folder; !seen[key] {
			seen[key] = true
			firsts = append(firsts, p)
		}
	}
	return firsts
}

// ofCommit returns the points at which a collection becomes the one that counts.
func ofCommit(points []killPoint) (list []killPoint) {
	for _, p := range points {
		if p.call != "openat" && (p.path == ".incoming/commit.json" || p.path == "manifest.json") {
			list = append(list, p)
		}
	}
	return list
}

// walk kills the program at each point, each time in a copy of the workdir, and
// checks the workdir.
func (b *bench) walk(t *testing.T, points []killPoint, check func(t *testing.T, i int, wd string), args ...string) {
	t.Helper()
	for i, point := range points {
		t.Run(strings.ReplaceAll(point.String(), "/", "_"), func(t *testing.T) {
			t.Parallel()
			wd := b.workdir(t, fmt.Sprintf("%s-%d", args[0], i))
			code, printed := b.strace(t, wd, filepath.Join(b.dir, fmt.Sprintf("%s-%d.trace", args[0], i)), point, nil, args...)
			b.mu.Lock()
			b.walked++
			if code >= 0 {
				b.survived++ // fewer threads made fewer calls, or a daemon was killed instead
			}
			b.mu.Unlock()
			if code == -2 || code == 2 {
				t.Errorf("exit code %d: %s", code, printed)
			}
			check(t, i, wd)
			if err := os.RemoveAll(wd); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKilledAnywhere kills collect and start at each of their steps: the workdir
// contains the earlier or the new collection completely, and the next commands work.
func TestKilledAnywhere(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: ", err)
	}
	b := newBench(t)
	t.Run("collect", func(t *testing.T) {
		points := b.points(t, b.workdir(t, "collect"), "collect-sos", "--force", b.after)
		// Calls without a path in the workdir: on spooled files, and on removed files.
		for _, call := range []string{"renameat", "unlinkat", "fsync", "write", "fchmod"} {
			for _, n := range []int{1, 2, 5, 12, 30} {
				points = append(points, killPoint{call: call, when: n})
			}
		}
		if sweep.Whole() {
			points = spread(points, 48)
		} else {
			points = append(ofCommit(points), spread(firstInEach(points), 16)...)
		}
		b.walk(t, points, func(t *testing.T, _ int, wd string) { b.sound(t, wd, b.was, b.becomes) }, "collect-sos", "--force",
			b.after)
	})
	t.Run("start", func(t *testing.T) {
		wd := b.workdir(t, "start")
		points := b.points(t, wd, "start")
		b.must(t, wd, "stop")
		var daemons []killPoint // while a daemon is being started
		for n := 1; n <= 4; n++ {
			daemons = append(daemons, killPoint{call: "waitid", when: n}, killPoint{call: "wait4", when: n},
				killPoint{call: "execve", when: n})
		}
		if sweep.Whole() {
			points = append(spread(points, 30), daemons...)
		} else {
			points = append(spread(firstInEach(points), 9), daemons[0], daemons[4], daemons[8])
		}
		b.walk(t, points, func(t *testing.T, i int, wd string) {
			if i%2 == 0 {
				b.must(t, wd, "start")
			}
			b.sound(t, wd, b.was)
		}, "start")
	})
	t.Logf("%d fault points; the program survived %d of them", b.walked, b.survived)
	if b.walked-b.survived < b.walked/2 {
		t.Errorf("only %d of %d faults ended the program", b.walked-b.survived, b.walked)
	}
}
