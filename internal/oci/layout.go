package oci

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ovs-offline/internal/rootfs"
)

// The files of an OCI layout (image-layout.md of the OCI image specification), and the
// annotation that names an image in it.
const (
	layoutName   = "oci-layout"
	indexName    = "index.json"
	blobsFolder  = "blobs"
	annotationOf = "org.opencontainers.image.ref.name"
)

// openLayoutFolder opens the image of a name in a layout; "" for its only one.
func openLayoutFolder(folder, wanted string) (*Image, error) {
	files, err := openFolder(folder)
	if err != nil {
		return nil, err
	}
	image, err := openLayout(files, wanted)
	if err != nil {
		files.Close()
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return image, nil
}

// openLayout opens the image of a name in the files of a layout, which it takes over.
func openLayout(files files, wanted string) (*Image, error) {
	l := layout{files}
	text, err := readDocument(files, indexName)
	if err != nil {
		return nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", rootfs.ErrRefused, indexName, err)
	}
	listed := index.Manifests
	if wanted != "" {
		listed = slices.DeleteFunc(slices.Clone(listed), func(d v1.Descriptor) bool { return d.Annotations[annotationOf] != wanted })
	}
	found, err := l.images(listed, 0)
	if err != nil {
		return nil, err
	}
	chosen, err := l.choose(found, index.Manifests, wanted)
	if err != nil {
		return nil, err
	}
	image, err := l.image(chosen)
	if err != nil {
		return nil, err
	}
	image.files = files
	return image, nil
}

// layout reads the blobs of a layout, and compares their digests.
type layout struct{ files files }

// maxIndexes bounds the indexes in indexes. Multi-platform images have one or two.
const maxIndexes = 4

// images returns the images for this machine in a list of an index, and in the indexes
// that it lists.
func (l layout) images(listed []v1.Descriptor, depth int) ([]v1.Descriptor, error) {
	if depth > maxIndexes {
		return nil, fmt.Errorf("%w: its indexes are nested too deep", rootfs.ErrRefused)
	}
	var found []v1.Descriptor
	for _, d := range listed {
		switch {
		case d.MediaType.IsImage():
			if d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
				found = append(found, d)
			}
		case d.MediaType.IsIndex():
			text, err := l.document(d)
			if err != nil {
				return nil, err
			}
			index, err := v1.ParseIndexManifest(bytes.NewReader(text))
			if err != nil {
				return nil, fmt.Errorf("%w: the index %v: %w", rootfs.ErrRefused, d.Digest, err)
			}
			below, err := l.images(index.Manifests, depth+1)
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		}
	}
	return found, nil
}

// choose returns the only image found. The error names those in the layout.
func (l layout) choose(found, listed []v1.Descriptor, wanted string) (v1.Descriptor, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	var names []string
	for _, d := range listed {
		if n := d.Annotations[annotationOf]; n != "" {
			names = append(names, n)
		}
	}
	return v1.Descriptor{}, notOne(len(found), wanted, names, transportLayout)
}

// notOne is the error for a source in which several images or none have a name.
func notOne(found int, wanted string, names []string, transport string) error {
	of := ""
	if wanted != "" {
		of = fmt.Sprintf(" of the name %q", wanted)
	}
	has := ""
	if len(names) > 0 {
		has = fmt.Sprintf("; it has %s: append :NAME to %s:PATH", strings.Join(names, ", "), transport)
	}
	return fmt.Errorf("it has %d images for linux/%s%s%s", found, runtime.GOARCH, of, has)
}

// image returns the image of a manifest.
func (l layout) image(d v1.Descriptor) (*Image, error) {
	text, err := l.document(d)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest %v: %w", rootfs.ErrRefused, d.Digest, err)
	}
	config, err := l.document(manifest.Config)
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, blob := range manifest.Layers {
		sizes = append(sizes, blob.Size)
	}
	return newImage(config, sizes, func(n int) (io.ReadCloser, error) {
		return l.files.open(blobPath(manifest.Layers[n].Digest))
	})
}

// document reads a JSON document.
func (l layout) document(d v1.Descriptor) ([]byte, error) {
	text, err := readDocument(l.files, blobPath(d.Digest))
	if err != nil {
		return nil, err
	}
	got, _, err := v1.SHA256(bytes.NewReader(text))
	if err == nil && got != d.Digest {
		err = fmt.Errorf("%w: the digest of %s is %v: copy it again", rootfs.ErrRefused, blobPath(d.Digest), got)
	}
	return text, err
}

func blobPath(h v1.Hash) string { return path.Join(blobsFolder, h.Algorithm, h.Hex) }
