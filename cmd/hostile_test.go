package cmd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/hostile"
)

// maxMemory is the limit for any input, in kB, resident.
const maxMemory = 256 << 10

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
// codes, in bounded memory, and prints nothing that controls a terminal. A run that does not end
// within ovs.Patience is killed; how long the others took is only logged.
func (u *usage) run(t *testing.T, name, bin, wd string, args ...string) (code int, printed string) {
	t.Helper()
	cmd := exec.Command(bin, append([]string{"-w", wd}, args...)...)
	var memory int64
	begun := time.Now()
	code, printed = watched(cmd, func(pid int, ended <-chan struct{}) {
		late := time.AfterFunc(ovs.Patience(), func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		defer late.Stop()
		memory = peak(pid, ended)
	})
	took := time.Since(begun)
	rusage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no resource usage here")
	}
	seconds := time.Duration(rusage.Utime.Nano() + rusage.Stime.Nano()).Seconds()
	name += " " + args[0]
	if code == -1 {
		t.Errorf("%s was killed after %s, and %.1f s of processor time", args[0], took, seconds)
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
	corpus = sweep.Rows(corpus, func(text hostile.Text) bool { return !repeats(text.Name) })
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
				if isOnlyCollected(text.Name) && !sweep.Whole() {
					return
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

// repeats reports whether a text has content of a kind, in a file, that another text has as well: it is larger, or one
// more name for the same path through the program.
func repeats(name string) bool {
	return slices.ContainsFunc([]string{
		// Another bridge of the list is as odd: one has an option, a command, a path, an escape, a line break, and so on.
		`bridge "-x"`, `bridge "a;touch `, "bridge \"`touch ", `bridge "../br"`, `bridge "br\n"`, `bridge "\x1b[31mred"`,
		`bridge "\u009b2J"`, `bridge "tcp:`, `bridge "a b"`, `bridge "."`, `bridge ".."`, `bridge "/etc/br"`,
		`bridge "br\x7f\r"`, `bridge "brücke`,
		// Flows that the tools refuse, or can't read, one by one: a hundred are as good as a thousand.
		"flows: a thousand ", "flows: the same flow", "flows: references to all", "groups: many bad groups",
		"meters: many bad meters",
		// Lines by the million, and lines of many megabytes: one reader splits all dumps.
		"costly: groups: millions of lines", "costly: meters: millions of lines", "flows: 50 MB of line breaks",
		"flows: a million lines of garbage", "flows: a flow of 15 MB",
		"costly: flows: a match of 15 MB", "costly: flags of 16 MB", "recorded: 100 MB of flows",
		"groups: a group of a million buckets", "costly: hidden flows",
		// Databases whose rows, records or sums are odd in the same way.
		"database: rows alike at the end", "database: a hundred thousand rows", "database: many small records",
		"database: a million line breaks", "costly: database: a set that grows",
		"costly: database: a million short ones", "costly: a bridge a hundred thousand times",
		"costly: a hundred thousand bridges", "manifest: deeper lists", "TLV: one class for all",
	}, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// isOnlyCollected reports whether start does with the text what it does with any other: the collection has read all of
// it that is odd, and what it stored is well-formed, or a file that only grows.
func isOnlyCollected(name string) bool {
	if name == "manifest: a version with escapes" || name == "manifest: paths outside" {
		return false // show prints the version, and the flows come from those paths
	}
	return slices.ContainsFunc([]string{"manifest: ", "costly: database: ", "costly: flows: millions of lines",
		"costly: TLV: ", "TLV: a hundred thousand mappings", "database: rows that are alike", "database: headers that lie",
		// A log that begins with no good record is a file like any other to start: that of a length beyond all is started.
		"database: a negative length", "database: sums of something else", "database: wrong sums",
		"database: a long length later", "database: another schema", "database: nested", "database: gzip of gzip",
		"database: a string of 100 MB", "database: gzip of 1 GiB", "flows: a line of 100 MB", "costly: bridges that mangle"},
		func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// small extracts a real report and keeps only some of its flows, in dumps that do not say that more was to follow.
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
		lines := bytes.SplitAfter(bytes.ReplaceAll(raw, []byte(" flags=[more]"), nil), []byte("\n"))
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
		writeFile(t, path, content.Write)
	}
}

// writeFile writes a file in large pieces: some texts are millions of pieces of two bytes.
func writeFile(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(buffered), buffered.Flush(), f.Close()); err != nil {
		t.Fatal(err)
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
	bin := program(t)
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
	// The reader that bounds entries, names, links and sizes meets each bound in another archive as well, which takes
	// less time: entries without end pass the bound of a million, 19,000 reports are as many folders, and a database is a
	// bomb as well.
	larger := []string{"a million tiny entries", "19,000 bridges of a node", "a bomb of 4 GiB", "a database of 4 GiB",
		"a hundred thousand links", "a hundred thousand top folders", "a hundred thousand files to collect",
		"more than a million folders", "200,000 links in reports", "a bomb of 4 GiB, gzip'd"}
	corpus = sweep.Rows(corpus, func(a hostile.Archive) bool { return !slices.Contains(larger, a.Name) })
	before := append(entries(t, dir), entries(t, place.Outside)...)
	var u usage
	t.Run("archives", func(t *testing.T) {
		for i, archive := range corpus {
			t.Run(archive.Name, func(t *testing.T) {
				t.Parallel()
				for _, command := range sweep.Rows([]string{"collect-sos", "collect"},
					func(command string) bool { return command == "collect" || !isLarge(archive.Name) }) {
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

// isLarge reports whether an archive takes seconds to read, which both commands do with the same reader.
func isLarge(name string) bool {
	return slices.ContainsFunc([]string{"million", "thousand", "000 ", "GiB, gzip'd"},
		func(part string) bool { return strings.Contains(name, part) })
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
	writeFile(t, path, archive.Write)
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
		if info, err := e.Info(); err != nil || !e.IsDir() && info.Mode() != 0o600 || e.IsDir() &&
			info.Mode().Perm() != 0o700 || e.Name() == ".incoming" {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
