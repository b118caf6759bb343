package container_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/workdir"
)

func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }

// replica is a runtime under test, with its engine.
type replica struct {
	*container.Runtime
	engine engine.Engine
	wd     *workdir.Dir
}

func newReplica(t *testing.T, r engines.Runtime) replica {
	t.Helper()
	r.Use(t)
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	e, err := engine.Connect(t.Context(), r.Name)
	if err != nil {
		t.Fatal(err)
	}
	images, err := container.Images(t.Context(), e, "")
	if err != nil {
		t.Fatal(err)
	}
	made := container.New(e, images[0].Name, "test", wd)
	t.Cleanup(func() {
		if err := made.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return replica{Runtime: made, engine: e, wd: wd}
}

// daemon returns an ovsdb-server of a database that need not exist.
func (r replica) daemon(program string) runtime.Daemon {
	dir := r.wd.VarRun(workdir.OVS)
	return runtime.Daemon{Role: "ovsdb-server-ovs", Program: program, RunDir: dir,
		Log:  filepath.Join(r.wd.Run(), "server.log"),
		Args: []string{r.wd.WorkingCopy(workdir.OVS), "--remote=punix:" + r.wd.Socket(workdir.OVS)}}
}

func (r replica) mkdirs(t *testing.T) {
	t.Helper()
	for _, dir := range []string{r.wd.VarRun(workdir.OVS), filepath.Dir(r.wd.WorkingCopy(workdir.OVS))} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// left lists the containers of the replica.
func (r replica) left(t *testing.T) []engine.Container {
	t.Helper()
	list, err := r.engine.List(context.Background(), container.LabelWorkdir, r.wd.Path())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDaemonThatDoesNotStart checks that the error holds the output of the daemon, and
// that its container is removed.
func TestDaemonThatDoesNotStart(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		r := newReplica(t, e)
		r.mkdirs(t)
		err := r.Start(t.Context(), r.daemon("ovsdb-server"))
		if err == nil || !strings.Contains(err.Error(), "conf.db") || !strings.Contains(err.Error(), "No such file") {
			t.Errorf("the error without a database is %v", err)
		}
		err = r.Start(t.Context(), r.daemon("no-such-daemon"))
		if err == nil || !strings.Contains(err.Error(), "no-such-daemon") {
			t.Errorf("the error without a program is %v", err)
		}
		for _, c := range r.left(t) {
			if c.Labels[container.LabelRole] != "tools" {
				t.Errorf("%s is left", c.Name)
			}
		}
	})
}

// TestContainersThatAreMadeDuringTheEnd checks that End removes the containers that an engine
// still makes for a killed start.
func TestContainersThatAreMadeDuringTheEnd(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		r := newReplica(t, e)
		r.mkdirs(t)
		if _, err := r.Tool(t.Context(), r.wd.Run(), nil, "ovsdb-tool", "--version"); err != nil {
			t.Fatal(err)
		}
		tools := r.left(t)[0]
		images, err := container.Images(t.Context(), r.engine, "")
		if err != nil {
			t.Fatal(err)
		}
		// Several containers are made at the same time, as the daemons of a start are.
		made, late := make(chan bool, 1), sync.WaitGroup{}
		for i := range 4 {
			late.Go(func() {
				for j := range 8 {
					spec := engine.Spec{Name: fmt.Sprintf("%s-%d-%d", tools.Name, i, j), Image: images[0].Name,
						Command: []string{"sleep", "1000"},
						Labels:  map[string]string{container.LabelWorkdir: r.wd.Path(), container.LabelRole: "late"}, Join: tools.ID}
					_, err := r.engine.Create(t.Context(), spec)
					select {
					case made <- err == nil:
					default:
					}
				}
			})
		}
		if !<-made {
			t.Error("no container was made before the end")
		}
		if err := r.End(t.Context()); err != nil {
			t.Error(err)
		}
		late.Wait()
		if err := r.End(t.Context()); err != nil {
			t.Errorf("the second end: %v", err)
		}
		expect.Equal(t, r.left(t), nil, "containers after the end")
	})
}

// TestForeignContainerIsKept checks that a container that another program made is never
// removed.
func TestForeignContainerIsKept(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		r := newReplica(t, e)
		r.mkdirs(t)
		d := r.daemon("ovsdb-server")
		// The names of our containers, taken from a running one.
		if _, err := r.Tool(t.Context(), r.wd.Run(), nil, "ovsdb-tool", "--version"); err != nil {
			t.Fatal(err)
		}
		ours := r.left(t)
		if len(ours) != 1 {
			t.Fatalf("%+v", ours)
		}
		name := strings.Replace(ours[0].Name, "-tools", "-"+d.Role, 1)
		images, err := container.Images(t.Context(), r.engine, "")
		if err != nil {
			t.Fatal(err)
		}
		foreign, err := r.engine.Create(t.Context(),
			engine.Spec{Name: name, Image: images[0].Name, Command: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.engine.Remove(context.Background(), foreign); err != nil {
				t.Error(err)
			}
		})
		if _, err := r.Tool(t.Context(), r.wd.Run(), nil, "ovsdb-tool", "create", r.wd.WorkingCopy(workdir.OVS),
			"/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
			t.Fatal(err)
		}
		if err := r.Start(t.Context(), d); err == nil || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), "left alone") {
			t.Errorf("the error of start is %v", err)
		}
		if err := errors.Join(r.Stop(t.Context(), d), r.End(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := r.engine.Inspect(t.Context(), foreign); err != nil {
			t.Errorf("the foreign container is gone: %v", err)
		}
	})
}

