package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	check "ovs-offline/test/check/lines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/hostile"
)

// The limits for any input. The time is generous, to detect runs that never end on a
// slow machine; the longest run is logged.
const (
	maxSeconds = 30
	maxMemory  = 256 << 10 // kB, resident
)

// usage is the highest cost of all runs, and its input.
type usage struct {
	mu            sync.Mutex
	seconds       float64
	slowest, big  string
	kilobytes     int64
	runs, refused int
	longest       time.Duration
	longestOf     string
}

// run runs the program on hostile input and checks that it ends with one of its exit
// codes, in bounded time and memory, and prints nothing that controls a terminal.
func (u *usage) run(t *testing.T, name, bin, wd string, args ...string) (code int, printed string) {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"-w", wd}, args...)...)
	var memory int64
	begun := time.Now()
	code, printed = watched(cmd, func(pid int, ended <-chan struct{}) { memory = peak(pid, ended) })
	took := time.Since(begun)
	rusage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no resource usage here")
	}
	seconds := time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano()).Seconds()
	name += " " + args[0]
	if seconds > maxSeconds {
		t.Errorf("%s took %.1f s of processor time", args[0], seconds)
	}
	if memory > maxMemory {
		t.Errorf("%s took %d MB of memory", args[0], memory>>10)
	}
	if code != 0 && code != 1 && code != 3 {
		t.Errorf("%s: exit code %d:\n%.2000q", args[0], code, printed)
	}
	if strings.Contains(printed, "goroutine ") {
		t.Errorf("%s panicked:\n%s", args[0], printed)
	}
	check.Harmless(t, printed)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.runs++
	if code == 1 {
		u.refused++
	}
	if seconds > u.seconds {
		u.seconds, u.slowest = seconds, name
	}
	if took > u.longest {
		u.longest, u.longestOf = took, name
	}
	if memory > u.kilobytes {
		u.kilobytes, u.big = memory, name
	}
	return code, printed
}

// peak returns the most memory in kB that a process has had until it ended, resident, as
// VmHWM of proc(5) has it. The rusage of a process does not do: Linux begins it with the
// peak of the process that started it (exec_mmap of fs/exec.c).
func peak(pid int, ended <-chan struct{}) (kilobytes int64) {
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case <-ended:
			tick.Stop()
			return kilobytes
		case <-tick.C:
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has just ended
		}
		if _, most, found := strings.Cut(string(status), "\nVmHWM:"); found {
			fmt.Sscan(most, &kilobytes)
		}
	}
}

func (u *usage) log(t *testing.T, corpus int) {
	t.Logf("%d inputs, %d runs, %d refused; most processor time %.1f s (%s); longest %.1f s (%s); most memory %d MB (%s)",
		corpus, u.runs, u.refused, u.seconds, u.slowest, u.longest.Seconds(), u.longestOf, u.kilobytes>>10, u.big)
}

// TestHostileTexts collects and starts files with hostile content.
func TestHostileTexts(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl")
	b := newBench(t)
	base := small(t, b)
	database, err := os.ReadFile(filepath.Join(base, "var/lib/openvswitch/conf.db"))
	if err != nil {
		t.Fatal(err)
	}
	schema := bytes.SplitN(database, []byte("\n"), 3)[1]
	place := hostile.Targets{Canary: filepath.Join(b.dir, "canary"), Outside: filepath.Join(b.dir, "outside")}
	reached := listen(t, place.Outside)
	corpus := hostile.Texts(place, schema)
	if len(corpus) < 60 {
		t.Errorf("only %d texts", len(corpus))
	}
	before := entries(t, b.dir)
	var u usage
	t.Run("texts", func(t *testing.T) {
		for i, text := range corpus {
			t.Run(text.Name, func(t *testing.T) {
				t.Parallel()
				// The corpus has names with ../ that lead from var-run/ovs to
				// b.dir/outside.
				wd := filepath.Join(b.dir, fmt.Sprintf("t%d", i))
				report := filepath.Join(b.dir, fmt.Sprintf("r%d", i))
				defer os.RemoveAll(wd)
				defer os.RemoveAll(report)
				if text.ByHand {
					put(t, wd, text.Files)
				} else {
					if err := os.CopyFS(report, os.DirFS(base)); err != nil {
						t.Fatal(err)
					}
					put(t, report, text.Files)
					u.run(t, text.Name, b.bin, wd, "collect-sos", report)
				}
				u.run(t, text.Name, b.bin, wd, "start")
				u.run(t, text.Name, b.bin, wd, "show")
				b.must(t, wd, "stop")
				b.nothingRuns(t, wd)
			})
		}
	})
	if after := entries(t, b.dir); !slices.Equal(before, after) {
		t.Errorf("something was executed or written outside of the workdir: %q became %q", before, after)
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the socket of another switch was reached %d times", n)
	}
	u.log(t, len(corpus))
}

