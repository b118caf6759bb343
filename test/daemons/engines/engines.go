// Package engines provides the runtimes of a replica to tests: local processes, and
// real container engines. scripts/engines starts each engine in a private folder
// with private storage, and ends it.
package engines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"ovs-offline/replica/choose"
	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// Runtime is a runtime that a test can use.
type Runtime struct {
	Label  string // "process", "process-root", "podman", "podman-rootless", "docker"
	Name   string // as in the flag --runtime
	Image  string // the name of an image for local processes, for process-root only
	data   string // the XDG_DATA_HOME that holds the image
	Socket string // the engine's address, "" for processes
	dir    string // the folder in which scripts/engines started the engine, and only that
}

// The labels of all runtimes.
const (
	Process        = "process"
	ProcessRoot    = "process-root" // local processes in the root file system of an image
	Podman         = "podman"
	PodmanRootless = "podman-rootless"
	Docker         = "docker"
)

// Engines returns the labels of container engines.
func Engines() []string { return []string{Podman, PodmanRootless, Docker} }

// started holds the engines that this test process has started.
var started = struct {
	sync.Mutex
	dirs     []string
	outcomes map[string]outcome
}{outcomes: map[string]outcome{}}

// outcome is the result of starting one engine.
type outcome struct {
	runtime Runtime
	skip    string // why the engine cannot run on this machine
	err     error
}

// Main runs a package's tests, ends the engines that they used, and returns the
// exit code for TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	started.Lock()
	defer started.Unlock()
	for _, dir := range started.dirs {
		if out, err := exec.Command(script(), "stop", dir).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "ending the engine in %s: %v\n%s", dir, err, out)
			code = max(code, 1)
		} else if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// alike returns the runtime that answers by the same code as another and stands for it in make test, "" if none does.
func alike(label string) string {
	switch label {
	case Podman:
		return PodmanRootless
	case ProcessRoot:
		return Process
	}
	return ""
}

// Each runs a test on every runtime, as a subtest of the runtime's label. It skips
// a runtime that cannot run on this machine, with the reason. A runtime that answers by the same code as another is left to
// the sweep.
func Each(t *testing.T, f func(t *testing.T, r Runtime)) {
	each(t, append([]string{Process, ProcessRoot}, Engines()...), f)
}

// EachEngine works like Each, but only for the container engines.
func EachEngine(t *testing.T, f func(t *testing.T, r Runtime)) { each(t, Engines(), f) }

func each(t *testing.T, labels []string, f func(t *testing.T, r Runtime)) {
	t.Helper()
	for _, label := range labels {
		t.Run(label, func(t *testing.T) {
			if other := alike(label); other != "" {
				sweep.Only(t, "the same test on "+other)
			}
			r := Get(t, label)
			if r.needsUser() {
				r.asUser(t)
				return
			}
			f(t, r)
		})
	}
}

// Get returns a runtime by its label. It starts a container engine on first use, and
// makes an image of this machine's tools there. An engine that has ended by itself since
// is started again, and the end of its log is in the test's.
func Get(t testing.TB, label string) Runtime {
	t.Helper()
	switch label {
	case Process:
		return Runtime{Label: Process, Name: choose.Process}
	case ProcessRoot:
		if inherited := os.Getenv(StartImage); inherited != "" {
			return Runtime{Label: ProcessRoot, Name: choose.Process, Image: inherited, data: os.Getenv("XDG_DATA_HOME")}
		}
		image, data := HostImage(t)
		return Runtime{Label: ProcessRoot, Name: choose.Process, Image: image.Name, data: data}
	}
	ovs.Need(t)
	started.Lock()
	defer started.Unlock()
	o, known := started.outcomes[label]
	if ended := known && o.runtime.dir != "" && !o.runtime.answers(); ended {
		t.Logf("%s has ended by itself. Its log:\n%s", label, o.runtime.log())
		known = false
	}
	if !known {
		o = bringUp(t.Context(), label)
		started.outcomes[label] = o
	}
	if o.skip != "" {
		t.Skip(o.skip)
	}
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.runtime
}

// inherited is the environment variable that names the parent's engine to a test
// process that runs as another user: LABEL=ADDRESS.
const inherited = "OVS_OFFLINE_TEST_ENGINE"

