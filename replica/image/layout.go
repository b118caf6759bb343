package image

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The files of an OCI layout (image-layout.md of the OCI image specification), and the
// annotation that names an image in it.
const (
	layoutName   = "oci-layout"
	indexName    = "index.json"
	blobsFolder  = "blobs"
	annotationOf = "org.opencontainers.image.ref.name"
)

// openLayoutFolder opens the image of a name in a layout; "" for its only one. No link leads
// out of the folder.
func openLayoutFolder(folder, wanted string) (*Source, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	source, err := openLayout(root.FS(), wanted)
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	source.files = root
	return source, nil
}

// openLayout opens the image of a name in the files of a layout.
func openLayout(files fs.FS, wanted string) (*Source, error) {
	text, err := readDocument(files, indexName)
	if err != nil {
		return nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, indexName, err)
	}
	var names []string
	listed := slices.DeleteFunc(index.Manifests, func(blob v1.Descriptor) bool {
		name := blob.Annotations[annotationOf]
		if name != "" {
			names = append(names, name)
		}
		return wanted != "" && name != wanted
	})
	found, err := imagesIn(files, listed, 0)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, oneImageError(len(found), wanted, names, transportLayout)
	}
	return openManifest(files, found[0])
}

// maxIndexes bounds the indexes in indexes. Multi-platform images have one or two.
const maxIndexes = 4

// imagesIn returns the images for this machine in a list of an index, and in the indexes
// that it lists.
func imagesIn(files fs.FS, listed []v1.Descriptor, depth int) ([]v1.Descriptor, error) {
	if depth > maxIndexes {
		return nil, fmt.Errorf("%w: its indexes are nested more than %d deep", ErrRefused, maxIndexes)
	}
	var found []v1.Descriptor
	for _, blob := range listed {
		switch {
		case blob.MediaType.IsImage():
			if blob.Platform == nil || blob.Platform.OS == "linux" && blob.Platform.Architecture == runtime.GOARCH {
				found = append(found, blob)
			}
		case blob.MediaType.IsIndex():
			text, err := readBlob(files, blob)
			if err != nil {
				return nil, err
			}
			index, err := v1.ParseIndexManifest(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("%w: the index %v: %w", ErrRefused, blob.Digest, err)
			}
			below, err := imagesIn(files, index.Manifests, depth+1)
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		}
	}
	return found, nil
}

// oneImageError is the error for a source in which several images or none have a name.
func oneImageError(found int, wanted string, names []string, transport string) error {
	named, has := "", ""
	if wanted != "" {
		named = fmt.Sprintf(" of the name %q", wanted)
	}
	if len(names) > 0 {
		has = fmt.Sprintf("; it has %s: append :NAME to %s:PATH", strings.Join(names, ", "), transport)
	}
	return fmt.Errorf("it has %d images for linux/%s%s%s", found, runtime.GOARCH, named, has)
}

// openManifest opens the image of a manifest.
func openManifest(files fs.FS, blob v1.Descriptor) (*Source, error) {
	text, err := readBlob(files, blob)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest %v: %w", ErrRefused, blob.Digest, err)
	}
	config, err := readBlob(files, manifest.Config)
	if err != nil {
		return nil, err
	}
	var layers []layer
	for _, blob := range manifest.Layers {
		layers = append(layers, layer{size: blob.Size, open: func() (io.ReadCloser, error) { return openRegular(files, blobPath(blob.Digest)) }})
	}
	return newSource(config, layers)
}

// readBlob reads a JSON document, and compares its digest.
func readBlob(files fs.FS, blob v1.Descriptor) ([]byte, error) {
	text, err := readDocument(files, blobPath(blob.Digest))
	if err != nil {
		return nil, err
	}
	got, _, err := v1.SHA256(bytes.NewReader(text))
	if err == nil && got != blob.Digest {
		err = fmt.Errorf("%w: the digest of %s is %v: copy it again", ErrRefused, blobPath(blob.Digest), got)
	}
	return text, err
}

func blobPath(digest v1.Hash) string { return path.Join(blobsFolder, digest.Algorithm, digest.Hex) }
