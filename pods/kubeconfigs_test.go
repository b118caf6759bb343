package pods

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKubeconfigsAreKeptUntilTheyEnd checks that a later command finds the kubeconfig of a
// start, and that documents of starts that have ended are removed.
func TestKubeconfigsAreKeptUntilTheyEnd(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for set, k := range map[string]kept{"old": {"/a", time.Now().Add(-time.Minute)}, "one": {"/b:/c", time.Now().Add(time.Hour)}} {
		if err := keep(set, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := keep("two", kept{"/d", time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	forget("two")
	for set, want := range map[string]string{"old": "", "one": "/b:/c", "two": "", "never": ""} {
		if got, err := kubeconfigOf(set); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", set, got, err, want)
		}
	}
}

// TestForeignPlaceNamesNoKubeconfig checks that a replica.json of another person can't lead
// to a kubeconfig of that person, which may name programs to run.
func TestForeignPlaceNamesNoKubeconfig(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	if err := os.WriteFile(filepath.Join(state, "evil"), []byte(`{"kubeconfig": "/tmp/evil", "ends": "2999-01-01T00:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"../../evil", filepath.Join(state, "evil"), "..", ".", ""} {
		if got, err := kubeconfigOf(set); got != "" || err != nil {
			t.Errorf("%q: %q, %v", set, got, err)
		}
	}
}
