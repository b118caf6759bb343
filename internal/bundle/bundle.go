// Package bundle writes the collected data of a workdir to one compressed file,
// and restores a workdir from it on another machine. A bundle holds nothing of a
// running replica. A bundle comes from another person, so Load checks each name
// and each file's sha256 before it installs anything.
package bundle

import (
	"errors"

	"ovs-offline/internal/workdir"
)

// Format is the version of the bundle's layout: a tar file, compressed with
// zstd, that holds bundle.json, manifest.json and then the collected files.
const Format = 1

// The names of the first two files.
const (
	headName     = "bundle.json"
	manifestName = "manifest.json"
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
}

// Errors for errors.Is.
var (
	ErrNothing   = errors.New("nothing to save")
	ErrNotBundle = errors.New("not a bundle of ovs-offline save")
	ErrDamaged   = errors.New("the bundle is damaged")
	ErrVersion   = errors.New("the bundle has another version")
)
