package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/workdir"
)

// Listed is one replica of this host.
type Listed struct {
	Workdir string    `json:"workdir"`
	Runtime string    `json:"runtime"`
	Started time.Time `json:"started"`
	Hosts   []string  `json:"hosts"` // the nodes that it replays
	Daemons int       `json:"daemons"`
}

// List finds the replicas that run on this host and are the caller's own. It
// looks for their daemons, wherever those were started: every daemon of a
// replica, in a container or not, is told its pid file on its command line.
func List() ([]Listed, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for daemons: %w", err)
	}
	daemons := map[string]int{}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // gone by now
		}
		if path, ok := workdirOf(line); ok {
			daemons[path]++
		}
	}
	list := []Listed{}
	for path, n := range daemons {
		if one, ok := describe(path); ok {
			one.Daemons = n
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Compare(a.Workdir, b.Workdir) })
	return list, nil
}

// workdirOf tells the workdir of a daemon by its command line.
func workdirOf(line []byte) (string, bool) {
	words := bytes.Split(line, []byte{0})
	program := filepath.Base(string(words[0]))
	if program != "ovs-vswitchd" && program != "ovsdb-server" {
		return "", false
	}
	for _, word := range words[1:] {
		path, ok := strings.CutPrefix(string(word), "--pidfile=")
		if !ok || filepath.Base(path) != program+".pid" {
			continue
		}
		// WORKDIR/var-run/KIND/PROGRAM.pid
		kind := filepath.Dir(path)
		varRun := filepath.Dir(kind)
		if filepath.IsAbs(path) && filepath.Base(varRun) == "var-run" {
			return filepath.Dir(varRun), true
		}
	}
	return "", false
}

// describe says what a workdir replays; ok is false for one that is another user's.
func describe(path string) (one Listed, ok bool) {
	wd, err := workdir.Find(path)
	if err != nil || !wd.Exists() {
		return one, false
	}
	one.Workdir = wd.Path()
	if state, err := ReadState(wd); err == nil {
		one.Runtime, one.Started = state.Runtime, state.Started
	}
	m, err := wd.Manifest()
	if err != nil {
		return one, true
	}
	for _, c := range m.Collections {
		if c.Host != "" && !slices.Contains(one.Hosts, c.Host) {
			one.Hosts = append(one.Hosts, c.Host)
		}
	}
	return one, true
}
