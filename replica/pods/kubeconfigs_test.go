package pods

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ovs-offline/replica"
)

// TestKubeconfigsAreKeptUntilTheyEnd checks that a later command finds the kubeconfig of a
// start, and that documents of starts that ended long ago are removed.
func TestKubeconfigsAreKeptUntilTheyEnd(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for set, k := range map[string]kept{"old": {"/a", time.Now().Add(-keptAfter - time.Minute)},
		"ended": {"/e", time.Now().Add(-time.Minute)}, "one": {"/b:/c", time.Now().Add(time.Hour)}} {
		if err := keep(set, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := keep("two", kept{"/d", time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	forget("two")
	for set, want := range map[string]string{"old": "", "ended": "/e", "one": "/b:/c", "two": "", "never": ""} {
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
	if err := os.WriteFile(filepath.Join(state, "evil"),
		[]byte(`{"kubeconfig": "/tmp/evil", "ends": "2999-01-01T00:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"../../evil", filepath.Join(state, "evil"), "..", ".", ""} {
		if got, err := kubeconfigOf(set); got != "" || err != nil {
			t.Errorf("%q: got %q, %v, want none", set, got, err)
		}
	}
}

// TestKubeconfigMayMove checks that KUBECONFIG leads to the cluster of a replica when the file
// of its start has gone or now has another cluster, and what is said if it does not.
func TestKubeconfigMayMove(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	write := func(name, context, server string) string {
		path := filepath.Join(dir, name)
		text := `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "` + server +
			`"}}], "contexts": [{"name": "` + context + `", "context": {"cluster": "c"}}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right := write("right", "lab", "https://lab:6443")
	for name, files := range map[string]string{"gone": filepath.Join(dir, "gone"),
		"other cluster": write("other", "lab", "https://other:6443"),
		"other context": write("context", "prod", "https://lab:6443")} {
		t.Run(name, func(t *testing.T) {
			if err := keep("set", kept{files, time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			p := replica.Place{Context: "lab", Server: "https://lab:6443", Set: "set"}
			t.Setenv("KUBECONFIG", right)
			if _, err := NewClusters("test").connect(t.Context(), p); err != nil {
				t.Errorf("with KUBECONFIG: %v", err)
			}
			t.Setenv("KUBECONFIG", files)
			_, err := NewClusters("test").connect(t.Context(), p)
			if want := `set KUBECONFIG to the file with its context "lab"; the start used ` + files; err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("without: %v, want %s", err, want)
			}
		})
	}
}
