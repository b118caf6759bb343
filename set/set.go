// Package set treats a folder of workdirs, as a collection of several nodes makes it, as
// one thing: it starts, stops and examines the replicas of its nodes side by side.
package set

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"ovs-offline/internal/bundle"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
)

// ErrNoNode is wrapped when a name selects no node of a set, or more than one.
var ErrNoNode = errors.New("no such node")

// Set is a folder of workdirs, or the part of it that was selected.
type Set struct {
	folder string
	owner  string  // the workdir whose databases have the chassis of the set; "" for none
	all    []*Node // in the order of their names
	nodes  []*Node // the selected ones
	links  []string

	mu   sync.Mutex
	sums map[workdir.Kind]map[string][]*Node // see bySum; nil for a kind that was not read
}

// Open returns the set in a folder with the nodes of these names, all without names; nil
// for a folder that is itself the workdir of a node, or that holds none. A workdir with the
// databases of several chassis whose switches were synthesised stands for the set of these. version is the
// version of ovs-offline. A name is that of a workdir in the folder, or of the host that
// it was collected from. Links to workdirs are left out: Remarks names them.
func Open(folder, version string, names []string) (*Set, error) {
	wd, err := workdir.Find(folder)
	if err != nil {
		return nil, err
	}
	workdir.Recover(folder)
	s := &Set{folder: wd.Path(), sums: map[workdir.Kind]map[string][]*Node{}}
	if wd.Used() {
		s.folder, s.owner = wd.Chassis(), wd.Path()
	}
	below, err := workdir.Below(s.folder)
	if err != nil {
		return nil, fmt.Errorf("workdir: %w", err)
	}
	if len(below) == 0 {
		return nil, nil
	}
	s.links = linksIn(s.folder)
	clusters := pods.NewClusters(version)
	for _, path := range below {
		n := At(path, version)
		n.clusters = clusters
		s.all = append(s.all, n)
	}
	s.nodes = s.all
	if len(names) > 0 {
		s.nodes, err = s.choose(names)
	}
	return s, err
}

// linksIn returns the names of the symbolic links in a folder that lead to folders.
func linksIn(folder string) []string {
	entries, _ := os.ReadDir(folder) // Below has read it
	var names []string
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(folder, e.Name())); e.Type() == os.ModeSymlink && err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// choose returns the nodes of these names, each once, in the order of the set.
func (s *Set) choose(names []string) ([]*Node, error) {
	chosen := map[*Node]bool{}
	for _, name := range names {
		n, err := s.find(name)
		if err != nil {
			return nil, err
		}
		chosen[n] = true
	}
	return slices.DeleteFunc(slices.Clone(s.all), func(n *Node) bool { return !chosen[n] }), nil
}

func (s *Set) find(name string) (*Node, error) {
	var ofHost []*Node
	for _, n := range s.all {
		if n.Name == name {
			return n, nil
		}
		if n.Host() == name {
			ofHost = append(ofHost, n)
		}
	}
	switch {
	case len(ofHost) == 1:
		return ofHost[0], nil
	case len(ofHost) > 1:
		return nil, fmt.Errorf("%w: several nodes in %s are of the host %q: %s", ErrNoNode, s.folder, name, joined(ofHost))
	case slices.Contains(s.links, name):
		return nil, fmt.Errorf("%w: %s is a link, which no set includes: select the folder that it leads to with -w", ErrNoNode, filepath.Join(s.folder, name))
	}
	return nil, fmt.Errorf("%w: %q in %s; there are: %s", ErrNoNode, name, s.folder, joined(s.all))
}

func joined(nodes []*Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return recording.FirstNames(names)
}

// Select returns the names among all that are wanted, each once; all if none is wanted.
func Select(all, wanted []string) ([]string, error) {
	for _, name := range wanted {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%w: %q; there are: %s", ErrNoNode, name, recording.FirstNames(all))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return len(wanted) > 0 && !slices.Contains(wanted, name) }), nil
}

// Folder returns the absolute path of the folder.
func (s *Set) Folder() string { return s.folder }

// Owner returns the path of the workdir whose databases have the chassis that are the nodes
// of the set; "" for a set of collected nodes.
func (s *Set) Owner() string { return s.owner }

// Nodes returns the selected nodes in the order of their names.
func (s *Set) Nodes() []*Node { return s.nodes }

// Remarks returns sentences about the folder for the user: links that are left out, and
// workdirs of one host.
func (s *Set) Remarks() []string {
	var remarks []string
	for _, name := range s.links {
		remarks = append(remarks, fmt.Sprintf("%s is a link and no node of the set", filepath.Join(s.folder, name)))
	}
	byHost := map[string][]*Node{}
	var hosts []string
	for _, n := range s.nodes {
		host := n.Host()
		if host != "" && byHost[host] == nil {
			hosts = append(hosts, host)
		}
		byHost[host] = append(byHost[host], n)
	}
	for _, host := range hosts {
		if len(byHost[host]) > 1 {
			remarks = append(remarks, fmt.Sprintf("the host %s was recorded more than once: %s", host, joined(byHost[host])))
		}
	}
	return remarks
}

// Lock locks the workdirs of the selected nodes until unlock is called, and returns them.
func (s *Set) Lock() (nodes []bundle.Node, unlock func(), err error) {
	unlock = func() {
		for _, n := range nodes {
			n.Dir.Unlock()
		}
	}
	for _, n := range s.nodes {
		wd, err := workdir.Lock(n.path)
		if err != nil {
			unlock()
			return nil, nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		nodes = append(nodes, bundle.Node{Name: n.Name, Dir: wd})
	}
	return nodes, unlock, nil
}
