package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/api/handlers"
	"github.com/containers/podman/v5/pkg/bindings"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/specgen"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"

	"ovs-offline/replica/runtime"
)

// podman is podman's service, by the bindings of its own API.
type podman struct {
	connection context.Context // only its values are used: the bindings find the connection there
	address    string
	rootless   bool // the service runs without root's privileges
}

// connectPodman connects to podman's service at an address. The bindings refuse a service
// that is older than podman 4.0.
func connectPodman(ctx context.Context, address string, rootless bool) (Engine, error) {
	logrus.SetOutput(io.Discard) // what the bindings log is in their errors as well
	connection, err := bindings.NewConnection(ctx, address)
	var refused bindings.ConnectError
	if errors.As(err, &refused) {
		err = refused.Err // without the bindings' own "unable to connect to Podman socket"
	}
	if err != nil {
		return nil, err
	}
	return &podman{connection: connection, address: address, rootless: rootless}, nil
}

func (*podman) Name() string { return Podman }

func (p *podman) Address() string { return p.address }

// call is the context of one call of the bindings: it ends with the caller's, and has the
// connection among its values.
type call struct {
	context.Context
	connection context.Context
}

// Value returns a value of the caller's context, or else of the connection.
func (c call) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.connection.Value(key)
}

func (p *podman) call(ctx context.Context) context.Context { return call{ctx, p.connection} }

func (p *podman) Create(ctx context.Context, spec Spec) (string, error) {
	made, err := containers.CreateWithSpec(p.call(ctx), p.generator(spec), nil)
	return made.ID, err
}

func (p *podman) generator(spec Spec) *specgen.SpecGenerator {
	no, yes, atOnce := false, true, uint(0)
	generator := specgen.NewSpecGenerator(spec.Image, false)
	generator.Name, generator.Labels, generator.Command, generator.Env, generator.WorkDir = spec.Name, spec.Labels, spec.Command, spec.Env, "/"
	generator.Entrypoint = []string{""} // none: the image's own would take the command as arguments
	generator.User = fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	generator.UserNS, generator.PidNS = specgen.Namespace{NSMode: specgen.Host}, specgen.Namespace{NSMode: specgen.Private}
	if p.rootless {
		generator.UserNS = specgen.Namespace{NSMode: specgen.KeepID}
	}
	if spec.Join != "" {
		generator.PidNS = specgen.Namespace{NSMode: specgen.FromContainer, Value: spec.Join}
		if p.rootless {
			generator.UserNS = generator.PidNS
		}
	}
	generator.NetNS, generator.IpcNS = specgen.Namespace{NSMode: specgen.NoNetwork}, specgen.Namespace{NSMode: specgen.Private}
	generator.CapDrop = []string{"all"}
	generator.NoNewPrivileges, generator.ReadOnlyFilesystem = &yes, &yes
	generator.ReadWriteTmpfs = &no // podman's own /tmp, /run and others have no size limit
	generator.ImageVolumeMode = "ignore"
	generator.EnvHost, generator.HTTPProxy = &no, &no
	generator.RestartPolicy, generator.StopTimeout = define.RestartPolicyNo, &atOnce // Stop sets its own timeout
	generator.LogConfiguration = &specgen.LogConfig{Driver: define.KubernetesLogging}
	generator.Mounts = []specs.Mount{{Type: "tmpfs", Source: "tmpfs", Destination: "/tmp", Options: []string{"rw", "nosuid", "nodev", "size=16m", "mode=1777"}}}
	for _, folder := range spec.Folders {
		options := []string{"rw", "rbind"}
		if spec.Join == "" {
			options = append(options, "Z") // the label of SELinux, which containers that join it get too
		}
		generator.Mounts = append(generator.Mounts, specs.Mount{Type: "bind", Source: folder, Destination: folder, Options: options})
	}
	return generator
}

func (p *podman) Start(ctx context.Context, id string) error {
	return containers.Start(p.call(ctx), id, nil)
}

