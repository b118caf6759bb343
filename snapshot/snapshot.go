// Package snapshot reads a folder of workdirs, as a collection of several nodes makes it, as one
// thing: its nodes, their OVN databases and deployments. It knows no daemons, engines or
// clusters: package set runs the replicas of a snapshot.
package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

// Snapshot is a folder of workdirs, or the part of it that was selected.
type Snapshot struct {
	folder string
	owner  string  // the workdir whose databases have the chassis that are the nodes; "" for none
	all    []*Node // in the order of their names
	nodes  []*Node // the selected ones
	links  []string
	files  *workdir.Files // of all nodes

	mu   sync.Mutex
	sums map[workdir.Kind]map[string][]*Node // see SameFiles; nil for a kind that was not read
}

// Open returns the snapshot of a folder with the nodes of these names, or with all nodes without
// names. It returns nil if the folder is the workdir of one node, or holds no workdirs. A workdir
// with synthesised switches of several chassis is opened as the snapshot of these. A name belongs
// to a workdir in the folder, or to the host that it was collected from. Links to workdirs are
// left out: Remarks names them.
func Open(folder string, names []string) (*Snapshot, error) {
	wd, err := workdir.Find(folder)
	if err != nil {
		return nil, err
	}
	workdir.Recover(folder)
	s := &Snapshot{folder: wd.NodesFolder(), files: workdir.NewFiles(), sums: map[workdir.Kind]map[string][]*Node{}}
	if s.folder != wd.Path() {
		s.owner = wd.Path()
	}
	below, err := workdir.Below(s.folder)
	if err != nil {
		return nil, fmt.Errorf("workdir: %w", err)
	}
	if len(below) == 0 {
		return nil, nil
	}
	s.links = linksIn(s.folder)
	for _, path := range below {
		node := At(path)
		node.files = s.files
		s.all = append(s.all, node)
	}
	s.nodes = s.all
	if len(names) > 0 {
		s.nodes, err = s.choose(names)
	}
	return s, err
}

// Of returns the snapshot with the node of a workdir alone. It has the name of the host, or else of the folder.
func Of(wd *workdir.Dir) *Snapshot {
	node := At(wd.Path())
	node.files = workdir.NewFiles()
	if opened, err := node.Workdir(); err == nil {
		node.Name = opened.Host()
	}
	return &Snapshot{folder: wd.Path(), files: node.files, all: []*Node{node}, nodes: []*Node{node}, sums: map[workdir.Kind]map[string][]*Node{}}
}

// OpenNodes works like Open, and returns the snapshot with the node of the workdir alone where
// the folder is the workdir of a node.
func OpenNodes(folder string, names []string) (*Snapshot, error) {
	s, err := Open(folder, names)
	if s != nil || err != nil {
		return s, err
	}
	wd, err := workdir.Find(folder)
	if err != nil {
		return nil, err
	}
	return Of(wd), nil
}

