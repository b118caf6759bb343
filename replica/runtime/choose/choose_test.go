package choose

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
)

// socket returns a path for the socket of an engine's service.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "oo-auto-") // a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "sock")
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// oldService answers a ping as a very old engine does.
func oldService(t *testing.T, path string) {
	t.Helper()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Libpod-API-Version", "1.0.0")
		w.Header().Set("Api-Version", "1.12")
		_, _ = w.Write([]byte("OK"))
	})}
	l := listen(t, path)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// TestEnginesThatDoNotAnswer checks that the error names the problem of each socket and
// the next step, without a long wait.
func TestEnginesThatDoNotAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for time limits")
	}
	for _, c := range []struct {
		name  string
		serve func(t *testing.T, path string)
		want  string
	}{
		{"absent", func(*testing.T, string) {}, "no such socket"},
		{"refused", func(t *testing.T, path string) {
			l := listen(t, path).(*net.UnixListener)
			l.SetUnlinkOnClose(false)
			_ = l.Close()
		}, "refused|running"},
		{"silent", func(t *testing.T, path string) { listen(t, path) }, "does not answer within"},
		{"old", oldService, "version"},
	} {
		for _, name := range engine.Names() {
			t.Run(c.name+" "+name, func(t *testing.T) {
				path := socket(t)
				c.serve(t, path)
				t.Setenv("CONTAINER_HOST", "unix://"+path)
				t.Setenv("DOCKER_HOST", "unix://"+path)
				_, err := testRuntimes(t).Choose(t.Context(), name, Wanted{})
				if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) || !strings.Contains(err.Error(), path) {
					t.Errorf("want %q and the path in it: %v", c.want, err)
				}
			})
		}
	}
}

func testRuntimes(t *testing.T) *Runtimes {
	t.Helper()
	t.Setenv("XDG_DATA_HOME", t.TempDir()) // without images
	wd, err := workdir.Find(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	return For(wd, "test")
}

// TestAutoGivesReasons checks that without an engine this machine's tools are chosen,
// and that without these tools the error names everything that was tried.
func TestAutoGivesReasons(t *testing.T) {
	t.Setenv("CONTAINER_HOST", "unix:///nonexistent/podman.sock")
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	choice, err := testRuntimes(t).Choose(t.Context(), Auto, Wanted{})
	if errors.Is(err, runtime.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if choice.What != "local processes" {
		t.Errorf("it is %q, with reasons that belong elsewhere", choice.What)
	}
	reasons := strings.Join(choice.Rejected, "\n")
	for _, want := range []string{"not podman: ", "/nonexistent/podman.sock", "not docker: ", "/nonexistent/docker.sock"} {
		if !strings.Contains(reasons, want) {
			t.Errorf("no reason has %s: %s", want, reasons)
		}
	}
	if _, err := testRuntimes(t).Choose(t.Context(), Auto, Wanted{Image: "some"}); err == nil || !strings.Contains(err.Error(), "/nonexistent/docker.sock") {
		t.Errorf("an image was asked for, and no engine is there: %v", err)
	}
	for _, name := range []string{Auto, Process} {
		if _, err := testRuntimes(t).Choose(t.Context(), name, Wanted{Versions: versions.Pair{OVS: "1.2"}}); err == nil || !strings.Contains(err.Error(), "no image with OVS 1.2 for local processes, and this host has OVS ") {
			t.Errorf("--runtime %s runs another version of Open vSwitch than the installed one? %v", name, err)
		}
	}
}

// TestDockerContext checks that the daemon is found in the same way as by docker's own
// client.
func TestDockerContext(t *testing.T) {
	path := socket(t)
	oldService(t, path)
	config := t.TempDir()
	meta := filepath.Join(config, "contexts/meta", fmt.Sprintf("%x", sha256.Sum256([]byte("mine"))))
	if err := os.MkdirAll(meta, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(config, "config.json"): `{"currentContext": "mine"}`,
		filepath.Join(meta, "meta.json"):     `{"Name": "mine", "Endpoints": {"docker": {"Host": "unix://` + path + `"}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	t.Setenv("DOCKER_CONFIG", config)
	if _, err := testRuntimes(t).Choose(t.Context(), engine.Docker, Wanted{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the context's socket was not asked: %v", err)
	}
	t.Setenv("DOCKER_CONTEXT", "other")
	if _, err := testRuntimes(t).Choose(t.Context(), engine.Docker, Wanted{}); err == nil || !strings.Contains(err.Error(), `context "other"`) {
		t.Errorf("a context that is not there: %v", err)
	}
}