func (p *podman) Inspect(ctx context.Context, name string) (Container, error) {
	found, err := containers.Inspect(p.call(ctx), name, nil)
	if isMissing(err) {
		return Container{}, fmt.Errorf("%w: %w", ErrNoContainer, err)
	}
	if err != nil {
		return Container{}, err
	}
	container := Container{ID: found.ID, Name: found.Name}
	if found.Config != nil {
		container.Labels = found.Config.Labels
	}
	if state := found.State; state != nil {
		container.Running, container.PID, container.Exit = state.Running, state.Pid, int(state.ExitCode)
	}
	return container, nil
}

func (p *podman) List(ctx context.Context, label, value string) ([]Container, error) {
	options := new(containers.ListOptions).WithAll(true).WithFilters(map[string][]string{"label": {labelFilter(label, value)}})
	list, err := containers.List(p.call(ctx), options)
	if err != nil {
		return nil, err
	}
	var found []Container
	for _, container := range list {
		if (value == "" || container.Labels[label] == value) && len(container.Names) > 0 {
			found = append(found, Container{ID: container.ID, Name: container.Names[0], ImageID: digest(container.ImageID),
				Labels: container.Labels, Running: container.State == define.ContainerStateRunning.String()})
		}
	}
	return found, nil
}

func (p *podman) Stop(ctx context.Context, id string, timeout time.Duration) error {
	err := containers.Stop(p.call(ctx), id, new(containers.StopOptions).WithTimeout(uint(timeout.Seconds())))
	if isMissing(err) {
		return nil
	}
	return err
}

// Remove also removes the containers that depend on a container, which are in the PID namespace
// of the tools: a killed start may have made one since the containers were listed.
func (p *podman) Remove(ctx context.Context, id string) error {
	_, err := containers.Remove(p.call(ctx), id, new(containers.RemoveOptions).WithForce(true).WithVolumes(true).WithDepend(true).WithTimeout(0))
	if isMissing(err) {
		return nil
	}
	return err
}

func (p *podman) Log(ctx context.Context, id string, lines int) (string, error) {
	printed, ended := make(chan string), make(chan error, 1)
	go func() {
		options := new(containers.LogOptions).WithStdout(true).WithStderr(true).WithTail(strconv.Itoa(lines))
		ended <- containers.Logs(p.call(ctx), id, options, printed, printed)
	}()
	var text strings.Builder
	for {
		select {
		case line := <-printed:
			text.WriteString(line)
		case err := <-ended:
			return text.String(), err
		}
	}
}

func (p *podman) Terminal(ctx context.Context, id string, command runtime.Command) (int, error) {
	config := new(handlers.ExecCreateConfig)
	config.Cmd, config.Env, config.Tty = command.Argv, terminalSettings(command.Env), true
	config.AttachStdin, config.AttachStdout, config.AttachStderr = true, true, true
	session, err := containers.ExecCreate(p.call(ctx), id, config)
	if err != nil {
		return 0, err
	}
	attach := new(containers.ExecStartAndAttachOptions).WithAttachOutput(true).WithOutputStream(command.Stdout).WithAttachError(true).WithErrorStream(command.Stderr)
	if command.Stdin != nil {
		attach = attach.WithAttachInput(true).WithInputStream(*bufio.NewReader(command.Stdin))
	}
	// podman 4.3 resets the connection if the program ends before it has read all input.
	failed := containers.ExecStartAndAttach(p.call(ctx), session, attach)
	if failed != nil && !errors.Is(failed, syscall.ECONNRESET) {
		return 0, failed
	}
	ended, err := containers.ExecInspect(p.call(ctx), session, nil)
	if err != nil {
		return 0, err
	}
	if ended.Running {
		return 0, failed
	}
	return ended.ExitCode, nil
}

// isMissing reports whether err is the service's answer that what was asked for does not
// exist.
func isMissing(err error) bool {
	if err == nil {
		return false
	}
	code, other := bindings.CheckResponseCode(err)
	return other == nil && code == http.StatusNotFound
}

// digest returns the ID of an image as docker and OCI spell it: podman's own API leaves out
// the algorithm.
func digest(id string) string {
	if id == "" || strings.Contains(id, ":") {
		return id
	}
	return "sha256:" + id
}