// linksIn returns the names of the symbolic links in a folder that lead to folders.
func linksIn(folder string) []string {
	entries, _ := os.ReadDir(folder) // Below has read it
	var names []string
	for _, entry := range entries {
		if info, err := os.Stat(filepath.Join(folder, entry.Name())); entry.Type() == os.ModeSymlink && err == nil && info.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// choose returns the nodes of these names, each once, in the order of the snapshot.
func (s *Snapshot) choose(names []string) ([]*Node, error) {
	chosen := map[*Node]bool{}
	for _, name := range names {
		node, err := s.find(name)
		if err != nil {
			return nil, err
		}
		chosen[node] = true
	}
	return slices.DeleteFunc(slices.Clone(s.all), func(node *Node) bool { return !chosen[node] }), nil
}

func (s *Snapshot) find(name string) (*Node, error) {
	var ofHost []*Node
	for _, node := range s.all {
		if node.Name == name {
			return node, nil
		}
		if node.Host() == name {
			ofHost = append(ofHost, node)
		}
	}
	switch {
	case len(ofHost) == 1:
		return ofHost[0], nil
	case len(ofHost) > 1:
		return nil, fault.Usagef("host %q was collected more than once in %s: select one of %s", name, s.folder, joinNames(ofHost))
	case slices.Contains(s.links, name):
		return nil, fault.Usagef("no such node: %s is a link, which no set includes: select the folder that it leads to with -w", filepath.Join(s.folder, name))
	}
	return nil, fault.Usagef("no such node: %q in %s; there are: %s", name, s.folder, joinNames(s.all))
}

func joinNames(nodes []*Node) string {
	var names []string
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return phrase.FirstNames(names)
}

// Close closes the collected files that readers of the snapshot have opened.
func (s *Snapshot) Close() { s.files.Close() }

// Folder returns the absolute path of the folder.
func (s *Snapshot) Folder() string { return s.folder }

// All returns the snapshot with all its nodes selected.
func (s *Snapshot) All() *Snapshot { return s.Only(s.all) }

// Only returns the snapshot with some of its nodes selected.
func (s *Snapshot) Only(nodes []*Node) *Snapshot {
	return &Snapshot{folder: s.folder, owner: s.owner, all: s.all, nodes: nodes, links: s.links, files: s.files, sums: map[workdir.Kind]map[string][]*Node{}}
}

// Alone reports whether the folder is the workdir of its one node, so that output need not name
// the node.
func (s *Snapshot) Alone() bool { return len(s.all) == 1 && s.all[0].path == s.folder }

// Owner returns the path of the workdir whose databases have the chassis that are the nodes
// of the snapshot; "" for collected nodes.
func (s *Snapshot) Owner() string { return s.owner }

// Nodes returns the selected nodes in the order of their names.
func (s *Snapshot) Nodes() []*Node { return s.nodes }

// Has reports whether the workdir at path is one of the selected nodes, by any path to it.
func (s *Snapshot) Has(path string) bool {
	wanted, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(s.nodes, func(node *Node) bool {
		found, err := os.Stat(node.path)
		return err == nil && os.SameFile(found, wanted)
	})
}

// WithSwitch returns the nodes whose Open vSwitch was collected, or all if none was. The others
// have OVN databases alone, which the nodes of their deployment use.
func WithSwitch(nodes []*Node) []*Node {
	found := slices.DeleteFunc(slices.Clone(nodes), func(node *Node) bool {
		wd, err := node.Workdir()
		return err == nil && !HasSwitch(wd)
	})
	if len(found) == 0 {
		return nodes
	}
	return found
}

// Remarks returns sentences about the folder for the user: links that are left out, and
// workdirs of one host.
func (s *Snapshot) Remarks() []string {
	var remarks []string
	for _, name := range s.links {
		remarks = append(remarks, fmt.Sprintf("%s is a link and no node of the set", filepath.Join(s.folder, name)))
	}
	byHost := map[string][]*Node{}
	var hosts []string
	for _, node := range s.nodes {
		host := node.Host()
		if host != "" && byHost[host] == nil {
			hosts = append(hosts, host)
		}
		byHost[host] = append(byHost[host], node)
	}
	for _, host := range hosts {
		if len(byHost[host]) > 1 {
			remarks = append(remarks, fmt.Sprintf("the host %s was recorded more than once: %s", host, joinNames(byHost[host])))
		}
	}
	return remarks
}

// LockToRead locks the workdirs of the selected nodes until unlock is called, and returns them. Workdirs that can't be written to
// need no lock.
func (s *Snapshot) LockToRead() (nodes []bundle.Workdir, unlock func(), err error) {
	unlock = func() {
		for _, node := range nodes {
			node.Dir.Unlock()
		}
	}
	for _, node := range s.nodes {
		wd, err := workdir.LockToRead(node.path)
		if err != nil {
			unlock()
			return nil, nil, fmt.Errorf("node %s: %w", node.Name, err)
		}
		nodes = append(nodes, bundle.Workdir{Name: node.Name, Dir: wd})
	}
	return nodes, unlock, nil
}