// TestImageWithoutItsRegistry checks that podman finds an image by a name without its
// registry, as `podman run` does, and docker only by the whole name.
func TestImageWithoutItsRegistry(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		r := newReplica(t, e)
		ours, err := container.Images(t.Context(), r.engine, "")
		if err != nil {
			t.Fatal(err)
		}
		const registry, short = "registry.invalid/", "team/copy"
		err = r.engine.Build(t.Context(), engine.Build{Containerfile: "FROM " + ours[0].Name + "\n", Name: registry + short},
			io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.engine.Untag(context.Background(), registry+short); err != nil {
				t.Error(err)
			}
		})
		want := []container.Image{{Name: registry + short + ":latest", Versions: ours[0].Versions}}
		if found, err := container.Images(t.Context(), r.engine, registry+short); err != nil || !slices.Equal(found, want) {
			t.Errorf("by its whole name: %+v %v, want %+v", found, err, want)
		}
		found, err := container.Images(t.Context(), r.engine, short)
		if e.Name == engine.Docker {
			if !errors.Is(err, runtime.ErrNoImage) {
				t.Errorf("without its registry: %+v %v", found, err)
			}
		} else if err != nil || !slices.Equal(found, want) {
			t.Errorf("without its registry: %+v %v, want %+v", found, err, want)
		}
	})
}

// TestToolsTransferEverything checks that the input and output of tools are complete,
// even if tools run at the same time, and that a tool ends with its context.
func TestToolsTransferEverything(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, e engines.Runtime) {
		r := newReplica(t, e)
		big := strings.Repeat("0123456789abcde\n", 1<<18) // 4 MiB
		results := make(chan error, 8)
		for range cap(results) {
			go func() {
				out, err := r.Tool(t.Context(), r.wd.Run(), strings.NewReader(big), "cat")
				if err == nil && string(out) != big {
					err = errors.New("cat printed something else than it was given")
				}
				results <- err
			}()
		}
		for range cap(results) {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		out, err := r.Tool(t.Context(), r.wd.Run(), nil, "bash", "-c", `printf '%s|' "$OVS_RUNDIR" "$@"`, "x", "a b", "",
			"$(id)", "'\n")
		if want := r.wd.Run() + "|a b||$(id)|'\n|"; err != nil || string(out) != want {
			t.Errorf("arguments: %q, want %q (%v)", out, want, err)
		}
		if _, err := r.Tool(t.Context(), r.wd.Run(), nil, "bash", "-c", "echo why >&2; exit 3"); err == nil ||
			!strings.Contains(err.Error(), "exit status 3: why") {
			t.Errorf("a failing tool: %v", err)
		}
		if _, err := r.Tool(t.Context(), r.wd.Run(), nil, "no-such-tool"); !errors.Is(err, runtime.ErrNotInstalled) ||
			!strings.Contains(err.Error(), "no-such-tool") {
			t.Errorf("a missing tool: %v", err)
		}
		// "exit" is a word of the runner's shell, and no program.
		if _, err := r.Tool(t.Context(), r.wd.Run(), nil, "exit", "0"); !errors.Is(err, runtime.ErrNotInstalled) {
			t.Errorf("a word of the shell: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := r.Tool(ctx, r.wd.Run(), nil, "bash", "-c", "while :; do :; done"); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("a tool that outlives its context: %v", err)
		}
		for busy := true; busy; { // a killed process ends a moment later
			out, err := r.Tool(t.Context(), r.wd.Run(), nil, "bash", "-c", "cat /proc/[0-9]*/cmdline; true")
			if err != nil || !strings.Contains(string(out), "cmdline") {
				t.Fatalf("looking for processes: %q %v", out, err)
			}
			busy = strings.Contains(string(out), "while :; do :; done")
		}
		// The end of a killed runner is detected.
		answer := make(chan error, 1)
		go func() {
			_, err := r.Tool(t.Context(), r.wd.Run(), nil, "bash", "-c", "while :; do :; done")
			answer <- err
		}()
		for _, c := range r.left(t) {
			if err := r.engine.Remove(t.Context(), c.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-answer; err == nil {
			t.Error("a tool of a removed container reports no error")
		}
	})
}
