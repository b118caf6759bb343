package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// ErrNoContainer is wrapped by the error of Inspect.
var ErrNoContainer = errors.New("no such container")

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

// Create makes a container and returns its ID.
func (e *Engine) Create(ctx context.Context, s Spec) (string, error) {
	made, err := e.client.ContainerCreate(ctx, client.ContainerCreateOptions{Name: s.Name, Config: e.config(s), HostConfig: e.hostConfig(s)})
	return made.ID, err
}

func (e *Engine) config(s Spec) *api.Config {
	killAtOnce := 0 // seconds; on removal by force podman would wait 10 s. Stop sets its own timeout.
	c := &api.Config{
		Image: s.Image, Labels: s.Labels, Cmd: s.Command, WorkingDir: "/", StopTimeout: &killAtOnce,
		Entrypoint: []string{""}, // none: the image's own would take the command as arguments
		User:       fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()),
		Env:        settings(s.Env),
	}
	if e.rootless && e.name == Docker {
		c.User = "0:0" // the user whose daemon it is, seen from inside
	}
	return c
}

// settings returns NAME=VALUE for each variable.
func settings(env map[string]string) []string {
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

func (e *Engine) hostConfig(s Spec) *api.HostConfig {
	h := &api.HostConfig{
		NetworkMode: "none", IpcMode: "private", UsernsMode: "host",
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
		Tmpfs:         map[string]string{"/tmp": "rw,nosuid,nodev,size=16m,mode=1777"},
		RestartPolicy: api.RestartPolicy{Name: api.RestartPolicyDisabled},
		LogConfig:     api.LogConfig{Type: "json-file"},
	}
	if e.name == Podman {
		// By default podman makes these folders writable and without a size limit.
		for _, path := range []string{"/run", "/var/tmp"} {
			h.Tmpfs[path] = "ro,nosuid,nodev,noexec,size=4k"
		}
		if e.rootless {
			h.UsernsMode = "keep-id"
		}
	}
	if s.Join != "" {
		h.PidMode = api.PidMode("container:" + s.Join)
		if h.UsernsMode == "keep-id" {
			h.UsernsMode = api.UsernsMode("container:" + s.Join)
		}
	}
	for _, folder := range s.Folders {
		bind := folder + ":" + folder
		if s.Join == "" {
			bind += ":Z" // the label of SELinux, which containers that join it get too
		}
		h.Binds = append(h.Binds, bind)
	}
	return h
}

// Start starts a container.
func (e *Engine) Start(ctx context.Context, id string) error {
	_, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return err
}

// Inspect returns the container with a name or ID; the error wraps ErrNoContainer.
func (e *Engine) Inspect(ctx context.Context, name string) (Container, error) {
	found, err := e.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return Container{}, fmt.Errorf("%w: %w", ErrNoContainer, err)
	}
	if err != nil {
		return Container{}, err
	}
	c := Container{ID: found.Container.ID, Name: strings.TrimPrefix(found.Container.Name, "/")}
	if found.Container.Config != nil {
		c.Labels = found.Container.Config.Labels
	}
	if state := found.Container.State; state != nil {
		c.Running, c.PID, c.Exit = state.Running, state.Pid, state.ExitCode
	}
	return c, nil
}

// List returns the containers whose label has a value, or with "" any value, running or
// not.
func (e *Engine) List(ctx context.Context, label, value string) ([]Container, error) {
	filter := label
	if value != "" {
		filter += "=" + value
	}
	list, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", filter)})
	if err != nil {
		return nil, err
	}
	var found []Container
	for _, c := range list.Items {
		if (value == "" || c.Labels[label] == value) && len(c.Names) > 0 {
			found = append(found, Container{ID: c.ID, Name: strings.TrimPrefix(c.Names[0], "/"), ImageID: c.ImageID, Labels: c.Labels, Running: c.State == api.StateRunning})
		}
	}
	return found, nil
}

// Stop sends SIGTERM to a container, and SIGKILL after a timeout, and returns when it
// has ended. It is no error if the container does not run or exist.
func (e *Engine) Stop(ctx context.Context, id string, timeout time.Duration) error {
	seconds := int(timeout.Seconds())
	_, err := e.client.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
	return unlessGone(err)
}

// Remove removes a container by force; it is no error if the container does not exist.
// If a removal is already under way, Remove waits for its end, because the name and the
// folders are free only then.
func (e *Engine) Remove(ctx context.Context, id string) error {
	_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !cerrdefs.IsConflict(err) {
		return unlessGone(err)
	}
	const pause = 10 * time.Millisecond
	for {
		if _, failed := e.Inspect(ctx, id); errors.Is(failed, ErrNoContainer) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// Log returns the last lines that a container printed.
func (e *Engine) Log(ctx context.Context, id string, lines int) (string, error) {
	log, err := e.client.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines)})
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	var text strings.Builder
	_, err = stdcopy.StdCopy(&text, &text, log)
	return text.String(), err
}

// unlessGone returns nil for the error of a container that no longer exists.
func unlessGone(err error) error {
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}
