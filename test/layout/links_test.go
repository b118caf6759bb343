package layout

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// withoutEngines lists packages that read, or compute with the programs that they get: they know no container engine
// and no cluster, so that what imports them is built and linked in a moment.
func withoutEngines() []string {
	return []string{"snapshot", "answer/...", "replica/release", "replica/scratch", "replica/synth"}
}

// TestReadersLinkNoEngines checks all that packages without engines link. Of Kubernetes, that is what reads YAML and
// what compares versions.
func TestReadersLinkNoEngines(t *testing.T) {
	args := []string{"-deps", "-f", "{{.ImportPath}}"}
	for _, folder := range withoutEngines() {
		args = append(args, "./"+folder)
	}
	linked := strings.Fields(goList(t, args...))
	if len(linked) < 100 {
		t.Fatalf("go list printed %d packages", len(linked))
	}
	known := []string{"sigs.k8s.io/yaml", "k8s.io/apimachinery/pkg/version", "k8s.io/apimachinery/pkg/util/version"}
	var found []string
	for _, path := range linked {
		if isOfEngines(path) && !slices.Contains(known, path) {
			found = append(found, path)
		}
	}
	expect.Equal(t, found, nil)
}

// isOfEngines reports whether a package is one of the clients of container engines or of Kubernetes.
func isOfEngines(path string) bool {
	return slices.ContainsFunc([]string{"podman", "buildah", "moby", "docker", "k8s.io"},
		func(name string) bool { return strings.Contains(path, name) })
}
