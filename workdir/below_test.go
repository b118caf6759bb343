package workdir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBelowFindsEachNodesWorkdir makes a folder as a collection of several nodes
// leaves it, with folders of a user beside the workdirs.
func TestBelowFindsEachNodesWorkdir(t *testing.T) {
	parent := t.TempDir()
	lock(t, parent)
	install(t, lock(t, filepath.Join(parent, "worker-2")), "x", OVS)
	install(t, lock(t, filepath.Join(parent, "ctl-1")), "x", NB, SB)
	started := lock(t, filepath.Join(parent, "started"))
	if err := WriteJSON(started.ReplicaFile(), map[string]string{}); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"notes", "by-hand/restore_flows", "deeper/worker-3/db/ovs", ".hidden/db/ovs"} {
		if err := os.MkdirAll(filepath.Join(parent, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(parent, "ctl-1"), filepath.Join(parent, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "manifest.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// As of an unpacked report of sos.
	if err := os.MkdirAll(filepath.Join(parent, "sos_reports"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "sos_reports/manifest.json"),
		[]byte(`{"version": "4.12.0", "components": {"archive": {"format": "xz"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Below(parent)
	want := []string{"by-hand", "ctl-1", "started", "worker-2"}
	for i := range want {
		want[i] = filepath.Join(parent, want[i])
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Below returns %v, %v; want %v", got, err, want)
	}
}

// TestNothingBelowAWorkdirIsAWorkdir checks that the folders of a workdir itself,
// staged and installed, do not look like the workdirs of nodes.
func TestNothingBelowAWorkdirIsAWorkdir(t *testing.T) {
	d := fresh(t)
	install(t, d, "x", Kinds()...)
	stage(t, d, "y", Kinds()...)
	for _, path := range []string{d.RecordedCopy(), d.WorkingCopy(NB), d.Log("ovs-vswitchd"), d.Socket(OVS),
		d.RecordedSocket(), filepath.Join(d.Tools(), "x"), filepath.Join(d.Bin(), "activate")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Below(d.Path()); err != nil || len(got) > 0 {
		t.Errorf("Below returns %v, %v", got, err)
	}
}

func TestBelowOfWhatIsNoFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if got, err := Below(missing); err != nil || len(got) > 0 {
		t.Errorf("of a missing folder: %v, %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Below(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("of a file: %v", err)
	}
}
