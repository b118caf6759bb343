package trace

import (
	"context"
	"slices"

	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/workdir"
)

// OpenFolder opens a session on the nodes of a set, or on the one node of a workdir.
func OpenFolder(ctx context.Context, folder string, options Options) (*Session, error) {
	opened, err := snapshot.OpenNodes(folder, nil)
	if err != nil {
		return nil, err
	}
	return OpenSet(ctx, opened, options)
}

// OpenSet opens a session on the nodes of a set that have a switch. Names are taken from the
// newest copies of its databases, also where a workdir has nothing but them.
func OpenSet(ctx context.Context, all *snapshot.Snapshot, options Options) (*Session, error) {
	switches := snapshot.WithSwitch(all.Nodes())
	var nodes []snapshot.Member
	for _, n := range switches {
		wd, err := n.Workdir()
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, snapshot.Member{Name: n.Name, Dir: wd})
	}
	return open(ctx, nodes, func() ([]*snapshot.Deployment, []string, error) {
		deployments, remarks, err := all.Deployments(ctx)
		for _, deployment := range deployments {
			deployment.Nodes = slices.DeleteFunc(deployment.Nodes, func(n snapshot.Member) bool {
				return !slices.ContainsFunc(switches, func(known *snapshot.Node) bool { return known.Name == n.Name })
			})
		}
		return deployments, remarks, err
	}, options)
}

// Complete returns names of endpoints of a set that begin with a text, for a shell. It reads
// the NB databases, which have the names that users know, and no SB database where there is
// an NB: that may be a hundred times as large. No replica needs to run.
func Complete(ctx context.Context, s *snapshot.Snapshot, text string) ([]string, error) {
	const maxNames = 1000
	deployments, _, err := s.Deployments(ctx, workdir.NB)
	if err != nil {
		return nil, err
	}
	defer snapshot.CloseAll(deployments)
	found, err := names.Load(ctx, deployments)
	if err != nil {
		return nil, err
	}
	return found.Complete(text, maxNames), nil
}