func bringUp(ctx context.Context, label string) outcome {
	r := Runtime{Label: label, Name: strings.TrimSuffix(label, "-rootless")}
	if parent, socket, ok := strings.Cut(os.Getenv(inherited), "="); ok && parent == label {
		r.Socket = socket
		return outcome{runtime: r}
	}
	dir, err := folder()
	if err != nil {
		return outcome{err: err}
	}
	started.dirs = append(started.dirs, dir)
	socket, skip, err := start(ctx, dir, label)
	if skip != "" || err != nil {
		return outcome{skip: skip, err: err}
	}
	r.Socket, r.dir = socket, dir
	return outcome{runtime: r, err: r.makeImage(ctx)}
}

// answers reports whether the engine accepts connections.
func (r Runtime) answers() bool {
	c, err := net.Dial("unix", r.socketPath())
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

func (r Runtime) socketPath() string { return strings.TrimPrefix(r.Socket, "unix://") }

// log returns the part of the engine's log that shows why it ended: a program in Go that
// crashes prints the reason before the stacks of its goroutines.
func (r Runtime) log() string {
	text, err := os.ReadFile(filepath.Join(r.dir, r.Label, "log"))
	if err != nil {
		return err.Error()
	}
	const most = 4 << 10
	if at := crash.FindIndex(text); at != nil {
		return string(text[at[0]:min(at[0]+most, len(text))])
	}
	return string(text[max(0, len(text)-most):])
}

var crash = regexp.MustCompile(`(?m)^(panic|fatal error|runtime|SIG[A-Z]+): `)

// Alone starts an engine without images for one test, and returns its address. The
// engine ends with the test.
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

// folder makes a folder for engines. Other users can enter it, and its path is
// short, because the path of a unix socket has at most 107 bytes.
func folder() (string, error) {
	dir, err := os.MkdirTemp("", "oo-engines-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// start starts an engine in a folder and returns its address, or in skip why the
// engine cannot run on this machine.
func start(ctx context.Context, dir, label string) (socket, skip string, err error) {
	var out, stderr strings.Builder
	c := exec.CommandContext(ctx, script(), "start", dir, label)
	c.Stdout, c.Stderr = &out, &stderr
	const cannot = 3
	var ended *exec.ExitError
	switch err := c.Run(); {
	case errors.As(err, &ended) && ended.ExitCode() == cannot:
		return "", strings.TrimSpace(stderr.String()), nil
	case err != nil:
		return "", "", fmt.Errorf("starting %s: %w: %s", label, err, stderr.String())
	}
	_, socket, ok := strings.Cut(strings.TrimSpace(out.String()), "=")
	if !ok {
		return "", "", fmt.Errorf("starting %s: it printed %q", label, out.String())
	}
	return socket, "", nil
}

// makeImage makes the image that `ovs-offline image build --from-host` makes.
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
	host, err := build.FromHost(ctx)
	if err != nil {
		return err
	}
	e, err := engine.Connect(ctx, r.Name)
	if err != nil {
		return err
	}
	_, err = host.Load(ctx, e, "", "test")
	return err
}

// StartImage is the environment variable with the image that StartArguments adds.
const StartImage = "OVS_OFFLINE_TEST_IMAGE"

// StartArguments returns the arguments of ovs-offline, with --image for a start on
// process-root: start would prefer this host's tools of the same version.
func StartArguments(args []string) []string {
	image := os.Getenv(StartImage)
	if i := slices.Index(args, "start"); i >= 0 && image != "" {
		return slices.Insert(slices.Clone(args), i+1, "--image="+image)
	}
	return args
}

// Env returns the environment variables that make ovs-offline use this runtime only. A
// program that stands in for it must use StartArguments.
func (r Runtime) Env() []string {
	const nowhere = "unix:///nonexistent/engine"
	env := map[string]string{"CONTAINER_HOST": nowhere, "DOCKER_HOST": nowhere, "OVS_OFFLINE_RUNTIME": r.Name}
	if r.Image != "" {
		env["XDG_DATA_HOME"], env[StartImage] = r.data, r.Image
	}
	switch r.Name {
	case engine.Podman:
		env["CONTAINER_HOST"] = r.Socket
	case engine.Docker:
		env["DOCKER_HOST"] = r.Socket
	}
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// Use sets the variables of Env in this process until the test ends.
func (r Runtime) Use(t testing.TB) {
	t.Helper()
	for _, setting := range r.Env() {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

// For returns the runtime that `ovs-offline start` chooses for a workdir.
func (r Runtime) For(t testing.TB, wd *workdir.Dir) runtime.Runtime {
	t.Helper()
	r.Use(t)
	choice, err := choose.For(wd, "test").Choose(t.Context(), r.Name, runtime.Wanted{Image: r.Image})
	if err != nil {
		t.Fatal(err)
	}
	return choice.Runtime
}

// root returns the top folder of the repository.
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
