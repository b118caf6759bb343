package drift

import (
	"context"
	"fmt"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/choose"
)

// releases returns the versions that the node's ovn-controller may have had, the likely one
// first: that of the ovn-northd that wrote the databases, and that of the node's package.
// They differ during an upgrade, and where the package is not what ran.
func (n *node) releases(ctx context.Context) ([]versions.Pair, error) {
	recorded, err := replica.Recorded(ctx, n.wd)
	if err != nil || recorded.OVN == "" {
		return nil, err
	}
	found := []versions.Pair{recorded}
	if c := n.manifest.Collection(workdir.OVS); c != nil && c.OVNVersion != "" && versions.Minor(c.OVNVersion) != versions.Minor(recorded.OVN) {
		found = append(found, versions.Pair{OVS: recorded.OVS, OVN: c.OVNVersion})
	}
	return found, nil
}

// programs are those that compute what should be.
type programs struct {
	runtime  runtime.Runtime
	versions versions.Pair
}

// programsOf returns the programs of the release that the node ran, for a Scratch in a
// folder. need says what is missing if there are none.
func (o *Options) programsOf(ctx context.Context, n *node, dir *workdir.Dir, recorded versions.Pair) (p programs, need string, err error) {
	runtimes := choose.For(dir, o.Version)
	wanted := versions.Pair{OVN: versions.Minor(recorded.OVN)}
	choice, err := runtimes.Choose(ctx, o.Runtime, choose.Wanted{Versions: wanted, Recorded: recorded})
	if err != nil {
		if _, any := runtimes.Choose(ctx, o.Runtime, choose.Wanted{}); any != nil || ctx.Err() != nil {
			return p, "", err
		}
		logging.FromContext(ctx).Debug("choose runtime", "reason", err)
		return p, fmt.Sprintf("the node ran OVN %s, and only an ovn-controller of %s can compute its flows: %s", recorded.OVN, wanted, replica.AddImage(n.manifest, wanted)), nil
	}
	p.runtime = choice.Runtime
	if p.versions, err = versionsIn(ctx, choice.Runtime); err != nil {
		return p, "", err
	}
	if versions.Minor(p.versions.OVN) != wanted.OVN {
		return p, "", fmt.Errorf("%s has an ovn-controller of OVN %s, and its other tools are of %s", choice.What, p.versions.OVN, wanted)
	}
	if o.Chosen != nil {
		o.Chosen(choice.What)
	}
	return p, "", nil
}

// versionsIn returns the versions of the programs of a runtime.
func versionsIn(ctx context.Context, rt runtime.Runtime) (v versions.Pair, err error) {
	text, err := rt.Tool(ctx, "/", nil, "ovn-controller", "--version")
	if err != nil {
		return v, fmt.Errorf("ovn-controller is needed to compute flows: %w", err)
	}
	v.OVN = versions.PrintedOVN(text)
	if text, err = rt.Tool(ctx, "/", nil, "ovs-vswitchd", "--version"); err != nil {
		return v, err
	}
	v.OVS = versions.PrintedOVS(text)
	return v, nil
}

// versionRemarks says where the versions that computed are not exactly the recorded ones.
func versionRemarks(recorded, running versions.Pair) (remarks []string) {
	if versions.Compare(recorded.OVN, running.OVN) != 0 {
		remarks = append(remarks, fmt.Sprintf("the node ran OVN %s, and %s computed: a fix between them may be a difference", recorded.OVN, running.OVN))
	}
	if recorded.OVS != "" && versions.Minor(recorded.OVS) != versions.Minor(running.OVS) {
		remarks = append(remarks, fmt.Sprintf("the node ran Open vSwitch %s, and %s computed: it may print the same flow differently", recorded.OVS, running.OVS))
	}
	return remarks
}
