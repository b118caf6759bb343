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

// docker is docker's service.
type docker struct {
	client   *client.Client
	rootless bool // the service runs without root's privileges
}

// connectDocker connects to docker's service at an address.
func connectDocker(ctx context.Context, address string, rootless bool) (Engine, error) {
	c, err := client.New(client.WithHost(address))
	if err != nil {
		return nil, err
	}
	if _, err := c.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &docker{client: c, rootless: rootless}, nil
}

func (*docker) Name() string { return Docker }

func (d *docker) Address() string { return d.client.DaemonHost() }

func (d *docker) Create(ctx context.Context, spec Spec) (string, error) {
	made, err := d.client.ContainerCreate(ctx, client.ContainerCreateOptions{Name: spec.Name, Config: d.config(spec), HostConfig: d.hostConfig(spec)})
	return made.ID, err
}

func (d *docker) config(spec Spec) *api.Config {
	config := &api.Config{
		Image: spec.Image, Labels: spec.Labels, Cmd: spec.Command, WorkingDir: "/",
		Entrypoint: []string{""}, // none: the image's own would take the command as arguments
		User:       fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid()),
		Env:        settings(spec.Env),
	}
	if d.rootless {
		config.User = "0:0" // the user whose daemon it is, seen from inside
	}
	return config
}

func (d *docker) hostConfig(spec Spec) *api.HostConfig {
	host := &api.HostConfig{
		NetworkMode: "none", IpcMode: "private", UsernsMode: "host",
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
		Tmpfs:         map[string]string{"/tmp": "rw,nosuid,nodev,size=16m,mode=1777"},
		RestartPolicy: api.RestartPolicy{Name: api.RestartPolicyDisabled},
		LogConfig:     api.LogConfig{Type: "json-file"},
	}
	if spec.Join != "" {
		host.PidMode = api.PidMode("container:" + spec.Join)
	}
	for _, folder := range spec.Folders {
		bind := folder + ":" + folder
		if spec.Join == "" {
			bind += ":Z" // the label of SELinux, which containers that join it get too
		}
		host.Binds = append(host.Binds, bind)
	}
	return host
}

func (d *docker) Start(ctx context.Context, id string) error {
	_, err := d.client.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return err
}

func (d *docker) Inspect(ctx context.Context, name string) (Container, error) {
	found, err := d.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return Container{}, fmt.Errorf("%w: %w", ErrNoContainer, err)
	}
	if err != nil {
		return Container{}, err
	}
	container := Container{ID: found.Container.ID, Name: strings.TrimPrefix(found.Container.Name, "/")}
	if found.Container.Config != nil {
		container.Labels = found.Container.Config.Labels
	}
	if state := found.Container.State; state != nil {
		container.Running, container.PID, container.Exit = state.Running, state.Pid, state.ExitCode
	}
	return container, nil
}

func (d *docker) List(ctx context.Context, label, value string) ([]Container, error) {
	list, err := d.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", labelFilter(label, value))})
	if err != nil {
		return nil, err
	}
	var found []Container
	for _, summary := range list.Items {
		if (value == "" || summary.Labels[label] == value) && len(summary.Names) > 0 {
			found = append(found, Container{ID: summary.ID, Name: strings.TrimPrefix(summary.Names[0], "/"), ImageID: summary.ImageID,
				Labels: summary.Labels, Running: summary.State == api.StateRunning})
		}
	}
	return found, nil
}

func (d *docker) Stop(ctx context.Context, id string, timeout time.Duration) error {
	seconds := int(timeout.Seconds())
	_, err := d.client.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
	return unlessGone(err)
}

// Remove waits for the end of a removal that is already under way: docker reports it as a
// conflict.
func (d *docker) Remove(ctx context.Context, id string) error {
	_, err := d.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if !cerrdefs.IsConflict(err) {
		return unlessGone(err)
	}
	const pause = 10 * time.Millisecond
	for {
		if _, failed := d.Inspect(ctx, id); errors.Is(failed, ErrNoContainer) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (d *docker) Log(ctx context.Context, id string, lines int) (string, error) {
	log, err := d.client.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines)})
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
