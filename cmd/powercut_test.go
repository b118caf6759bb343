package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// call is a system call that renamed, synced or removed a file.
type call struct{ name, from, to string }

var (
	renamed = regexp.MustCompile(`^\d+ +renameat2?\(.*"(/[^"]*)".*"(/[^"]*)"`)
	synced  = regexp.MustCompile(`^\d+ +f(?:data)?sync\(\d+<([^>]*)>`)
	removed = regexp.MustCompile(`^\d+ +unlinkat\((?:AT_FDCWD<[^>]*>|\d+<([^>]*)>), "([^"]*)"`)
)

// calls parses a log of strace -y.
func calls(t *testing.T, log string) []call {
	t.Helper()
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var list []call
	for line := range strings.Lines(string(raw)) {
		if m := renamed.FindStringSubmatch(line); m != nil {
			list = append(list, call{"rename", m[1], m[2]})
		} else if m := synced.FindStringSubmatch(line); m != nil {
			list = append(list, call{name: "sync", from: m[1]})
		} else if m := removed.FindStringSubmatch(line); m != nil {
			path := m[2]
			if !strings.HasPrefix(path, "/") {
				path = filepath.Join(m[1], path)
			}
			list = append(list, call{name: "remove", from: path})
		}
	}
	return list
}

// TestPowerCut checks the order in which a collection reaches the disk, because a
// power cut may keep any part of what was not synced: the files of a commit are synced
// before the commit, the commit before the moves, and all moves before the commit is
// removed.
func TestPowerCut(t *testing.T) {
	b := newBench(t)
	wd := b.workdir(t, "power")
	log := filepath.Join(b.dir, "power.trace")
	code, printed := b.strace(t, wd, log, killPoint{},
		[]string{"-y", "-e", "trace=fsync,fdatasync,renameat,renameat2,unlinkat"}, "collect-sos", "--force", b.after)
	if strings.Contains(printed, "Operation not permitted") {
		t.Skip("strace may not trace here: ", printed)
	}
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, printed)
	}
	incoming := filepath.Join(wd, ".incoming")
	inside := func(path string) bool { return strings.HasPrefix(path, incoming+"/") }
	list := calls(t, log)
	commit := slices.IndexFunc(list, func(c call) bool { return c.name == "rename" && c.to == incoming+"/commit.json" })
	if commit < 0 {
		t.Fatalf("no commit among %d calls", len(list))
	}
	touched := slices.IndexFunc(list, func(c call) bool {
		gone := c.name == "remove" || c.name == "rename"
		return gone && strings.HasPrefix(c.from, wd+"/") && c.from != incoming &&
			!(inside(c.from) && (c.name == "remove" || inside(c.to)))
	})
	if touched < 0 || !slices.Contains(list[:touched], call{name: "sync", from: wd}) {
		t.Errorf("the folder of the new collection is not on disk when the first old file is removed: %v",
			list[max(touched, 0)])
	}
	before, after := list[:commit], list[commit+1:]
	removedAt := slices.IndexFunc(after, func(c call) bool { return c.name == "remove" && inside(c.from) })
	if removedAt < 0 {
		t.Fatal("the commit is never removed")
	}
	var moves int
	for i, c := range after {
		if c.name != "rename" || !inside(c.from) || inside(c.to) {
			continue
		}
		moves++
		if i > removedAt {
			t.Errorf("%s is moved when the commit may be removed", c.from)
		}
		if c.from != incoming+"/manifest.json" && !slices.Contains(before, call{name: "sync", from: c.from}) {
			t.Errorf("%s is not on disk before the commit", c.from)
		}
		if !slices.Contains(after[:i], call{name: "sync", from: incoming}) {
			t.Errorf("the commit is not on disk when %s is moved", c.from)
		}
		if !slices.Contains(after[i:removedAt], call{name: "sync", from: filepath.Dir(c.to)}) {
			t.Errorf("the move to %s is not on disk when the commit is removed", c.to)
		}
	}
	if moves < 4 {
		t.Errorf("only %d moves", moves)
	}
}
