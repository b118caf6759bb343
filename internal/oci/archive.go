package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"ovs-offline/internal/rootfs"
)

// manifestName is the file of an archive of docker save that lists its images.
const manifestName = "manifest.json"

// openArchive opens the image of a name in an archive; "" for its only one. Docker
// since version 25 saves files that are both an archive and a layout.
func openArchive(ctx context.Context, file, wanted string, o Options) (*Image, error) {
	files, err := openTar(ctx, file, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var image *Image
	switch {
	case files.has(manifestName):
		image, err = openDockerArchive(files, wanted)
	case files.has(indexName):
		image, err = openLayout(files, wanted)
	default:
		err = fmt.Errorf("%w: it has neither %s, as docker save and podman save write it, nor %s of an OCI layout; of a root file system, name the folder into which it was unpacked", ErrSource, manifestName, indexName)
	}
	if err != nil {
		files.Close()
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return image, nil
}

// openDockerArchive opens an image in the files of an archive of docker save, which it
// takes over.
func openDockerArchive(files files, wanted string) (*Image, error) {
	text, err := readDocument(files, manifestName)
	if err != nil {
		return nil, err
	}
	var manifest tarball.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", rootfs.ErrRefused, manifestName, err)
	}
	var names []string
	found := slices.DeleteFunc(slices.Clone(manifest), func(d tarball.Descriptor) bool {
		names = append(names, d.RepoTags...)
		return wanted != "" && !slices.Contains(d.RepoTags, wanted)
	})
	if len(found) != 1 {
		return nil, notOne(len(found), wanted, names, transportDocker)
	}
	chosen := found[0]
	config, err := readDocument(files, chosen.Config)
	if err != nil {
		return nil, err
	}
	if err := checkConfig(chosen.Config, config); err != nil {
		return nil, err
	}
	var sizes []int64
	for _, layer := range chosen.Layers {
		sizes = append(sizes, files.size(layer))
	}
	image, err := newImage(config, sizes, func(n int) (io.ReadCloser, error) { return files.open(chosen.Layers[n]) })
	if err != nil {
		return nil, err
	}
	image.files = files
	image.Name = wanted
	if wanted == "" && len(chosen.RepoTags) > 0 {
		if _, err := name.NewTag(chosen.RepoTags[0]); err == nil {
			image.Name = chosen.RepoTags[0]
		}
	}
	return image, nil
}

// digestName matches the name of a file that is its digest: docker save before version 25
// and podman save append .json, and go-containerregistry begins with sha256.
var digestName = regexp.MustCompile(`^(?:sha256:)?([0-9a-f]{64})(?:\.json)?$`)

// checkConfig compares a configuration with the digest in its name, if there is one.
func checkConfig(name string, config []byte) error {
	named := digestName.FindStringSubmatch(path.Base(name))
	if sum := sha256.Sum256(config); named != nil && named[1] != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%w: the digest of %s is %x: copy it again", rootfs.ErrRefused, name, sum)
	}
	return nil
}

// files are the files of a source.
type files interface {
	// open opens a file by its path in the source. The error wraps fs.ErrNotExist.
	open(name string) (io.ReadCloser, error)
	// size returns the size of a file in bytes, 0 if there is none.
	size(name string) int64
	io.Closer
}

// maxDocument bounds a manifest, an index and a configuration, in bytes. Those of images
// with a hundred layers take less than 100 KiB.
const maxDocument = 4 << 20

// readDocument reads a JSON document.
func readDocument(files files, name string) ([]byte, error) {
	f, err := files.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing: copy it again", rootfs.ErrRefused, name)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%w: %s has over %d bytes", rootfs.ErrRefused, name, maxDocument)
	}
	return text, err
}
