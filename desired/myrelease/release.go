// Package release chooses the programs that compute flows: those of the release of OVN that
// the databases are of. Another release makes other flows of the same databases, so there
// is no nearest one.
package release

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
)

// Wanted is which programs the user wants.
type Wanted struct {
	Runtime  string        // one of choose.Names
	Image    string        // "" for any
	Versions versions.Pair // empty for those of the databases
	Program  string        // the version of ovs-offline
}

// ErrNone is wrapped if no runtime has the release. The message says what would mend it.
var ErrNone = errors.New("flows can only be computed with OVN of the databases' own release")

// Choose returns the runtime, for the folders of scratch, in which OVN of the release of
// the databases in wd runs, and its version.
func Choose(ctx context.Context, wd, scratch *workdir.Dir, w Wanted) (rt runtime.Runtime, version string, err error) {
	m, err := wd.Manifest()
	if err != nil {
		return nil, "", err
	}
	recorded, err := replica.Recorded(ctx, wd)
	if err != nil {
		return nil, "", err
	}
	if recorded.OVN == "" && w.Versions.OVN == "" {
		return nil, "", fmt.Errorf("%w, which is not known: name it with --ovn-version", ErrNone)
	}
	wanted := choose.Wanted{Image: w.Image, Versions: w.Versions, Recorded: versions.Pair{OVN: recorded.OVN}}
	choice, err := choose.For(scratch, w.Program).Choose(ctx, w.Runtime, wanted)
	if err != nil {
		return nil, "", err
	}
	release := versions.Minor(recorded.OVN)
	if release == "" {
		release = w.Versions.OVN
	}
	remedy := replica.AddImage(m, versions.Pair{OVN: release}) + "; then start again"
	text, err := choice.Runtime.Tool(ctx, "/", nil, "ovn-controller", "--version")
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	version = versions.PrintedOVN(text)
	if err != nil || version == "" {
		return nil, "", fmt.Errorf("%w, %s, and there is no ovn-controller here: %s", ErrNone, release, remedy)
	}
	if !versions.Has(version, release) {
		return nil, "", fmt.Errorf("%w, %s, and here is %s: %s", ErrNone, release, version, remedy)
	}
	return choice.Runtime, version, nil
}
