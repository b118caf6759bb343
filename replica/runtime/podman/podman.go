// Package podman is podman as a container.Engine, by its service's socket.
package podman

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/api/handlers"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/images"
	"github.com/containers/podman/v5/pkg/specgen"
	spec "github.com/opencontainers/runtime-spec/specs-go"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
)

// Engine is a podman service.
type Engine struct {
	conn     context.Context
	address  string
	rootless bool
}

var _ container.Engine = (*Engine)(nil)

// New connects to podman's service, as Connect does.
func New(ctx context.Context) (*Engine, error) {
	conn, err := Connect(ctx)
	if err != nil {
		return nil, err
	}
	e := &Engine{conn: conn}
	client, err := bindings.GetClient(conn)
	if err != nil {
		return nil, err
	}
	// Asking podman itself takes it a second: it runs every helper it has.
	owner, err := container.SocketOwner(client.URI.Path)
	if err != nil {
		return nil, err
	}
	e.rootless, e.address = owner != 0, client.URI.String()
	return e, nil
}

// Name is the spelling the command line uses.
func (e *Engine) Name() string { return "podman" }

// Address is where the service listens.
func (e *Engine) Address() string { return e.address }

func (e *Engine) with(ctx context.Context) context.Context { return with(ctx, e.conn) }

// HasImage asks whether it exists: inspecting one that does not is a server's
// error in podman 4.3.
func (e *Engine) HasImage(ctx context.Context, name string) (bool, error) {
	return images.Exists(e.with(ctx), name, nil)
}

// Images lists the images whose names end in repository.
func (e *Engine) Images(ctx context.Context, repository string) ([]container.Image, error) {
	list, err := images.List(e.with(ctx), nil)
	if err != nil {
		return nil, err
	}
	var found []container.Image
	for _, i := range list {
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
	made, err := containers.CreateWithSpec(e.with(ctx), e.generator(s), nil)
	return made.ID, err
}

func (e *Engine) generator(s container.Spec) *specgen.SpecGenerator {
	no, yes := false, true
	g := specgen.NewSpecGenerator(s.Image, false)
	g.Name, g.Labels, g.Command, g.Env = s.Name, s.Labels, s.Command, s.Env
	g.Entrypoint = []string{} // an image's own would swallow the command
	g.WorkDir = "/"
	g.User = fmt.Sprintf("%d:%d", s.UID, s.GID)
	g.UserNS = specgen.Namespace{NSMode: specgen.Host}
	switch {
	case e.rootless && s.Join != "":
		g.UserNS = specgen.Namespace{NSMode: specgen.FromContainer, Value: s.Join}
	case e.rootless:
		g.UserNS = specgen.Namespace{NSMode: specgen.KeepID}
	}
	g.PidNS = specgen.Namespace{NSMode: specgen.Private}
	if s.Join != "" {
		g.PidNS = specgen.Namespace{NSMode: specgen.FromContainer, Value: s.Join}
	}
	g.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	g.IpcNS = specgen.Namespace{NSMode: specgen.Private}
	g.CapDrop = []string{"all"}
	g.NoNewPrivileges, g.ReadOnlyFilesystem, g.ReadWriteTmpfs = &yes, &yes, &no
	g.Systemd, g.RestartPolicy, g.ImageVolumeMode = "false", define.RestartPolicyNo, "ignore"
	g.EnvHost, g.HTTPProxy = &no, &no
	g.LogConfiguration = &specgen.LogConfig{Driver: define.KubernetesLogging}
	g.Mounts = []spec.Mount{{Type: "tmpfs", Source: "tmpfs", Destination: "/tmp", Options: []string{"rw", "nosuid", "nodev", "size=16m", "mode=1777"}}}
	for _, folder := range s.Folders {
		options := []string{"rw", "rbind"}
		if s.Relabel {
			options = append(options, "Z") // means nothing where there is no SELinux
		}
		g.Mounts = append(g.Mounts, spec.Mount{Type: "bind", Source: folder, Destination: folder, Options: options})
	}
	return g
}

// Start starts it.
func (e *Engine) Start(ctx context.Context, id string) error {
	return containers.Start(e.with(ctx), id, nil)
}

// Inspect finds a container by name or id.
func (e *Engine) Inspect(ctx context.Context, name string) (container.Container, error) {
	found, err := containers.Inspect(e.with(ctx), name, nil)
	if err != nil {
		return container.Container{}, missing(err)
	}
	c := container.Container{ID: found.ID, Name: found.Name}
	if found.Config != nil {
		c.Labels = found.Config.Labels
	}
	if found.State != nil {
		c.Running, c.PID, c.Exit = found.State.Running, found.State.Pid, int(found.State.ExitCode)
	}
	return c, nil
}

// List finds those that carry a label.
func (e *Engine) List(ctx context.Context, label, value string) ([]container.Container, error) {
	options := new(containers.ListOptions).WithAll(true).WithFilters(map[string][]string{"label": {label + "=" + value}})
	list, err := containers.List(e.with(ctx), options)
	if err != nil {
		return nil, err
	}
	var found []container.Container
	for _, c := range list {
		if c.Labels[label] == value && len(c.Names) > 0 {
			found = append(found, container.Container{ID: c.ID, Name: c.Names[0], Labels: c.Labels, Running: c.State == "running", PID: c.Pid, Exit: int(c.ExitCode)})
		}
	}
	return found, nil
}

// Stop ends it.
func (e *Engine) Stop(ctx context.Context, id string, bound time.Duration) error {
	return gone(containers.Stop(e.with(ctx), id, new(containers.StopOptions).WithTimeout(uint(bound.Seconds()))))
}

// Remove removes it.
func (e *Engine) Remove(ctx context.Context, id string) error {
	_, err := containers.Remove(e.with(ctx), id, new(containers.RemoveOptions).WithForce(true).WithVolumes(true).WithTimeout(0))
	return gone(err)
}

// Log returns what it printed last.
func (e *Engine) Log(ctx context.Context, id string, lines int) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := make(chan string)
	done := make(chan error, 1)
	go func() {
		options := new(containers.LogOptions).WithStdout(true).WithStderr(true).WithTail(strconv.Itoa(lines))
		done <- containers.Logs(e.with(ctx), id, options, said, said)
	}()
	var all strings.Builder
	for {
		select {
		case line := <-said:
			all.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		case err := <-done:
			return all.String(), err
		}
	}
}

