package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/lazyregexp"
)

// manifestName is the file of an archive of docker save that lists its images.
const manifestName = "manifest.json"

// openArchive opens the image of a name in an archive; "" for its only one.
func openArchive(ctx context.Context, path, wanted string, options Options) (*Source, error) {
	if err := interrupt.CheckRegular(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	source, err := readArchive(ctx, file, wanted, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return source, nil
}

// readArchive works like openArchive for an archive that is read; it takes over a file.
// Docker since version 25 saves files that are both an archive and a layout.
func readArchive(ctx context.Context, from io.Reader, wanted string, options Options) (source *Source, err error) {
	files, err := openTar(ctx, from, options)
	if err != nil {
		return nil, err
	}
	switch {
	case files.has(manifestName):
		source, err = openDockerArchive(files, wanted)
	case files.has(indexName):
		source, err = openLayout(files, wanted)
	default:
		err = fmt.Errorf("%w: it has neither %s, as docker save and podman save write it, nor %s of an OCI layout; of a root file system, name the folder into which it was unpacked", ErrSource, manifestName, indexName)
	}
	if err != nil {
		files.Close()
		return nil, err
	}
	source.files = files
	return source, nil
}

// openDockerArchive opens an image in the files of an archive of docker save.
func openDockerArchive(files *tarFiles, wanted string) (*Source, error) {
	text, err := readDocument(files, manifestName)
	if err != nil {
		return nil, err
	}
	var manifest tarball.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, manifestName, err)
	}
	var names []string
	found := slices.DeleteFunc(slices.Clone(manifest), func(listed tarball.Descriptor) bool {
		names = append(names, listed.RepoTags...)
		return wanted != "" && !slices.Contains(listed.RepoTags, wanted)
	})
	if len(found) != 1 {
		return nil, oneImageError(len(found), wanted, names, transportDocker)
	}
	chosen := found[0]
	config, err := readDocument(files, chosen.Config)
	if err != nil {
		return nil, err
	}
	if err := checkConfig(chosen.Config, config); err != nil {
		return nil, err
	}
	var layers []layer
	for _, path := range chosen.Layers {
		layers = append(layers, layer{size: files.size(path), open: func() (io.ReadCloser, error) { return files.Open(path) }})
	}
	source, err := newSource(config, layers)
	if err != nil {
		return nil, err
	}
	source.Name = wanted
	if wanted == "" && len(chosen.RepoTags) > 0 {
		if _, err := name.NewTag(chosen.RepoTags[0]); err == nil {
			source.Name = chosen.RepoTags[0]
		}
	}
	return source, nil
}

// digestName matches the name of a file that is its digest: docker save before version 25
// and podman save append .json, and go-containerregistry begins with sha256.
var digestName = lazyregexp.New(`^(?:sha256:)?([0-9a-f]{64})(?:\.json)?$`)

// checkConfig compares a configuration with the digest in its name, if there is one.
func checkConfig(name string, config []byte) error {
	named := digestName.FindStringSubmatch(path.Base(name))
	if sum := sha256.Sum256(config); named != nil && named[1] != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%w: the digest of %s is %x: copy it again", ErrRefused, name, sum)
	}
	return nil
}
