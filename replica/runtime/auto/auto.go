// Package auto finds the runtimes that can be had here, and chooses one.
package auto

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

func connect(ctx context.Context, name string) (engine, error) {
	if name == Podman {
		return podman.New(ctx)
	}
	return docker.New(ctx)
}

// Place is a workdir for whose replica a runtime is looked for.
type Place struct {
	Workdir *workdir.Dir
	Version string // of ovs-offline
}

func (p Place) container(e container.Engine, image string) runtime.Runtime {
	return container.New(container.Options{
		Engine: e, Image: image, Version: p.Version, Workdir: p.Workdir.Path(),
		Folders: []string{p.Workdir.Run(), filepath.Dir(p.Workdir.VarRun(workdir.OVS))},
		Scratch: p.Workdir.Tools(),
	})
}

// All returns every runtime in which a replica of the workdir may run: the
// engines that answer, and this machine. The engines come first: what they run
// is theirs to end.
func (p Place) All(ctx context.Context) []runtime.Runtime {
	var all []runtime.Runtime
	for _, name := range engines() {
		if e, err := connect(ctx, name); err == nil {
			all = append(all, p.container(e, ""))
		}
	}
	return append(all, process.New(process.Options{}))
}

// Named returns one runtime, with no image: to stop, show or use what runs there.
func (p Place) Named(ctx context.Context, name string) (runtime.Runtime, error) {
	if name == Process {
		return process.New(process.Options{}), nil
	}
	e, err := connect(ctx, name)
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
func (p Place) Choose(ctx context.Context, name string, wanted container.Wanted) (Choice, error) {
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

func (p Place) engine(ctx context.Context, name string, wanted container.Wanted) (Choice, error) {
	e, err := connect(ctx, name)
	if err != nil {
		return Choice{}, err
	}
	image, err := container.Choose(ctx, e, wanted)
	if err != nil {
		return Choice{}, err
	}
	return Choice{Runtime: p.container(e, image), Why: fmt.Sprintf("%s at %s, image %s", name, e.Address(), image)}, nil
}

func (p Place) local() (Choice, error) {
	if err := process.Missing("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovs-appctl"); err != nil {
		return Choice{}, err
	}
	return Choice{Runtime: process.New(process.Options{}), Why: "local processes"}, nil
}

// Executable is the beginning of a command line that runs a tool beside the
// replica; nil for a runtime whose tools are this machine's own.
func (p Place) Executable(rt runtime.Runtime) ([]string, error) {
	if rt.Name() == Process {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, for the tools' wrappers: %w", err)
	}
	return []string{self, "--workdir=" + p.Workdir.Path(), "exec", "--"}, nil
}