// Terminal runs a program on the caller's terminal.
func (e *Engine) Terminal(ctx context.Context, id string, c runtime.Command) (int, error) {
	config := new(handlers.ExecCreateConfig)
	config.Cmd, config.Tty = c.Argv, true
	config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true
	for name, value := range c.Env {
		config.Env = append(config.Env, name+"="+value)
	}
	if term := os.Getenv("TERM"); term != "" {
		config.Env = append(config.Env, "TERM="+term)
	}
	session, err := containers.ExecCreate(e.with(ctx), id, config)
	if err != nil {
		return 0, err
	}
	var in io.Reader = strings.NewReader("")
	if c.Stdin != nil {
		in = c.Stdin
	}
	attach := new(containers.ExecStartAndAttachOptions).WithAttachInput(true).WithInputStream(*bufio.NewReader(in)).
		WithAttachOutput(true).WithOutputStream(c.Stdout).WithAttachError(true).WithErrorStream(c.Stderr)
	// A program that ends before it has read all that was typed resets the connection (podman 4.3).
	failed := containers.ExecStartAndAttach(e.with(ctx), session, attach)
	if failed != nil && !errors.Is(failed, syscall.ECONNRESET) {
		return 0, failed
	}
	ended, err := containers.ExecInspect(e.with(ctx), session, nil)
	if err == nil && ended.Running {
		err = failed
	}
	return ended.ExitCode, err
}

// code is the http status of an error of the service; 0 where it has none.
func code(err error) int {
	if err == nil {
		return 0
	}
	code, unknown := bindings.CheckResponseCode(err)
	if unknown != nil {
		return 0
	}
	return code
}

func missing(err error) error {
	if code(err) == http.StatusNotFound {
		return fmt.Errorf("%w: %w", container.ErrNoContainer, err)
	}
	return err
}

// gone takes a container that is not there for one that was removed.
func gone(err error) error {
	if errors.Is(missing(err), container.ErrNoContainer) {
		return nil
	}
	return err
}
