package graph

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// OfNodes returns the nodes of a set as one graph, nil if none can be drawn. The error is about
// the nodes that are missing in it.
func OfNodes(ctx context.Context, s *snapshot.Snapshot) (*Graph, error) {
	outcomes := snapshot.Each(ctx, s, func(ctx context.Context, _ *snapshot.Node, wd *workdir.Dir) (*Graph, error) {
		return Node(ctx, wd)
	})
	var names []string
	var graphs []*Graph
	for _, drawn := range snapshot.Values(outcomes) {
		names, graphs = append(names, drawn.Node.Name), append(graphs, drawn.Value)
	}
	err := errors.Join(snapshot.Failures(s, outcomes)...)
	switch {
	case len(graphs) == 0:
		return nil, err
	case s.Alone():
		return graphs[0], err
	}
	return Join(names, graphs), err
}

// OfNetworks returns the logical networks of a set as one graph: of each OVN NB database, the
// newest copy. remarks has sentences about the other copies.
func OfNetworks(ctx context.Context, s *snapshot.Snapshot) (_ *Graph, remarks []string, err error) {
	sources, remarks, err := s.Newest(ctx, workdir.NB)
	if err != nil {
		return nil, nil, err
	}
	if len(sources) == 0 {
		return nil, remarks, fmt.Errorf("%w in %s: no %s database was collected", ErrNoDatabase, s.Folder(), workdir.NB.Title())
	}
	var names []string
	var graphs []*Graph
	for _, source := range sources {
		drawn, err := Logical(ctx, source.Dir)
		if err != nil {
			return nil, remarks, err
		}
		names, graphs = append(names, source.Name), append(graphs, drawn)
	}
	if len(graphs) == 1 {
		return graphs[0], remarks, nil
	}
	return Join(names, graphs), remarks, nil
}
