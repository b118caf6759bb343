package replica

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/versions"
	"ovs-offline/workdir"
)

// Listed is a replica on this host.
type Listed struct {
	Workdir string    `json:"workdir"`
	Runtime string    `json:"runtime"`
	Root    string    `json:"root,omitempty"` // as in State
	Started time.Time `json:"started"`
	// Recorded and Running are the versions on the node and of the replica's programs.
	Recorded versions.Pair `json:"recorded"`
	Running  versions.Pair `json:"running"`

	Hosts   []string `json:"hosts"`   // the nodes that it is a replica of
	Sources []string `json:"sources"` // the archives or files that their data is from
	Daemons int      `json:"daemons"`
}

// List returns the replicas of the caller that run on this host, in any runtime. It
// finds their daemons in /proc: each has the path of its pid file on its command line.
func List() ([]Listed, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for daemons: %w", err)
	}
	daemons := map[string]int{}
	for _, entry := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue // not a process, or a process that has ended
		}
		if path, ok := workdirOf(line); ok {
			for _, user := range usersOf(path) {
				daemons[user]++
			}
		}
	}
	list := []Listed{}
	for path, n := range daemons {
		if replica, ok := describe(path); ok {
			replica.Daemons = n
			list = append(list, replica)
		}
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Compare(a.Workdir, b.Workdir) })
	return list, nil
}

// Roots returns the workdirs of the replicas that run on this host in each root file system
// of an image.
func Roots() (map[string][]string, error) {
	list, err := List()
	roots := map[string][]string{}
	for _, listed := range list {
		if listed.Root != "" {
			roots[listed.Root] = append(roots[listed.Root], listed.Workdir)
		}
	}
	return roots, err
}

// workdirOf returns the workdir of the replica whose daemon has this command line.
func workdirOf(cmdline []byte) (string, bool) {
	words := bytes.Split(cmdline, []byte{0})
	program := filepath.Base(string(words[0]))
	if program != "ovs-vswitchd" && program != "ovsdb-server" {
		return "", false
	}
	for _, word := range words[1:] {
		path, ok := strings.CutPrefix(string(word), "--pidfile=")
		if !ok || !filepath.IsAbs(path) || filepath.Base(path) != program+".pid" {
			continue
		}
		// WORKDIR/var-run/KIND/PROGRAM.pid
		if varRun := filepath.Dir(filepath.Dir(path)); filepath.Base(varRun) == "var-run" {
			return filepath.Dir(varRun), true
		}
	}
	return "", false
}

// usersOf returns the workdirs whose replicas use the daemon in a workdir, or in the home
// of a shared server.
func usersOf(path string) []string {
	shared := filepath.Dir(path)
	kind, isHome := workdir.Homes(shared)[path]
	if !isHome {
		return []string{path}
	}
	home, err := workdir.Find(path)
	if err != nil {
		return nil
	}
	below, _ := workdir.Below(filepath.Dir(shared)) // without them no replica is known
	return slices.DeleteFunc(below, func(path string) bool {
		wd, err := workdir.Find(path)
		return err != nil || !sameServer(wd, home, kind)
	})
}

// describe returns the properties of the replica of a workdir; ok is false for
// another user's.
func describe(path string) (replica Listed, ok bool) {
	wd, err := workdir.Find(path)
	if err != nil || !wd.Exists() {
		return replica, false
	}
	replica.Workdir = wd.Path()
	if state, err := ReadState(wd); err == nil {
		replica.Runtime, replica.Root, replica.Started = state.Runtime, state.Root, state.Started
		replica.Recorded, replica.Running = state.Recorded, state.Running
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return replica, true
	}
	for _, collection := range manifest.Collections {
		replica.Hosts = appendNew(replica.Hosts, cmp.Or(collection.Node, collection.Host))
		replica.Sources = appendNew(replica.Sources, collection.Source.Name)
	}
	return replica, true
}

// appendNew appends a text that is neither empty nor in the list.
func appendNew(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
