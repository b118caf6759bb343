package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ovs-offline/test/daemons/ovs"
)

// hierarchies returns the mount points of all cgroup hierarchies, one with cgroup v2 and
// several with v1, and that of cgroup2, which v1 has in hybrid mode.
func hierarchies() (all []string, unified string, err error) {
	mounts, err := mounts()
	if err != nil {
		return nil, "", err
	}
	for _, m := range mounts {
		// Runtimes may have mounted hierarchies a second time elsewhere.
		if !strings.HasPrefix(m.point, "/sys/fs/cgroup") || m.root != "/" {
			continue
		}
		switch m.kind {
		case "cgroup2":
			unified = m.point
			all = append(all, m.point)
		case "cgroup":
			all = append(all, m.point)
		}
	}
	if unified == "" {
		return nil, "", errors.New("no cgroup2 file system is mounted below /sys/fs/cgroup")
	}
	return all, unified, nil
}

// mount is a mounted file system.
type mount struct{ root, point, kind string }

func mounts() ([]mount, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var list []mount
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		words, kind := strings.Fields(before), strings.Fields(after)
		if len(words) > 4 && len(kind) > 0 {
			list = append(list, mount{root: words[3], point: words[4], kind: kind[0]})
		}
	}
	return list, nil
}

// Cgroup is the name of a cgroup: its path below the mount point of each hierarchy.
type Cgroup string

// Child makes a cgroup below this one, in every hierarchy.
func (c Cgroup) Child(name string) (Cgroup, error) {
	child := Cgroup(filepath.Join(string(c), name))
	all, _, err := hierarchies()
	if err != nil {
		return "", err
	}
	for _, h := range all {
		if err := os.MkdirAll(filepath.Join(h, string(child)), 0o755); err != nil {
			return "", err
		}
	}
	return child, nil
}

// Unified returns the folder of the cgroup in the hierarchy of cgroup2. A process that
// is started there stays there, with its children, until a container runtime that uses
// cgroup2 moves it.
func (c Cgroup) Unified() (string, error) {
	_, unified, err := hierarchies()
	return filepath.Join(unified, string(c)), err
}

// Processes returns the processes in the cgroup and those below it, in all hierarchies.
func (c Cgroup) Processes() []int {
	var pids []int
	for _, folder := range c.folders() {
		text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && pid != 0 {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Find returns the cgroup of a name below this one, "" if there is none.
func (c Cgroup) Find(name string) Cgroup {
	for _, folder := range c.folders() {
		if at := strings.Index(folder, "/"+string(c)+"/"); at >= 0 && filepath.Base(folder) == name {
			return Cgroup(folder[at+1:])
		}
	}
	return ""
}

// Exists reports whether any hierarchy has the cgroup.
func (c Cgroup) Exists() bool { return c != "" && len(c.folders()) > 0 }

// folders returns the folders of the cgroup and those below it, in all hierarchies. A
// folder comes before those in it.
func (c Cgroup) folders() (list []string) {
	all, _, err := hierarchies()
	if err != nil || c == "" {
		return nil
	}
	for _, h := range all {
		filepath.WalkDir(filepath.Join(h, string(c)), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				list = append(list, path)
			}
			return nil // a cgroup may end meanwhile
		})
	}
	return list
}

// Remove kills the processes in the cgroup and those below it, and removes it from every
// hierarchy.
func (c Cgroup) Remove() error {
	if err := ovs.Until(context.Background(), "a cgroup to be empty", func() bool {
		for _, pid := range c.Processes() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		for _, folder := range slices.Backward(c.folders()) {
			os.Remove(folder) // it fails while a process is in it
		}
		return len(c.folders()) == 0
	}); err != nil {
		return fmt.Errorf("cgroup %s can't be removed; processes in it: %d: %w", c, c.Processes(), err)
	}
	return nil
}
