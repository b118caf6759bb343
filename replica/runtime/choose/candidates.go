package choose

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/replica/runtime/process/store"
)

// localProcesses is the name of the runtime Process in messages.
const localProcesses = "local processes"

// candidate is one set of tools that a replica can run with.
type candidate struct {
	where    string // for messages
	versions versions.Pair
	id       string // of an image for local processes
	host     bool   // its versions are those of this host's tools, and unknown until ask
	runtime  func() runtime.Runtime
}

// candidates returns the tools in a runtime that are wanted, in the order of preference,
// and why there are no others.
func (r *Runtimes) candidates(ctx context.Context, name string, wanted Wanted) ([]candidate, []error) {
	if name == Process {
		return r.local(ctx, wanted)
	}
	e, err := r.connect(ctx, name)
	if err != nil {
		return nil, []error{err}
	}
	images, err := container.Images(ctx, e, wanted.Image)
	if err != nil {
		return nil, []error{err}
	}
	var found []candidate
	for _, i := range images {
		if wanted.Accepts(i.Versions) {
			found = append(found, candidate{
				where: fmt.Sprintf("%s at %s, image %s", name, e.Address(), i.Name), versions: i.Versions,
				runtime: func() runtime.Runtime { return container.New(e, i.Name, r.version, r.workdir) },
			})
		}
	}
	if len(found) == 0 {
		return nil, []error{container.NoImage(wanted.with(), e)}
	}
	return found, nil
}

// local returns this host's tools and the images for local processes.
func (r *Runtimes) local(ctx context.Context, wanted Wanted) (found []candidate, errs []error) {
	if err := process.Supported(); err != nil {
		return nil, []error{err}
	}
	if wanted.Image == "" {
		if err := process.Missing("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovs-appctl"); err != nil {
			errs = append(errs, err)
		} else {
			found = append(found, candidate{where: localProcesses, host: true, runtime: func() runtime.Runtime { return r.Local("") }})
		}
	}
	images, err := stored(wanted.Image)
	if err != nil {
		errs = append(errs, err)
	}
	for _, i := range images {
		found = append(found, candidate{
			where: localProcesses + ", image " + i.Name, id: i.ID, versions: versions.Pair{OVS: i.OVS, OVN: i.OVN},
			runtime: func() runtime.Runtime { return r.Local(i.Root) },
		})
	}
	if wanted.Versions == (versions.Pair{}) || len(found) == 0 {
		return found, errs
	}
	if err := ask(ctx, found); err != nil {
		return nil, []error{err}
	}
	accepted := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return !wanted.Accepts(c.versions) })
	if len(accepted) == 0 {
		errs = append(errs, fmt.Errorf("%w%s for local processes%s: \"ovs-offline image add REFERENCE\" adds one", runtime.ErrNoImage, wanted.with(), others(found)))
	}
	return accepted, errs
}

// others names what this host's tools are, in an error about other versions.
func others(found []candidate) string {
	if i := slices.IndexFunc(found, func(c candidate) bool { return c.host }); i >= 0 {
		return ", and this host has " + found[i].versions.String()
	}
	return ""
}

// stored returns the images for local processes: the named one, or all.
func stored(name string) ([]store.Image, error) {
	s, err := store.Open()
	if err != nil {
		return nil, err
	}
	if name == "" {
		return s.List()
	}
	i, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	return []store.Image{i}, nil
}

// ask asks this host's tools for their versions, if they are among the candidates. Each
// takes the time of a process, so it is done only where it matters.
func ask(ctx context.Context, found []candidate) error {
	i := slices.IndexFunc(found, func(c candidate) bool { return c.host })
	if i < 0 || found[i].versions != (versions.Pair{}) {
		return nil
	}
	rt := found[i].runtime()
	var v versions.Pair
	var wg sync.WaitGroup
	asked := func(program string, in func([]byte) string, version *string) {
		wg.Go(func() {
			if text, err := rt.Tool(ctx, "/", nil, program, "--version"); err == nil { // OVN need not be installed
				*version = in(text)
			}
		})
	}
	asked("ovs-vswitchd", versions.PrintedOVS, &v.OVS)
	asked("ovn-nbctl", versions.PrintedOVN, &v.OVN)
	wg.Wait()
	found[i].versions = v
	return ctx.Err()
}
