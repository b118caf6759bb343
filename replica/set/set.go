// Package set runs the replicas of the nodes of a snapshot: it starts, stops and examines them
// side by side.
package set

import (
	"ovs-offline/replica/pods"
	"ovs-offline/snapshot"
)

// Set is a snapshot with the runtimes in which the replicas of its nodes can run.
type Set struct {
	*snapshot.Snapshot
	clusters *pods.Clusters // of all nodes
	nodes    map[*snapshot.Node]*Node
}

// OpenNodes returns the set of the snapshot that snapshot.OpenNodes returns. version is the version of ovs-offline.
func OpenNodes(folder, version string, names []string) (*Set, error) {
	opened, err := snapshot.OpenNodes(folder, names)
	if err != nil {
		return nil, err
	}
	s := &Set{Snapshot: opened, clusters: pods.NewClusters(version), nodes: map[*snapshot.Node]*Node{}}
	for _, node := range opened.All().Nodes() {
		s.nodes[node] = &Node{Node: node, version: version, clusters: s.clusters}
	}
	return s, nil
}

// Node returns a node of the snapshot with the runtimes in which its replica can run.
func (s *Set) Node(node *snapshot.Node) *Node { return s.nodes[node] }

// only returns the set with some of its nodes selected.
func (s *Set) only(nodes []*snapshot.Node) *Set {
	return &Set{Snapshot: s.Only(nodes), clusters: s.clusters, nodes: s.nodes}
}
