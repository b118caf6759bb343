// Package engines lends tests the runtimes of a replica: local processes, and
// real container engines, which scripts/engines brings up in a private folder
// with private storage and ends again.
package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/test/ovs"
)

// Runtime is one that a test can use.
type Runtime struct {
	Label  string // "process", "podman", "podman-rootless", "docker"
	Name   string // as the command line spells it
	Socket string // of its engine; "" for processes
	dir    string // where its engine was brought up
}

// The labels of all runtimes.
const (
	Process        = "process"
	Podman         = "podman"
	PodmanRootless = "podman-rootless"
	Docker         = "docker"
)

// Labels lists them; those of container engines follow the first.
func Labels() []string { return []string{Process, Podman, PodmanRootless, Docker} }

// lent is what this test process has brought up.
var lent = struct {
	sync.Mutex
	dir  string
	made map[string]outcome
}{made: map[string]outcome{}}

// outcome is what came of bringing up one engine.
type outcome struct {
	runtime Runtime
	skip    string // why this machine can't have it
	err     error
}

// Main runs a package's tests and ends the engines that they used. Call it from
// TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	lent.Lock()
	defer lent.Unlock()
	if lent.dir == "" {
		return code
	}
	if out, err := exec.Command(script(), "stop", lent.dir).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "ending the engines: %v\n%s", err, out)
		return max(code, 1)
	}
	if err := os.RemoveAll(lent.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Each runs a test on every runtime, a subtest each. One that this machine can't
// have is skipped, with the reason.
func Each(t *testing.T, f func(t *testing.T, r Runtime)) { each(t, Labels(), f) }

// EachEngine is Each for the container engines alone.
func EachEngine(t *testing.T, f func(t *testing.T, r Runtime)) { each(t, Labels()[1:], f) }

func each(t *testing.T, labels []string, f func(t *testing.T, r Runtime)) {
	t.Helper()
	for _, label := range labels {
		t.Run(label, func(t *testing.T) {
			r := Get(t, label)
			if r.needsUser() {
				r.asUser(t)
				return
			}
			f(t, r)
		})
	}
}

// Get returns a runtime, brought up, with an image of this machine's tools.
func Get(t testing.TB, label string) Runtime {
	t.Helper()
	if label == Process {
		return Runtime{Label: Process, Name: choose.Process}
	}
	ovs.Need(t)
	lent.Lock()
	defer lent.Unlock()
	o, made := lent.made[label]
	if !made {
		o = bringUp(t.Context(), label)
		lent.made[label] = o
	}
	if o.skip != "" {
		t.Skip(o.skip)
	}
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.runtime
}

// inherited names the variable by which a test process that runs as another user
// is told of the engine that its parent brought up.
const inherited = "OVS_OFFLINE_TEST_ENGINE"

func bringUp(ctx context.Context, label string) outcome {
	r := Runtime{Label: label, Name: strings.TrimSuffix(label, "-rootless")}
	if had, socket, ok := strings.Cut(os.Getenv(inherited), "="); ok && had == label {
		r.Socket = socket
		return outcome{runtime: r}
	}
	if lent.dir == "" {
		dir, err := folder()
		if err != nil {
			return outcome{err: err}
		}
		lent.dir = dir
	}
	socket, skip, err := start(ctx, lent.dir, label)
	if skip != "" || err != nil {
		return outcome{skip: skip, err: err}
	}
	r.Socket, r.dir = socket, lent.dir
	return outcome{runtime: r, err: r.makeImage(ctx)}
}

// Alone brings up an engine with nothing in it for one test, with which it ends,
// and returns its address.
func Alone(t testing.TB, label string) string {
	t.Helper()
	ovs.Need(t)
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(script(), "stop", dir).CombinedOutput(); err != nil {
			t.Errorf("ending %s: %v: %s", label, err, out)
		}
		_ = os.Remove(dir)
	})
	socket, skip, err := start(t.Context(), dir, label)
	if err != nil {
		t.Fatal(err)
	}
	if skip != "" {
		t.Skip(skip)
	}
	return socket
}

// folder makes one for engines: a user without privileges can enter it, and it is
// short, since a socket's path has 107 bytes at most.
func folder() (string, error) {
	dir, err := os.MkdirTemp("", "oo-engines-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// start starts an engine in a folder and returns its address, or why this machine
// can't have it.
func start(ctx context.Context, dir, label string) (socket, skip string, err error) {
	var out, said strings.Builder
	c := exec.CommandContext(ctx, script(), "start", dir, label)
	c.Stdout, c.Stderr = &out, &said
	const cannot = 3
	var ended *exec.ExitError
	switch err := c.Run(); {
	case errors.As(err, &ended) && ended.ExitCode() == cannot:
		return "", strings.TrimSpace(said.String()), nil
	case err != nil:
		return "", "", fmt.Errorf("starting %s: %w: %s", label, err, said.String())
	}
	_, socket, ok := strings.Cut(strings.TrimSpace(out.String()), "=")
	if !ok {
		return "", "", fmt.Errorf("starting %s: it printed %q", label, out.String())
	}
	return socket, "", nil
}

// makeImage is `ovs-offline build --from-host`.
func (r Runtime) makeImage(ctx context.Context) error {
	for _, setting := range r.Env() {
		name, value, _ := strings.Cut(setting, "=")
		before, was := os.LookupEnv(name)
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		if was {
			defer os.Setenv(name, before)
		} else {
			defer os.Unsetenv(name)
		}
	}
	host, err := image.FromHost(ctx)
	if err != nil {
		return err
	}
	engine, err := image.Connect(ctx, r.Name)
	if err != nil {
		return err
	}
	_, err = host.Load(ctx, engine, "", "test")
	return err
}

// Env is what makes ovs-offline use this runtime and no other.
func (r Runtime) Env() []string {
	const nowhere = "unix:///nonexistent/engine"
	env := map[string]string{"CONTAINER_HOST": nowhere, "DOCKER_HOST": nowhere, "OVS_OFFLINE_RUNTIME": r.Name}
	switch r.Name {
	case choose.Podman:
		env["CONTAINER_HOST"] = r.Socket
	case choose.Docker:
		env["DOCKER_HOST"] = r.Socket
	}
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// Use points this test process at the runtime for as long as the test runs.
func (r Runtime) Use(t testing.TB) {
	t.Helper()
	for _, setting := range r.Env() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

// For returns the runtime for the replica of a workdir, as `ovs-offline start`
// chooses it.
func (r Runtime) For(t testing.TB, wd *workdir.Dir) runtime.Runtime {
	t.Helper()
	r.Use(t)
	choice, err := choose.New(wd, "test").Choose(t.Context(), r.Name, container.Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	return choice.Runtime
}

// root is the top folder of the repository.
func root() string {
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		path, err := filepath.Abs(dir)
		if err != nil || path == "/" {
			return "."
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			return path
		}
	}
}

func script() string { return filepath.Join(root(), "scripts/engines") }
