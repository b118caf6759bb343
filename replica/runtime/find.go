package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/versions"
	"ovs-offline/workdir"
)

// Finder returns the runtimes for the daemons of a workdir. What runs programs takes one from its caller, and so need not
// know, or link, the clients of container engines.
type Finder func(wd *workdir.Dir) Runtimes

// Runtimes are the runtimes in which the daemons of one workdir can run.
type Runtimes interface {
	// Choose returns the runtime to start daemons with: in the named runtime or, for Auto, in any, the programs whose
	// versions are nearest to the recorded ones.
	Choose(ctx context.Context, name string, wanted Wanted) (Choice, error)
	// All returns every runtime in which daemons of the workdir may run.
	All(ctx context.Context) []Runtime
}

// Wanted describes the programs that a replica should run.
type Wanted struct {
	Image    string        // by its name; "" for any tools
	Versions versions.Pair // the versions, or the beginnings of them: "3.1"
	Recorded versions.Pair // those on the node, of the programs that matter for the replica
	Loaded   string        // ID of the image that was loaded with the data, "" for none
	Build    Build         // whose build of OVN the programs have to be, "" for any
}

// Build says who built OVN, where the builder's patches make its programs compute other flows.
type Build string

// The builds of OVN.
const (
	Stock   Build = "stock"    // OVN as the project released it, or with a distribution's backports
	KubeOVN Build = "kube-ovn" // with the patches of kube-ovn (dist/images/Dockerfile.base)
)

// BuildOf returns who built the OVN of an image with a name, or in a root file system. The image of kube-ovn has its scripts in /kube-ovn.
func BuildOf(root, name string) Build {
	if info, err := os.Stat(filepath.Join(root, "kube-ovn")); root != "" && err == nil && info.IsDir() || strings.Contains(name, string(KubeOVN)) {
		return KubeOVN
	}
	return Stock
}

// AcceptsBuild reports whether a build is wanted.
func (w Wanted) AcceptsBuild(build Build) bool { return w.Build == "" || w.Build == build }

// Accepts reports whether tools have the wanted versions.
func (w Wanted) Accepts(pair versions.Pair) bool {
	accepted := func(version, wanted string) bool { return wanted == "" || versions.Has(version, wanted) }
	return accepted(pair.OVS, w.Versions.OVS) && accepted(pair.OVN, w.Versions.OVN)
}

// Choice is the runtime to start a replica with.
type Choice struct {
	Runtime  Runtime
	What     string   // the runtime, the image, and why it was chosen
	Rejected []string // the reasons against the others
}
