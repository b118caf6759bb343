// Package local runs the programs of this machine for tests that need no container engines: to link the clients of these
// takes longer than most tests.
package local

import (
	"context"
	"fmt"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/workdir"
)

// Runtimes returns the programs of this machine as local processes.
func Runtimes(wd *workdir.Dir) runtime.Runtimes { return processes{newProcesses(wd)} }

func newProcesses(wd *workdir.Dir) runtime.Runtime {
	return process.New(process.Options{Folders: wd.RuntimeFolders()})
}

// processes is the only runtime.
type processes struct{ runtime.Runtime }

func (p processes) Choose(ctx context.Context, name string, wanted runtime.Wanted) (runtime.Choice, error) {
	if name != runtime.Auto && name != process.Name {
		return runtime.Choice{}, fmt.Errorf("no runtime is called %q", name)
	}
	if wanted.Versions != (versions.Pair{}) {
		switchVersion, err := p.Tool(ctx, "/", nil, "ovs-vswitchd", "--version")
		if err != nil {
			return runtime.Choice{}, err
		}
		ovnVersion, err := p.Tool(ctx, "/", nil, "ovn-nbctl", "--version")
		if err != nil {
			return runtime.Choice{}, err
		}
		if pair := (versions.Pair{OVS: versions.PrintedOVS(switchVersion), OVN: versions.PrintedOVN(ovnVersion)}); !wanted.Accepts(pair) {
			return runtime.Choice{}, fmt.Errorf("this machine has %s, and %s is wanted", pair, wanted.Versions)
		}
	}
	return runtime.Choice{Runtime: p.Runtime, What: "local processes"}, nil
}

func (p processes) All(context.Context) []runtime.Runtime { return []runtime.Runtime{p.Runtime} }
