// Package release finds the programs that compute the flows of a node: they have to be of
// the node's own release of OVN, because another one builds other flows.
package release

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/versions"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Options are the options of Programs.
type Options struct {
	Runtime  string            // one of choose.Names
	Runtimes runtime.Finder    // where programs are looked for
	Chosen   func(what string) // may be nil
}

// ErrMissing is wrapped if no program of a node's release is there. The text says what to
// add.
var ErrMissing = errors.New("no OVN of the node's release")

// ErrNotThere is wrapped if no program of a release that was asked for is there. The text says what to add.
var ErrNotThere = errors.New("no programs of that release")

// Likely returns the versions that the node's ovn-controller may have had, the likely one
// first: the release of the ovn-northd that wrote the databases, and of the node's package.
// They differ during an upgrade, and where the package is not what ran. There are none if
// it is unknown.
func Likely(ctx context.Context, wd *workdir.Dir) ([]versions.Pair, error) {
	recorded, err := replica.Recorded(ctx, wd)
	if err != nil || recorded.OVN == "" {
		return nil, err
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return nil, err
	}
	found := []versions.Pair{recorded}
	if collection := manifest.Collection(workdir.OVS); collection != nil && collection.OVNVersion != "" && versions.Minor(collection.OVNVersion) != versions.Minor(recorded.OVN) {
		found = append(found, versions.Pair{OVS: recorded.OVS, OVN: collection.OVNVersion})
	}
	return found, nil
}

// Programs returns the runtime, for daemons in dir, with the programs of the release that a
// node ran, and their versions. wd is the node's workdir.
func Programs(ctx context.Context, wd, dir *workdir.Dir, recorded versions.Pair, options Options) (runtime.Runtime, versions.Pair, error) {
	wanted := versions.Pair{OVN: versions.Minor(recorded.OVN)}
	missing := fmt.Errorf("%w: the node ran OVN %s", ErrMissing, recorded.OVN)
	return programs(ctx, wd, dir, wanted, recorded, missing, options)
}

// Named returns the runtime, for daemons in dir, with programs of the wanted versions, or that begin so, and
// the versions that they have. Of several, those nearest to the recorded versions are taken.
func Named(ctx context.Context, wd, dir *workdir.Dir, wanted, recorded versions.Pair, options Options) (runtime.Runtime, versions.Pair, error) {
	return programs(ctx, wd, dir, wanted, recorded, fmt.Errorf("%w: %s was asked for", ErrNotThere, wanted), options)
}

// programs returns the runtime with programs of the wanted versions; missing is the error if there are none, and
// says who wants them.
func programs(ctx context.Context, wd, dir *workdir.Dir, wanted, recorded versions.Pair, missing error, options Options) (runtime.Runtime, versions.Pair, error) {
	runtimes := options.Runtimes(dir)
	build, err := replica.Build(ctx, wd)
	if err != nil {
		return nil, versions.Pair{}, err
	}
	choice, err := runtimes.Choose(ctx, options.Runtime, runtime.Wanted{Versions: wanted, Recorded: recorded, Build: build})
	if err != nil {
		if _, any := runtimes.Choose(ctx, options.Runtime, runtime.Wanted{}); any != nil || ctx.Err() != nil {
			return nil, versions.Pair{}, err
		}
		logging.FromContext(ctx).Debug("choose runtime", "reason", err)
		manifest, err := wd.Manifest()
		if err != nil {
			return nil, versions.Pair{}, err
		}
		return nil, versions.Pair{}, fmt.Errorf("%w%s, and only an ovn-controller of %s can compute its flows: %s", missing, patched(build), wanted, replica.AddBuild(manifest, wanted, build))
	}
	running, err := versionsIn(ctx, choice.Runtime)
	if err != nil {
		return nil, running, err
	}
	if !versions.Has(running.OVN, wanted.OVN) {
		return nil, running, fmt.Errorf("%w: %s has an ovn-controller of OVN %s, and its other tools are of %s", missing, choice.What, running.OVN, wanted)
	}
	if options.Chosen != nil {
		options.Chosen(choice.What)
	}
	return choice.Runtime, running, nil
}

// Nearest returns the runtime, for daemons in dir, with the programs of OVN that are nearest to
// the release that wrote the databases of wd, that release, empty if it is not known, and the
// versions of the programs.
func Nearest(ctx context.Context, wd, dir *workdir.Dir, options Options) (rt runtime.Runtime, recorded, running versions.Pair, err error) {
	if recorded, err = replica.Recorded(ctx, wd); err != nil {
		return nil, recorded, running, err
	}
	build, err := replica.Build(ctx, wd)
	if err != nil {
		return nil, recorded, running, err
	}
	choice, err := options.Runtimes(dir).Choose(ctx, options.Runtime, runtime.Wanted{Recorded: recorded, Build: build})
	if err != nil && build != runtime.Stock && ctx.Err() == nil {
		manifest, failed := wd.Manifest()
		if failed != nil {
			return nil, recorded, running, failed
		}
		err = fmt.Errorf("%w: the deployment ran OVN %s%s: %s", ErrMissing, recorded.OVN, patched(build), replica.AddBuild(manifest, versions.Pair{OVN: versions.Minor(recorded.OVN)}, build))
	}
	if err != nil {
		return nil, recorded, running, err
	}
	if running, err = versionsIn(ctx, choice.Runtime); err != nil {
		return nil, recorded, running, err
	}
	if options.Chosen != nil {
		options.Chosen(choice.What)
	}
	return choice.Runtime, recorded, running, nil
}

// patched says what a build is, "" for OVN as it was released.
func patched(build runtime.Build) string {
	if build == runtime.Stock {
		return ""
	}
	return fmt.Sprintf(" with the patches of %s, which compute other flows", build)
}

// versionsIn returns the versions of the programs of a runtime.
func versionsIn(ctx context.Context, rt runtime.Runtime) (pair versions.Pair, err error) {
	text, err := rt.Tool(ctx, "/", nil, "ovn-controller", "--version")
	if err != nil {
		return pair, fmt.Errorf("ovn-controller is needed to compute flows: %w", err)
	}
	pair.OVN = versions.PrintedOVN(text)
	if text, err = rt.Tool(ctx, "/", nil, "ovs-vswitchd", "--version"); err != nil {
		return pair, err
	}
	pair.OVS = versions.PrintedOVS(text)
	return pair, nil
}
