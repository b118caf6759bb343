// Package choose finds the runtimes that can be had here, and chooses one.
package choose

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/docker"
	"ovs-offline/replica/runtime/podman"
	"ovs-offline/replica/runtime/process"
)

// The runtimes, as the command line spells them.
const (
	Auto    = "auto"
	Podman  = "podman"
	Docker  = "docker"
	Process = "process"
)

// Names lists them.
func Names() []string { return []string{Auto, Podman, Docker, Process} }

// engine is a container.Engine that knows where it listens.
type engine interface {
	container.Engine
	Address() string
}

// engines are tried in this order.
func engines() []string { return []string{Podman, Docker} }

// Place is a workdir for whose replica a runtime is looked for.
type Place struct {
	workdir   *workdir.Dir
	version   string
	connected map[string]attempt
}

// attempt is what came of connecting to an engine, which is tried once.
type attempt struct {
	engine engine
	err    error
}

// New makes a Place; version is that of ovs-offline.
func New(wd *workdir.Dir, version string) *Place {
	return &Place{workdir: wd, version: version, connected: map[string]attempt{}}
}

func (p *Place) connect(ctx context.Context, name string) (engine, error) {
	if a, tried := p.connected[name]; tried {
		return a.engine, a.err
	}
	var a attempt
	if name == Podman {
		a.engine, a.err = podman.New(ctx)
	} else {
		a.engine, a.err = docker.New(ctx)
	}
	if ctx.Err() == nil {
		p.connected[name] = a
	}
	return a.engine, a.err
}

func (p *Place) container(e container.Engine, image string) runtime.Runtime {
	return container.New(container.Options{
		Engine: e, Image: image, Version: p.version, Workdir: p.workdir.Path(),
		Folders: []string{p.workdir.Run(), filepath.Dir(p.workdir.VarRun(workdir.OVS))},
		Scratch: p.workdir.Tools(),
	})
}

// All returns every runtime in which a replica of the workdir may run: the
// engines that answer, and this machine. The engines come first: what they run
// is theirs to end.
func (p *Place) All(ctx context.Context) []runtime.Runtime {
	var all []runtime.Runtime
	for _, name := range engines() {
		if e, err := p.connect(ctx, name); err == nil {
			all = append(all, p.container(e, ""))
		}
	}
	return append(all, process.New(process.Options{}))
}

// Check returns why a runtime by name can't be asked, nil when it can.
func (p *Place) Check(ctx context.Context, name string) error {
	if name == Process {
		return nil
	}
	_, err := p.connect(ctx, name)
	return err
}

// Named returns the runtime of a name, with which nothing is to be started.
func (p *Place) Named(ctx context.Context, name string) (runtime.Runtime, error) {
	if name == Process {
		return process.New(process.Options{}), nil
	}
	e, err := p.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.container(e, ""), nil
}

// Executor returns what runs programs beside the replica in a runtime. Only one
// on a terminal needs an engine.
func (p *Place) Executor(ctx context.Context, name string, terminal bool) (runtime.Executor, error) {
	switch {
	case name == Process:
		return process.New(process.Options{}), nil
	case !terminal:
		return container.NewTools(p.workdir.Tools()), nil
	}
	e, err := p.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.container(e, ""), nil
}

// Choice is the runtime to start with.
type Choice struct {
	Runtime runtime.Runtime
	Why     string // in words: which it is, and why not another
}

// Choose chooses a runtime to start a replica with: the one named, or, for Auto,
// podman or docker if it answers and has an image, else this machine if the
// tools are installed.
func (p *Place) Choose(ctx context.Context, name string, wanted container.Wanted) (Choice, error) {
	switch name {
	case Podman, Docker:
		return p.engine(ctx, name, wanted)
	case Process:
		return p.local()
	}
	var not []string
	var first error
	for _, name := range engines() {
		choice, err := p.engine(ctx, name, wanted)
		if err == nil {
			choice.Why = strings.Join(append(not, choice.Why), "; ")
			return choice, nil
		}
		if ctx.Err() != nil {
			return Choice{}, ctx.Err()
		}
		not = append(not, "not "+name+": "+err.Error())
		if first == nil {
			first = err
		}
	}
	choice, err := p.local()
	if err == nil && wanted.Image+wanted.Version != "" {
		err = fmt.Errorf("local processes have no image to choose")
	}
	if err != nil {
		return Choice{}, fmt.Errorf("there is nothing to run a replica with:\n  %s\n  not local processes: %w", strings.Join(not, "\n  "), err)
	}
	choice.Why = strings.Join(append([]string{choice.Why}, not...), "; ")
	return choice, nil
}

func (p *Place) engine(ctx context.Context, name string, wanted container.Wanted) (Choice, error) {
	e, err := p.connect(ctx, name)
	if err != nil {
		return Choice{}, err
	}
	image, err := container.Choose(ctx, e, wanted)
	if err != nil {
		return Choice{}, err
	}
	return Choice{Runtime: p.container(e, image), Why: fmt.Sprintf("%s at %s, image %s", name, e.Address(), image)}, nil
}

func (p *Place) local() (Choice, error) {
	if err := process.Supported(); err != nil {
		return Choice{}, err
	}
	if err := process.Missing("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovs-appctl"); err != nil {
		return Choice{}, err
	}
	return Choice{Runtime: process.New(process.Options{}), Why: "local processes"}, nil
}

// Executable is the beginning of a command line that runs a tool beside the
// replica; nil for a runtime whose tools are this machine's own.
func (p *Place) Executable(rt runtime.Runtime) ([]string, error) {
	if rt.Name() == Process {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, for the tools' wrappers: %w", err)
	}
	return []string{self, "--workdir=" + p.workdir.Path(), "exec", "--"}, nil
}
