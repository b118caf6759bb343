package pods

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

const mib = 1 << 20

// nodes makes nodes of an image.
func nodes(image string, count int, memory int64, shared map[string]int64) (list []*starting) {
	for i := range count {
		list = append(list, &starting{Workdir: Workdir{Name: fmt.Sprintf("%s-%02d", image, i), Memory: memory,
			Shared: shared}, image: image})
	}
	return list
}

// packed returns the names of the nodes in each pod, and the memory that it asks for.
func packed(list []*starting) (pods []string) {
	for _, g := range pack(list) {
		var names []string
		for _, n := range g.nodes {
			names = append(names, n.Name)
		}
		pods = append(pods, fmt.Sprintf("%s: %d MiB", strings.Join(names, " "), g.class()/mib))
	}
	return pods
}

func TestSmallReplicasShareAPod(t *testing.T) {
	groups := pack(nodes("a", 25, 60*mib, nil))
	var sizes []int
	for _, g := range groups {
		sizes = append(sizes, len(g.nodes))
	}
	if want := []int{10, 10, 5}; !slices.Equal(sizes, want) {
		t.Errorf("pods of %d replicas, want %d", sizes, want)
	}
}

func TestLargeReplicasHaveAPodEach(t *testing.T) {
	got := packed(nodes("a", 2, 1500*mib, nil))
	expect.Equal(t, got, []string{"a-00: 1536 MiB", "a-01: 1536 MiB"})
}

// TestPodsDifferInImages checks that replicas with different images share no pod.
func TestPodsDifferInImages(t *testing.T) {
	got := packed(append(nodes("b", 1, 60*mib, nil), nodes("a", 2, 60*mib, nil)...))
	expect.Equal(t, got, []string{"a-00 a-01: 128 MiB", "b-00: 128 MiB"})
}

// TestReplicasWithOneDatabaseComeTogether checks that a database counts once for each pod,
// and that nodes with the same one are in one pod.
func TestReplicasWithOneDatabaseComeTogether(t *testing.T) {
	one, other := map[string]int64{"sb 1": 500 * mib}, map[string]int64{"sb 2": 500 * mib}
	var mixed []*starting
	for i := range 4 {
		shared := one
		if i%2 == 1 {
			shared = other
		}
		mixed = append(mixed, &starting{Workdir: Workdir{Name: fmt.Sprintf("n%d", i), Memory: 100 * mib, Shared: shared},
			image: "a"})
	}
	got := packed(mixed)
	expect.Equal(t, got, []string{"n0 n2: 768 MiB", "n1 n3: 768 MiB"})
}

// TestClassesHoldWhatTheyAreFor checks that a pod asks for what its replicas take, and for
// at most half as much more.
func TestClassesHoldWhatTheyAreFor(t *testing.T) {
	for _, need := range []int64{1, 128 * mib, 128*mib + 1, 192 * mib, 200 * mib, 900 * mib, 1024 * mib, 1500 * mib,
		70_000 * mib} {
		class := (&group{memory: need}).class()
		if class < need || class > max(need+need/2, smallest) {
			t.Errorf("a need of %d MiB asks for %d MiB", need/mib, class/mib)
		}
	}
}
