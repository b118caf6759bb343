package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/choose"
)

// TestCollectReplacesNothing collects a report again, and one into the folder of a single node:
// the tool refuses, names no flags of the command line but in a command for the user, and leaves
// the data as it was.
func TestCollectReplacesNothing(t *testing.T) {
	captures, err := filepath.Abs("../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	const compute, worker = "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz",
		"ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"
	s := &served{folder: filepath.Join(t.TempDir(), "nodes"), root: captures}
	s.Server = New(Options{Folder: s.folder, Root: s.root, Runtime: "process", Runtimes: choose.Finder("test"),
		Version: "test"})
	session := s.connect(t)
	refused := func(in arguments, says ...string) {
		t.Helper()
		text, failed := result(session, "collect", in)
		if !failed {
			t.Errorf("%v is not refused: %s", in, text)
		}
		for _, part := range says {
			if !strings.Contains(text, part) {
				t.Errorf("%v: the text lacks %q: %s", in, part, text)
			}
		}
		if strings.Contains(text, "-w DIR") || strings.Contains(text, "--node") {
			t.Errorf("%v: an assistant has no flags: %s", in, text)
		}
	}
	call(t, session, "collect", arguments{"path": compute, "name": "compute1"})
	call(t, session, "collect", arguments{"path": worker})
	manifest := filepath.Join(s.folder, "compute1/manifest.json")
	before, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	refused(arguments{"path": compute}, "compute1: OVS data from sos report", "with another name it keeps both",
		"ovs-offline -w "+s.folder+" collect --force")
	refused(arguments{"path": worker, "name": "compute1"}, "compute1: OVS data from sos report",
		"with another name it keeps both")
	call(t, session, "collect", arguments{"path": compute, "name": "compute1-again"})
	if after, err := os.ReadFile(manifest); err != nil || string(after) != string(before) {
		t.Errorf("the manifest of compute1 changed: %v", err)
	}

	alone := &served{folder: filepath.Join(t.TempDir(), "node"), root: captures}
	alone.Server = New(Options{Folder: alone.folder, Root: alone.root, Runtime: "process", Runtimes: choose.Finder("test"),
		Version: "test"})
	session = alone.connect(t)
	call(t, session, "collect", arguments{"path": compute})
	refused(arguments{"path": compute}, "OVS data from sos report", "ovs-offline -w "+alone.folder+" collect --force")
	refused(arguments{"path": worker, "name": "worker"}, "holds one node", "ovs-offline -w FOLDER mcp")
}
