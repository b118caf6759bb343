// Package oci reads container images: from a registry, from an archive of `docker save`
// or `podman save`, from an OCI layout, or from a folder that holds a root file system.
// It unpacks their root file systems with package rootfs.
//
// An image is identified by the digest of its configuration, which podman and docker
// print as its ID. The configuration contains the digest of each unpacked layer, so the
// same image has the same ID in every source.
package oci

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

// ErrSource is wrapped by errors about a source that is not understood.
var ErrSource = errors.New("not a source of an image")

// Options are the options of Open.
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
func Open(ctx context.Context, source string, o Options) (*Image, error) {
	image, err := open(ctx, source, o)
	if err != nil {
		return nil, err
	}
	image.options = o
	return image, nil
}

func open(ctx context.Context, source string, o Options) (*Image, error) {
	if reference, ok := strings.CutPrefix(source, transportRegistry+"://"); ok {
		return openRegistry(ctx, reference)
	}
	transport, rest, _ := strings.Cut(source, ":")
	if slices.Contains([]string{"docker-daemon", "containers-storage"}, transport) {
		return nil, fmt.Errorf("%w: %q: save the image with podman save -o FILE or docker save -o FILE, and name the file", ErrSource, source)
	}
	if !slices.Contains([]string{transportDocker, transportArchive, transportLayout, transportFolder}, transport) {
		return openPlain(ctx, source, o)
	}
	file, name := splitName(rest)
	info, err := archive.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case transport == transportFolder && info.IsDir():
		return &Image{Folder: rest}, nil
	case transport == transportLayout && info.IsDir():
		return openLayoutFolder(file, name)
	case (transport == transportDocker || transport == transportArchive) && !info.IsDir():
		return openArchive(ctx, file, name, o)
	case info.IsDir():
		return nil, fmt.Errorf("%w: %s is a folder; %s: takes a file", ErrSource, file, transport)
	}
	return nil, fmt.Errorf("%w: %s is a file; %s: takes a folder", ErrSource, file, transport)
}

// openPlain opens a source without a transport.
func openPlain(ctx context.Context, source string, o Options) (*Image, error) {
	info, err := archive.Stat(source)
	switch {
	case err == nil && !info.IsDir():
		return openArchive(ctx, source, "", o)
	case err == nil && isLayout(source):
		return openLayoutFolder(source, "")
	case err == nil:
		return &Image{Folder: source}, nil
	case isPath(source) || !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return openRegistry(ctx, source)
}

// isPath reports whether a source is meant as a path, although nothing is there.
func isPath(source string) bool {
	if strings.HasPrefix(source, "/") || strings.HasPrefix(source, ".") || strings.HasPrefix(source, "~") {
		return true
	}
	for _, suffix := range []string{".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"} {
		if strings.HasSuffix(source, suffix) {
			return true
		}
	}
	return false
}

// isLayout reports whether a folder is an OCI layout.
func isLayout(folder string) bool {
	for _, name := range []string{layoutName, indexName} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	return true
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
