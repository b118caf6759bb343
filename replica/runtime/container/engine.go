package container

import (
	"context"
	"errors"
	"time"

	"ovs-offline/replica/runtime"
)

// Engine is a container engine. Paths are the same in a container and on the host.
type Engine interface {
	// Name returns the engine's name, as the command line spells it.
	Name() string
	// Images returns the images whose repository ends in the given name.
	Images(ctx context.Context, repository string) ([]Image, error)
	// FindImage returns the full name of an image, "" where the engine does not
	// have it; nothing is ever pulled.
	FindImage(ctx context.Context, name string) (string, error)
	// Create makes a container and returns its ID.
	Create(ctx context.Context, s Spec) (id string, err error)
	Start(ctx context.Context, id string) error
	// Inspect returns the container with a name or ID; the error wraps ErrNoContainer.
	Inspect(ctx context.Context, name string) (Container, error)
	// List returns the containers with a label, running or not.
	List(ctx context.Context, label, value string) ([]Container, error)
	// Stop sends SIGTERM, and SIGKILL after a timeout, and returns when the
	// container has ended. A container that does not run or exist is no error.
	Stop(ctx context.Context, id string, timeout time.Duration) error
	// Remove removes a container by force; one that does not exist is no error.
	Remove(ctx context.Context, id string) error
	// Log returns the last lines that a container printed.
	Log(ctx context.Context, id string, lines int) (string, error)
	// Terminal runs a program in a container on the caller's terminal.
	Terminal(ctx context.Context, id string, c runtime.Command) (exit int, err error)
}

// ErrNoContainer is wrapped by the errors of an Engine.
var ErrNoContainer = errors.New("no such container")

// Spec describes a container to make. It gets no more than this: it has no network,
// no capability and no way to get one, and can write only to its folders and to a
// small /tmp.
type Spec struct {
	Name     string
	Image    string
	Labels   map[string]string
	Command  []string
	Env      map[string]string
	UID, GID int      // its user and group, as seen on this host
	Folders  []string // mounted in it at the same paths
	Relabel  bool     // give the folders the container's SELinux label
	Join     string   // ID of the container whose PID and user namespaces it joins; "" for its own
}

// Container is a container that an engine has.
type Container struct {
	ID      string
	Name    string
	Labels  map[string]string
	Running bool
	PID     int // on this host; 0 where the engine does not report it
	Exit    int // its exit code, once it has ended
}

// Image is an image that an engine has.
type Image struct {
	Name    string // as Create takes it
	Labels  map[string]string
	Created time.Time
}
