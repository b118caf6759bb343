// Package docker is docker as a container.Engine, by its daemon's socket.
package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	docker "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"ovs-offline/replica/runtime/container"
)

// Engine is a docker daemon.
type Engine struct {
	cli      *client.Client
	rootless bool
}

var _ container.Engine = (*Engine)(nil)

// New connects to a docker daemon, as Connect does.
func New(ctx context.Context) (*Engine, error) {
	cli, err := Connect(ctx)
	if err != nil {
		return nil, err
	}
	owner, err := container.SocketOwner(strings.TrimPrefix(cli.DaemonHost(), "unix://"))
	if err != nil {
		_ = cli.Close()
		return nil, err
	}
	return &Engine{cli: cli, rootless: owner != 0}, nil
}

// Name is the spelling the command line uses.
func (e *Engine) Name() string { return "docker" }

// Address is where the daemon listens.
func (e *Engine) Address() string { return e.cli.DaemonHost() }

// HasImage tells whether an image is here.
func (e *Engine) HasImage(ctx context.Context, name string) (bool, error) {
	_, err := e.cli.ImageInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Images lists the images whose names end in repository.
func (e *Engine) Images(ctx context.Context, repository string) ([]container.Image, error) {
	list, err := e.cli.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return nil, err
	}
	var found []container.Image
	for _, i := range list.Items {
		for _, tag := range i.RepoTags {
			name, _, _ := strings.Cut(path.Base(tag), ":")
			if name == repository {
				found = append(found, container.Image{Name: tag, Labels: i.Labels, Created: time.Unix(i.Created, 0)})
			}
		}
	}
	return found, nil
}

// Create makes a container.
func (e *Engine) Create(ctx context.Context, s container.Spec) (string, error) {
	made, err := e.cli.ContainerCreate(ctx, client.ContainerCreateOptions{Name: s.Name, Config: e.config(s), HostConfig: hostConfig(s)})
	return made.ID, err
}

func (e *Engine) config(s container.Spec) *docker.Config {
	c := &docker.Config{
		Image: s.Image, Labels: s.Labels, Cmd: s.Command, WorkingDir: "/",
		Entrypoint: []string{""}, // none: an image's own would swallow the command
		User:       fmt.Sprintf("%d:%d", s.UID, s.GID),
	}
	if e.rootless {
		c.User = "0:0" // inside, that is the user whose daemon it is
	}
	for name, value := range s.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	return c
}

func hostConfig(s container.Spec) *docker.HostConfig {
	h := &docker.HostConfig{
		NetworkMode: "none", IpcMode: "private", UsernsMode: "host",
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
		Tmpfs:         map[string]string{"/tmp": "rw,nosuid,nodev,size=16m,mode=1777"},
		RestartPolicy: docker.RestartPolicy{Name: docker.RestartPolicyDisabled},
		LogConfig:     docker.LogConfig{Type: "json-file"},
	}
	if s.Join != "" {
		h.PidMode = docker.PidMode("container:" + s.Join)
	}
	for _, folder := range s.Folders {
		bind := folder + ":" + folder
		if s.Relabel {
			bind += ":Z" // means nothing to a daemon without SELinux
		}
		h.Binds = append(h.Binds, bind)
	}
	return h
}

// Start starts it.
func (e *Engine) Start(ctx context.Context, id string) error {
	_, err := e.cli.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return err
}

// Inspect finds a container by name or id.
func (e *Engine) Inspect(ctx context.Context, name string) (container.Container, error) {
	found, err := e.cli.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return container.Container{}, fmt.Errorf("%w: %w", container.ErrNoContainer, err)
	}
	if err != nil {
		return container.Container{}, err
	}
	c := container.Container{ID: found.Container.ID, Name: strings.TrimPrefix(found.Container.Name, "/")}
	if found.Container.Config != nil {
		c.Labels = found.Container.Config.Labels
	}
	if state := found.Container.State; state != nil {
		c.Running, c.PID, c.Exit = state.Running, state.Pid, state.ExitCode
	}
	return c, nil
}

// List finds those that carry a label.
func (e *Engine) List(ctx context.Context, label, value string) ([]container.Container, error) {
	list, err := e.cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label+"="+value)})
	if err != nil {
		return nil, err
	}
	var found []container.Container
	for _, c := range list.Items {
		if c.Labels[label] == value && len(c.Names) > 0 {
			found = append(found, container.Container{ID: c.ID, Name: strings.TrimPrefix(c.Names[0], "/"), Labels: c.Labels, Running: c.State == docker.StateRunning})
		}
	}
	return found, nil
}

// Stop ends it.
func (e *Engine) Stop(ctx context.Context, id string, bound time.Duration) error {
	seconds := int(bound.Seconds())
	_, err := e.cli.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
	return gone(err)
}

// Remove removes it. One whose removal is under way is waited for: its name and
// folders are free only then.
func (e *Engine) Remove(ctx context.Context, id string) error {
	_, err := e.cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !cerrdefs.IsConflict(err) {
		return gone(err)
	}
	const pause = 10 * time.Millisecond
	for {
		if _, there := e.Inspect(ctx, id); errors.Is(there, container.ErrNoContainer) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// Log returns what it printed last.
func (e *Engine) Log(ctx context.Context, id string, lines int) (string, error) {
	log, err := e.cli.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines)})
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }() // only read
	var all strings.Builder
	_, err = stdcopy.StdCopy(&all, &all, log)
	return all.String(), err
}

func gone(err error) error {
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

func terminalName() []string {
	if term := os.Getenv("TERM"); term != "" {
		return []string{"TERM=" + term}
	}
	return nil
}
