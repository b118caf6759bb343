package pods

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
)

// A pod takes up to mostNodes replicas, and several of them only up to roomy bytes: large
// replicas are spread over the cluster.
const (
	mostNodes = 10
	roomy     = 1 << 30
	smallest  = 128 << 20 // the smallest size class
)

// group holds the replicas of one pod.
type group struct {
	image  string
	nodes  []*starting
	memory int64            // that its replicas take
	shared map[string]int64 // databases with a server for all nodes of the group

	job   *batchv1.Job // that makes the pod; nil until it is made
	index int          // of the pod in the Job
}

// memoryWith returns the memory of the group with one more node.
func (g *group) memoryWith(node *starting) int64 {
	memory := g.memory + node.Memory
	for digest, size := range node.Shared {
		if _, served := g.shared[digest]; !served {
			memory += size
		}
	}
	return memory
}

// takes reports whether the group has room for a node.
func (g *group) takes(node *starting) bool {
	return g.image == node.image && len(g.nodes) < mostNodes && g.memoryWith(node) <= roomy
}

func (g *group) add(node *starting) {
	g.memory = g.memoryWith(node)
	maps.Copy(g.shared, node.Shared)
	g.nodes = append(g.nodes, node)
}

// class returns the memory of the pods that the group's is one of: a power of two, or one
// and a half times one, so that few Jobs hold all pods.
func (g *group) class() int64 {
	need := max(g.memory, smallest)
	above := int64(1) << bits.Len64(uint64(need-1))
	if between := above / 4 * 3; need <= between {
		return between
	}
	return above
}

// pack divides nodes into groups. Those that share databases come together, in the order
// of their names.
func pack(nodes []*starting) []*group {
	ordered := slices.SortedStableFunc(slices.Values(nodes), func(a, b *starting) int {
		return cmp.Or(strings.Compare(a.image, b.image), slices.Compare(slices.Sorted(maps.Keys(a.Shared)), slices.Sorted(maps.Keys(b.Shared))), strings.Compare(a.Name, b.Name))
	})
	var groups []*group
	for _, node := range ordered {
		if len(groups) == 0 || !groups[len(groups)-1].takes(node) {
			groups = append(groups, &group{image: node.image, shared: map[string]int64{}})
		}
		groups[len(groups)-1].add(node)
	}
	return groups
}
