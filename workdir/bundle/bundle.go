// Package bundle writes the collected data of a workdir, or of the workdirs of a set, to
// one compressed file, and restores them from it on another machine. A bundle holds nothing of a
// running replica. A bundle comes from another person, so Load checks each name
// and each file's sha256 before it installs anything.
package bundle

import (
	"errors"
	"fmt"

	"ovs-offline/workdir"
)

// The versions of the bundle's layout: a tar file, compressed with zstd, that holds
// bundle.json, manifest.json and then the collected files. FormatWithImage has an image
// after them. In FormatSet, each node has a manifest and files, below a folder with its
// name, and an image may follow. FormatWithPage is any of these with a page before the image. Older
// versions of the program refuse the formats that they don't know.
const (
	Format          = 1
	FormatWithImage = 2
	FormatSet       = 3
	FormatWithPage  = 4
)

// The names of the first two files, of the page and of the image.
const (
	headName     = "bundle.json"
	manifestName = "manifest.json"
	PageName     = "case.html"
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
	Page   *Page          `json:"page,omitempty"`
	Nodes  []HeadNode     `json:"nodes,omitempty"` // of a set, in the order of their names
}

// isSet reports whether the bundle holds the nodes of a set.
func (h *Head) isSet() bool { return len(h.Nodes) > 0 }

// checkFormat returns an error for a head that holds something else than its format says.
func (h *Head) checkFormat() error {
	fits := map[int]bool{
		Format:          !h.isSet() && h.Image == nil && h.Page == nil,
		FormatWithImage: !h.isSet() && h.Image != nil && h.Page == nil,
		FormatSet:       h.isSet() && h.Page == nil,
		FormatWithPage:  h.Page != nil,
	}
	if !fits[h.Format] {
		return fmt.Errorf("%w: %s of format %d", ErrDamaged, headName, h.Format)
	}
	return nil
}

// Page describes the page of the case in a bundle, which is for people without this program: load reads it
// and leaves it out.
type Page struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
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