// small extracts a real report and keeps only some of its flows.
func small(t *testing.T, b *bench) string {
	t.Helper()
	dir := filepath.Join(b.dir, "base")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", dir, "--strip-components=1", "-xf", b.before).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dumps, err := filepath.Glob(filepath.Join(dir, "sos_commands/openvswitch/*dump-flows*"))
	if err != nil || len(dumps) == 0 {
		t.Fatal(err, dumps)
	}
	for _, path := range dumps {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(raw, []byte("\n"))
		if err := os.WriteFile(path, bytes.Join(lines[:min(len(lines), 20)], nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"nb", "sb"} { // not needed here
		if err := os.Remove(filepath.Join(dir, "var/lib/ovn/etc/ovn"+kind+"_db.db")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func put(t *testing.T, dir string, files map[string]hostile.Content) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		err = content.Write(f)
		if closeErr := f.Close(); err != nil || closeErr != nil {
			t.Fatal(err, closeErr)
		}
	}
}

// listen serves the management socket of another switch, and counts connections.
func listen(t *testing.T, dir string) *atomic.Int64 {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "br-int.mgmt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			c.Close()
		}
	}()
	return &n
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestHostileArchives collects hostile archives with collect-sos and collect.
func TestHostileArchives(t *testing.T) {
	ovs.Need(t) // many of them are large
	bin := program(t, public(t))
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	dir := public(t)
	place := hostile.Targets{Canary: filepath.Join(dir, "canary"), Outside: filepath.Join(dir, "outside")}
	listen(t, place.Outside)
	corpus := hostile.Archives(place)
	if len(corpus) < 60 {
		t.Errorf("only %d archives", len(corpus))
	}
	before := append(entries(t, dir), entries(t, place.Outside)...)
	var u usage
	t.Run("archives", func(t *testing.T) {
		for i, archive := range corpus {
			t.Run(archive.Name, func(t *testing.T) {
				t.Parallel()
				for _, command := range []string{"collect-sos", "collect"} {
					wd, source := filepath.Join(dir, fmt.Sprintf("w%d", i)), filepath.Join(dir, fmt.Sprintf("a%d", i))
					give(t, source, archive)
					code, printed := u.run(t, archive.Name, bin, wd, command, source)
					if code == 1 && !strings.Contains(printed, source) {
						t.Errorf("%s: the error does not name the archive:\n%s", command, printed)
					}
					tidy(t, wd)
					os.RemoveAll(wd)
					os.Remove(source)
				}
			})
		}
	})
	if after := append(entries(t, dir), entries(t, place.Outside)...); !slices.Equal(before, after) {
		t.Errorf("something was written outside of the workdir: %q became %q", before, after)
	}
	u.log(t, len(corpus))
}

// give writes an archive to a file, or an endless one to a named pipe.
func give(t *testing.T, path string, archive hostile.Archive) {
	t.Helper()
	if archive.Endless {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		go func() {
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				_ = archive.Write(f) // until the reader closes the pipe
				f.Close()
			}
		}()
		return
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Write(f)
	if closeErr := f.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
}

// tidy checks that a workdir contains only private files, and no staged collection.
func tidy(t *testing.T, wd string) {
	t.Helper()
	if _, err := os.Lstat(wd); errors.Is(err, fs.ErrNotExist) {
		return // a collect that fails leaves no new workdir
	}
	err := filepath.WalkDir(wd, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err != nil || !e.IsDir() && info.Mode() != 0o600 || e.IsDir() && info.Mode().Perm() != 0o700 || e.Name() == ".incoming" {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
