package choose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
)

// versionsText names the wanted versions in an error: " with OVS 3.1".
func versionsText(wanted runtime.Wanted) string {
	if wanted.Versions == (versions.Pair{}) {
		return ""
	}
	return " with " + wanted.Versions.String()
}

// Why returns the versions of tools, and why these were chosen among the wanted ones; "" for unknown versions.
// loaded is set for the image that was loaded with the data.
func Why(wanted runtime.Wanted, pair versions.Pair, loaded bool) string {
	switch {
	case pair == (versions.Pair{}):
		return ""
	case loaded:
		return ": " + pair.String() + ", loaded with the data"
	case wanted.Image != "" || wanted.Versions != (versions.Pair{}) || wanted.Recorded == (versions.Pair{}):
		return ": " + pair.String()
	case distanceOf(wanted.Recorded.OVS, pair.OVS) == exact && distanceOf(wanted.Recorded.OVN, pair.OVN) == exact:
		return ": " + pair.String() + ", as on the node"
	}
	return ": " + pair.String() + ", nearest to the node's " + wanted.Recorded.String()
}

// Choose returns the runtime to start a replica with: in the named runtime or, for Auto,
// in any, the tools whose versions are nearest to the recorded ones. Of equally near ones
// the first is taken, in the order podman, docker, this host's tools, and images for local
// processes. The image that was loaded with the data comes before all. An image of that name for local processes comes before one of an engine.
func (r *Runtimes) Choose(ctx context.Context, name string, wanted runtime.Wanted) (runtime.Choice, error) {
	found, failed, err := r.findCandidates(ctx, name, wanted)
	if err != nil {
		return runtime.Choice{}, err
	}
	if len(found) > 1 && wanted.Recorded != (versions.Pair{}) {
		if err := ask(ctx, found); err != nil {
			return runtime.Choice{}, err
		}
	}
	loaded := slices.IndexFunc(found, func(candidate candidate) bool { return candidate.id != "" && candidate.id == wanted.Loaded })
	list := make([]versions.Pair, len(found))
	for i, candidate := range found {
		list[i] = candidate.versions
	}
	best := Nearest(wanted.Recorded, list)
	if loaded >= 0 {
		best = loaded
	}
	choice := runtime.Choice{Runtime: found[best].runtime(), What: found[best].where + Why(wanted, list[best], best == loaded), Rejected: failed}
	for i, candidate := range found {
		if i != best {
			choice.Rejected = append(choice.Rejected, fmt.Sprintf("not %s%s", candidate.where, Why(runtime.Wanted{}, candidate.versions, false)))
		}
	}
	return choice, nil
}

// findCandidates returns the candidates in a runtime, or for Auto in all of them, in the order of
// preference, and why there are no others. The error says why there is none.
func (r *Runtimes) findCandidates(ctx context.Context, name string, wanted runtime.Wanted) (found []candidate, failed []string, err error) {
	if name != Auto {
		found, errs := r.candidates(ctx, name, wanted)
		if len(found) == 0 {
			return nil, nil, errors.Join(errs...)
		}
		return found, reasons(name, errs), nil
	}
	names := append(engine.Names(), Process)
	if wanted.Image != "" {
		names = append([]string{Process}, engine.Names()...)
	}
	for _, name := range names {
		more, errs := r.candidates(ctx, name, wanted)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		found, failed = append(found, more...), append(failed, reasons(name, errs)...)
		if wanted.Image != "" && len(found) > 0 {
			break
		}
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("no runtime can start a replica:\n  %s", strings.Join(failed, "\n  "))
	}
	return found, failed, nil
}

// reasons returns lines with the reasons against a runtime.
func reasons(name string, errs []error) (lines []string) {
	if name == Process {
		name = localProcesses
	}
	for _, err := range errs {
		lines = append(lines, "not "+name+": "+err.Error())
	}
	return lines
}
