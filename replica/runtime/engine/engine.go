// Package engine connects to podman and docker, and manages containers and images with
// them: podman by the bindings of its own API, docker by moby's client.
package engine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"ovs-offline/replica/runtime"
)

// The engines, as the command line spells them.
const (
	Podman = "podman"
	Docker = "docker"
)

// Names lists the engines in the order in which they are preferred.
func Names() []string { return []string{Podman, Docker} }

// Errors that the errors of an Engine wrap.
var (
	ErrNoContainer = errors.New("no such container")
	ErrNoImage     = errors.New("the engine does not have it")
)

// Engine is a connection to the service of podman or docker on this machine.
type Engine interface {
	// Name returns the engine's name, as the command line spells it.
	Name() string
	// Address returns the address at which the engine listens.
	Address() string

	// Create makes a container of an image that the engine has, and returns its ID.
	Create(ctx context.Context, spec Spec) (id string, err error)
	// Start starts a container.
	Start(ctx context.Context, id string) error
	// Inspect returns the container with a name or ID; the error wraps ErrNoContainer.
	Inspect(ctx context.Context, name string) (Container, error)
	// List returns the containers whose label has a value, or with "" any value, running
	// or not.
	List(ctx context.Context, label, value string) ([]Container, error)
	// Log returns the last lines that a container printed.
	Log(ctx context.Context, id string, lines int) (string, error)
	// Terminal runs a program in a container on the caller's terminal.
	Terminal(ctx context.Context, id string, command runtime.Command) (exit int, err error)
	// Stop sends SIGTERM to a container, and SIGKILL after a timeout, and returns when it
	// has ended. It is not an error if the container does not run or exist.
	Stop(ctx context.Context, id string, timeout time.Duration) error
	// Remove removes a container by force, and returns when its name and folders are free.
	// It is not an error if the container does not exist.
	Remove(ctx context.Context, id string) error

	// Repository returns the repository of the images that ovs-offline makes.
	Repository() string
	// Images returns the images whose repository ends in the given name.
	Images(ctx context.Context, repository string) ([]Image, error)
	// InspectImage returns the image with a name or ID; nothing is ever pulled. The error
	// wraps ErrNoImage.
	InspectImage(ctx context.Context, name string) (Image, error)
	// Load loads an archive in the format of `docker save`.
	Load(ctx context.Context, archive io.Reader) error
	// Save writes an image as an archive in the format of `docker save`.
	Save(ctx context.Context, id string, w io.Writer) error
	// Build builds an image and writes what the steps print to progress.
	Build(ctx context.Context, build Build, progress io.Writer) error
	// ReadFile reads a file of at most 4 KiB from an image: it copies the file out of a
	// container that is never started.
	ReadFile(ctx context.Context, image, file string) ([]byte, error)
	// Untag removes a name from an image, and removes the image itself with its last name.
	Untag(ctx context.Context, name string) error
}

// Spec describes a container to make. It gets only what Spec names: it has no network,
// no capability and no way to get one, and can write only to its folders and to a small
// /tmp. Its user is the caller, and paths are the same in the container and on the
// host.
type Spec struct {
	Name    string
	Image   string
	Labels  map[string]string
	Command []string
	Env     map[string]string
	Folders []string // mounted in it at the same paths
	Join    string   // ID of the container whose PID and user namespaces it joins; "" for its own
}

// Container is a container that an engine has.
type Container struct {
	ID      string
	Name    string
	ImageID string // only from List
	Labels  map[string]string
	Running bool
	PID     int // on this host; 0 if the engine does not report it
	Exit    int // its exit code, once it has ended
}

// Repository is the last part of the repository of the images that ovs-offline makes, in
// any engine.
const Repository = "ovs-offline"

// Image is an image that an engine has.
type Image struct {
	Name    string // as Create takes it
	ID      string
	Size    int64 // bytes
	Labels  map[string]string
	Created time.Time

	Architecture string // as Go names it; only of InspectImage
}

// Build is one run of a Containerfile.
type Build struct {
	Containerfile string
	Folder        string // whose files the steps can copy; "" for none
	Name          string // of the image
	Labels        map[string]string
	NoCache       bool
	Platform      string // OS/ARCH[/VARIANT]; "" for the engine's own
	Network       string // of the steps: "host", or "" for the engine's default
}

// platform returns the parts of the platform; a part that it leaves out is "".
func (b Build) platform() (system, architecture, variant string) {
	system, rest, _ := strings.Cut(b.Platform, "/")
	architecture, variant, _ = strings.Cut(rest, "/")
	return system, architecture, variant
}

// labelFilter returns the filter of an engine for a label with a value, or with "" any
// value.
func labelFilter(label, value string) string {
	if value == "" {
		return label
	}
	return label + "=" + value
}

// fullName returns the tag of an image that a user meant by a name, which may lack the
// registry and ":latest"; for an ID it returns the ID.
func fullName(name string, tags []string) string {
	for _, tag := range tags {
		for _, wanted := range []string{name, name + ":latest"} {
			if tag == wanted || strings.HasSuffix(tag, "/"+wanted) {
				return tag
			}
		}
	}
	return name
}

// named returns an image once for each of its tags whose repository ends in a name.
func named(image Image, tags []string, repository string) []Image {
	var found []Image
	for _, tag := range tags {
		name, _, _ := strings.Cut(path.Base(tag), ":")
		if name == repository {
			image.Name = tag
			found = append(found, image)
		}
	}
	return found
}

// settings returns NAME=VALUE for each variable.
func settings(env map[string]string) []string {
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// terminalSettings returns NAME=VALUE for each variable of a program on the caller's
// terminal.
func terminalSettings(env map[string]string) []string {
	list := settings(env)
	if name := os.Getenv("TERM"); name != "" {
		list = append(list, "TERM="+name)
	}
	return list
}

// fileOf returns the one file in an archive that an engine made of it; path is for errors.
func fileOf(archive io.Reader, path string) ([]byte, error) {
	const limit = 4096
	reader := tar.NewReader(archive)
	if _, err := reader.Next(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return io.ReadAll(io.LimitReader(reader, limit))
}
