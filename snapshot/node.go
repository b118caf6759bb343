package snapshot

import (
	"os"
	"path/filepath"

	"ovs-offline/workdir"
)

// Node is the workdir of one node.
type Node struct {
	Name  string // of the workdir's folder
	path  string
	files *workdir.Files // that the nodes of a snapshot share; nil for a node alone
}

// At returns the node whose workdir is at path.
func At(path string) *Node { return &Node{Name: filepath.Base(path), path: path} }

// Workdir returns the workdir for reading.
func (n *Node) Workdir() (*workdir.Dir, error) {
	wd, err := workdir.Find(n.path)
	if wd != nil {
		wd.Share(n.files)
	}
	return wd, err
}

// Lock returns the workdir, locked.
func (n *Node) Lock() (*workdir.Dir, error) { return workdir.Lock(n.path) }

// FolderName returns the name of the workdir's folder.
func (n *Node) FolderName() string { return filepath.Base(n.path) }

// Host returns the name of the host that the workdir was collected from, "" if it is not
// known.
func (n *Node) Host() string {
	wd, err := n.Workdir()
	if err != nil {
		return ""
	}
	return wd.RecordedHost()
}

// locked calls do with the workdir, locked. After an error, it removes a workdir that it created
// if nothing came into it.
func (n *Node) locked(do func(wd *workdir.Dir) error) error {
	_, missing := os.Lstat(n.path)
	wd, err := n.Lock()
	if err != nil {
		return err
	}
	defer wd.Unlock()
	if err = do(wd); err != nil && missing != nil {
		wd.RemoveIfEmpty()
	}
	return err
}
