package choose

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/replica/runtime/process"
)

// localProcesses is the name of the runtime Process in messages.
const localProcesses = "local processes"

// candidate is one set of tools that a replica can run with.
type candidate struct {
	where    string // for messages
	versions versions.Pair
	id       string // of an image for local processes
	host     bool   // the tools of this host: the versions are unknown until ask
	runtime  func() runtime.Runtime
}

// candidates returns the tools in a runtime that are wanted, in the order of preference,
// and why there are no others.
func (r *Runtimes) candidates(ctx context.Context, name string, wanted runtime.Wanted) ([]candidate, []error) {
	if name == Process {
		return r.localCandidates(ctx, wanted)
	}
	engine, err := r.connect(ctx, name)
	if err != nil {
		return nil, []error{err}
	}
	images, err := container.Images(ctx, engine, wanted.Image)
	if err != nil {
		return nil, []error{err}
	}
	var found []candidate
	for _, image := range images {
		if wanted.Accepts(image.Versions) && wanted.AcceptsBuild(runtime.BuildOf("", image.Name)) {
			found = append(found, candidate{
				where: fmt.Sprintf("%s at %s, image %s", name, engine.Address(), image.Name), versions: image.Versions,
				runtime: func() runtime.Runtime { return container.New(engine, image.Name, r.version, r.workdir) },
			})
		}
	}
	if len(found) == 0 {
		return nil, []error{container.NoImage(versionsText(wanted), engine)}
	}
	return found, nil
}

// localCandidates returns this host's tools and the images for local processes.
func (r *Runtimes) localCandidates(ctx context.Context, wanted runtime.Wanted) (found []candidate, errs []error) {
	if err := process.Supported(); err != nil {
		return nil, []error{err}
	}
	if wanted.Image == "" {
		if err := process.Missing("ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovs-appctl"); err != nil {
			errs = append(errs, err)
		} else if wanted.AcceptsBuild(runtime.Stock) {
			found = append(found, candidate{where: localProcesses, host: true, runtime: func() runtime.Runtime { return r.Local("") }})
		}
	}
	images, err := storedImages(wanted.Image)
	if err != nil {
		errs = append(errs, err)
	}
	for _, image := range images {
		if !wanted.AcceptsBuild(runtime.BuildOf(image.Root, image.Name)) {
			continue
		}
		found = append(found, candidate{
			where: localProcesses + ", image " + image.Name, id: image.ID, versions: image.Versions(),
			runtime: func() runtime.Runtime { return r.Local(image.Root) },
		})
	}
	if len(found) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%w of the build %s", runtime.ErrNoImage, wanted.Build))
	}
	if wanted.Versions == (versions.Pair{}) || len(found) == 0 {
		return found, errs
	}
	if err := ask(ctx, found); err != nil {
		return nil, []error{err}
	}
	accepted := slices.DeleteFunc(slices.Clone(found), func(candidate candidate) bool { return !wanted.Accepts(candidate.versions) })
	if len(accepted) == 0 {
		errs = append(errs, fmt.Errorf("%w%s for local processes%s: \"ovs-offline image add SOURCE\" adds one, of a registry, a file or a root directory", runtime.ErrNoImage, versionsText(wanted), otherVersions(found)))
	}
	return accepted, errs
}

// otherVersions names what this host's tools are, in an error about other versions.
func otherVersions(found []candidate) string {
	if i := slices.IndexFunc(found, func(candidate candidate) bool { return candidate.host }); i >= 0 {
		return ", and this host has " + found[i].versions.String()
	}
	return ""
}

// storedImages returns the images for local processes: the named one, or all.
func storedImages(name string) ([]image.Image, error) {
	store, err := image.OpenStore()
	if err != nil {
		return nil, err
	}
	if name == "" {
		return store.List()
	}
	i, err := store.Find(name)
	if err != nil {
		return nil, err
	}
	return []image.Image{i}, nil
}

// ask asks this host's tools for their versions, if they are among the candidates. Each
// takes the time of a process, so it is done only where it matters.
func ask(ctx context.Context, found []candidate) error {
	i := slices.IndexFunc(found, func(candidate candidate) bool { return candidate.host })
	if i < 0 || found[i].versions != (versions.Pair{}) {
		return nil
	}
	rt := found[i].runtime()
	var pair versions.Pair
	var wg sync.WaitGroup
	asked := func(program string, in func([]byte) string, version *string) {
		wg.Go(func() {
			if text, err := rt.Tool(ctx, "/", nil, program, "--version"); err == nil { // OVN need not be installed
				*version = in(text)
			}
		})
	}
	asked("ovs-vswitchd", versions.PrintedOVS, &pair.OVS)
	asked("ovn-nbctl", versions.PrintedOVN, &pair.OVN)
	wg.Wait()
	found[i].versions = pair
	return ctx.Err()
}
