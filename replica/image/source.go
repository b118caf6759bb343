// Package image has the images in which a replica can run. It reads them from registries,
// archives of `docker save` or `podman save`, OCI layouts and folders, and unpacks them into
// the user's data folder, where local processes run in them. It also lists and removes the
// images of container engines, and writes images to registries and archives. Package build
// makes images.
//
// An image is identified by the digest of its configuration, which podman and docker
// print as its ID. The configuration contains the digest of each unpacked layer, so the
// same image has the same ID in every source.
//
// Images are hostile. Go-containerregistry reads registries. Archives and layouts are read
// here, because its packages tarball and layout follow links in circles and to outside, read
// documents of any size, and compare no digests.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/archive"
)

// The transports that a source may begin with, as podman and skopeo write them.
const (
	transportRegistry = "docker"
	transportDocker   = "docker-archive"
	transportArchive  = "oci-archive"
	transportLayout   = "oci"
	transportFolder   = "dir"
)

// Errors that the errors about a source wrap.
var (
	ErrSource  = errors.New("not a source of an image") // it is not understood
	ErrRefused = errors.New("the image is refused")     // it is damaged or hostile
)

// Options are the options of Open and Unpack.
type Options struct {
	Scratch  string           // a folder in which a compressed archive is decompressed
	Limits   archive.Limits   // of the source
	Progress archive.Progress // may be nil
}

// Open opens the image of a source, which is one of:
//
//	REGISTRY/NAME:TAG, docker://REFERENCE   an image in a registry
//	FILE, docker-archive:FILE[:REFERENCE]   an archive of docker save or podman save
//	FILE, oci-archive:FILE[:NAME]           a tar of an OCI layout
//	FOLDER, oci:FOLDER[:NAME]               an OCI layout
//	FOLDER, dir:FOLDER                      a folder that holds a root file system
//
// A source without a transport that is the path of a file or folder is that one.
func Open(ctx context.Context, source string, options Options) (*Source, error) {
	if reference, ok := strings.CutPrefix(source, transportRegistry+"://"); ok {
		return openRegistry(ctx, reference)
	}
	transport, rest, _ := strings.Cut(source, ":")
	if slices.Contains([]string{"docker-daemon", "containers-storage"}, transport) {
		return nil, fmt.Errorf("%w: %q: save the image with podman save -o FILE or docker save -o FILE, and name the file", ErrSource, source)
	}
	if !slices.Contains([]string{transportDocker, transportArchive, transportLayout, transportFolder}, transport) {
		return openPlain(ctx, source, options)
	}
	path, name := splitName(rest)
	info, err := archive.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case transport == transportFolder && info.IsDir():
		return &Source{Folder: rest}, nil
	case transport == transportLayout && info.IsDir():
		return openLayoutFolder(path, name)
	case (transport == transportDocker || transport == transportArchive) && !info.IsDir():
		return openArchive(ctx, path, name, options)
	case info.IsDir():
		return nil, fmt.Errorf("%w: %s is a folder; %s: takes a file", ErrSource, path, transport)
	}
	return nil, fmt.Errorf("%w: %s is a file; %s: takes a folder", ErrSource, path, transport)
}

// openPlain opens a source without a transport.
func openPlain(ctx context.Context, source string, options Options) (*Source, error) {
	info, err := archive.Stat(source)
	switch {
	case err == nil && !info.IsDir():
		return openArchive(ctx, source, "", options)
	case err == nil && isLayout(source):
		return openLayoutFolder(source, "")
	case err == nil:
		return &Source{Folder: source}, nil
	case isPath(source) || !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return openRegistry(ctx, source)
}

// isPath reports whether a source is meant as a path, although nothing is there.
func isPath(source string) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(source, prefix) }
	ends := func(suffix string) bool { return strings.HasSuffix(source, suffix) }
	return slices.ContainsFunc([]string{"/", ".", "~"}, begins) ||
		slices.ContainsFunc([]string{".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"}, ends)
}

// isLayout reports whether a folder is an OCI layout.
func isLayout(folder string) bool {
	return !slices.ContainsFunc([]string{layoutName, indexName}, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err != nil
	})
}

// splitName splits PATH:NAME at the first colon, as podman does. A colon in the path of
// an existing file is a part of it.
func splitName(text string) (path, name string) {
	if _, err := os.Stat(text); err == nil {
		return text, ""
	}
	path, name, _ = strings.Cut(text, ":")
	return path, name
}
