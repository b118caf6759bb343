package container

import (
	"context"
	"errors"
	"time"

	"ovs-offline/replica/runtime"
)

// Engine is a container engine, reduced to what a replica needs of it. Paths
// are the same inside a container and outside.
type Engine interface {
	// Name is the spelling the command line uses: "podman", "docker".
	Name() string
	// Images lists the images whose names end in repository.
	Images(ctx context.Context, repository string) ([]Image, error)
	// FindImage returns the full name of an image, "" where the engine does not
	// have it; nothing is ever pulled.
	FindImage(ctx context.Context, name string) (string, error)
	// Create makes a container and returns its id.
	Create(ctx context.Context, s Spec) (id string, err error)
	Start(ctx context.Context, id string) error
	// Inspect finds a container by its name or id; the error wraps ErrNoContainer.
	Inspect(ctx context.Context, name string) (Container, error)
	// List finds the containers that carry a label, running or not.
	List(ctx context.Context, label, value string) ([]Container, error)
	// Stop sends SIGTERM, and SIGKILL after a bound, and returns when the
	// container has ended. One that does not run, or is gone, is no error.
	Stop(ctx context.Context, id string, bound time.Duration) error
	// Remove removes a container, by force; one that is gone is no error.
	Remove(ctx context.Context, id string) error
	// Log returns what a container printed last.
	Log(ctx context.Context, id string, lines int) (string, error)
	// Terminal runs a program in a container on the caller's terminal.
	Terminal(ctx context.Context, id string, c runtime.Command) (exit int, err error)
}

// ErrNoContainer is wrapped by an Engine's errors, for errors.Is.
var ErrNoContainer = errors.New("no such container")

// Spec is a container to make. Everything that it does not name is taken away:
// it has no network, no capability and no way to get one, and can write to its
// folders and to a small /tmp alone.
type Spec struct {
	Name     string
	Image    string
	Labels   map[string]string
	Command  []string
	Env      map[string]string
	UID, GID int      // whose files it reads and makes, as seen on this host
	Folders  []string // bound into it at the same paths
	Relabel  bool     // give the folders the container's SELinux label
	Join     string   // id of the container whose process ids and users it shares; "" for its own
}

// Container is what an engine knows of one.
type Container struct {
	ID      string
	Name    string
	Labels  map[string]string
	Running bool
	PID     int // on this host, where the engine tells it
	Exit    int // once it has ended
}

// Image is one that an engine has.
type Image struct {
	Name    string // one that Create takes
	Labels  map[string]string
	Created time.Time
}
