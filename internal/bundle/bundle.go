// Package bundle writes what a workdir holds into one compressed file, and makes
// a workdir of it again, on another machine. It carries what was collected and
// nothing of what runs. A bundle comes from somebody else: it is checked name by
// name and byte by byte before anything is put in place.
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

// What a bundle may hold at the most: far more than a node has.
const (
	maxHead     = 32 << 20 // bytes of bundle.json or manifest.json
	maxFiles    = 1 << 20
	maxTotal    = 1 << 36 // bytes of all files
	maxWindow   = 1 << 27 // bytes that zstd may need
	fileMode    = 0o600
	maxNameSize = 4096
)

// Head says what a bundle is. It is bundle.json.
type Head struct {
	Format  int    `json:"format"`
	Workdir int    `json:"workdir_format"`
	Program string `json:"program"` // the version of ovs-offline that wrote it
	// ByHand are the files that the manifest does not know.
	ByHand []workdir.File `json:"by_hand,omitempty"`
}

// Errors for errors.Is.
var (
	ErrNothing   = errors.New("nothing to save")
	ErrNotBundle = errors.New("not a bundle of ovs-offline save")
	ErrDamaged   = errors.New("the bundle is damaged")
	ErrVersion   = errors.New("the bundle is of another version")
)
