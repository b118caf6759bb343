package fidelity

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/replica"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// rootsVariable names the folder with the root file systems that scripts/roots makes.
const rootsVariable = "OVS_OFFLINE_ROOTS"

// release is a release whose Open vSwitch and OVN run nodes of the lab and replicas.
type release struct {
	name       string
	root       string // its root file system, "" for this host's
	topologies []string
	kept       string // the one of topologies that is recorded outside of a sweep
}

// releases returns the releases at hand, oldest first: outside of a sweep, those of this host, an older and a newer
// one. A release without a root file system is a skipped test that has the reason.
func releases(t *testing.T) []release {
	t.Helper()
	roots := os.Getenv(rootsVariable)
	if roots == "" {
		t.Skipf("%s names no folder with root file systems of other releases: make test-versions makes them", rootsVariable)
	}
	needTools(t, "ovn-northd", "ovn-controller", "ip")
	if !process.New(process.Options{}).HasLoopback(t.Context()) {
		t.Skip("the collectors of a live node can only be restored where daemons have a network namespace of their own")
	}
	all := []string{"openstack", "kubernetes", "ml2-ovs"}
	list := []release{
		{"bullseye", filepath.Join(roots, "bullseye"), []string{"ml2-ovs"}, "ml2-ovs"}, // it has no OVN
		{"host", "", all, "kubernetes"},
		{"trixie", filepath.Join(roots, "trixie"), all, "kubernetes"},
		{"sid", filepath.Join(roots, "sid"), all, "openstack"},
	}
	var found []release
	for _, r := range sweep.Rows(list, func(r release) bool { return r.name != "trixie" }) {
		if _, err := os.Stat(r.root); r.root != "" && err != nil {
			t.Run(r.name, func(t *testing.T) { t.Skipf("%v; debootstrap: %s", err, lastLine(r.root+".log")) })
			continue
		}
		found = append(found, r)
	}
	return found
}

// lastLine returns the last line of a file, or why there is none.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// record records a topology on a node of the release.
func (r release) record(t *testing.T, topology string) Recording {
	t.Helper()
	recording, err := LabIn(t.Context(), r.root, lab, topology, filepath.Join(t.TempDir(), topology))
	if err != nil {
		t.Fatal(err)
	}
	return recording
}

// replay runs a replica of a recording with the programs of the release. It ends with
// the test.
func (r release) replay(t *testing.T, recording Recording) *Replica {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	var opts replica.Options
	if r.root != "" {
		opts.Exec = execPrefix(t, wd)
	}
	rt := process.New(process.Options{Root: r.root, Folders: wd.RuntimeFolders()})
	n, err := ReplayIn(t.Context(), recording.Report, wd, rt, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}
