// Package bundle writes the collected data of a workdir, or of the workdirs of a set, to
// one compressed file, and restores them from it on another machine. A bundle holds nothing of a
// running replica. A bundle comes from another person, so Load checks each name
// and each file's sha256 before it installs anything.
package bundle

import (
	"errors"

	"ovs-offline/internal/workdir"
)

// The versions of the bundle's layout: a tar file, compressed with zstd, that holds
// bundle.json, manifest.json and then the collected files. FormatWithImage has an image
// after them. In FormatSet, each node has a manifest and files, below a folder with its
// name, and an image may follow. Older versions of the program refuse the formats that
// they don't know.
const (
	Format          = 1
	FormatWithImage = 2
	FormatSet       = 3
)

// The names of the first two files, and of the image.
const (
	headName     = "bundle.json"
	manifestName = "manifest.json"
	imageName    = "image.tar"
)

// maxWindow is how many bytes of memory zstd may use; archive.Limits has the other
// bounds.
const maxWindow = 1 << 27

// Head describes a bundle. It is the file bundle.json.
type Head struct {
	Format  int    `json:"format"`
	Workdir int    `json:"workdir_format"`
	Program string `json:"program"` // the version of ovs-offline that wrote it
	// ByHand lists the files that the manifest does not list.
	ByHand []workdir.File `json:"by_hand,omitempty"`
	Image  *Image         `json:"image,omitempty"`
	Nodes  []HeadNode     `json:"nodes,omitempty"` // of a set, in the order of their names
}

// HeadNode describes a node of a set.
type HeadNode struct {
	Name   string         `json:"name"`
	ByHand []workdir.File `json:"by_hand,omitempty"`
}

// Workdir is the workdir of a node of a set.
type Workdir struct {
	Name string
	Dir  *workdir.Dir
}

// Image describes the image in a bundle: the file image.tar, an archive in the format of
// docker save.
type Image struct {
	Name   string `json:"name"`
	ID     string `json:"id,omitempty"` // in the store that it was saved from
	OVS    string `json:"ovs"`          // version of Open vSwitch
	OVN    string `json:"ovn"`          // version of OVN, "" without OVN
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Errors for errors.Is.
var (
	ErrNothing   = errors.New("nothing to save")
	ErrNotBundle = errors.New("not a bundle of ovs-offline save")
	ErrDamaged   = errors.New("the bundle is damaged")
	ErrVersion   = errors.New("the bundle has another version")
	ErrSet       = errors.New("the bundle holds several nodes")
)
