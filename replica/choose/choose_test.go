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
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/engine"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
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
				_, err := testRuntimes(t).Choose(t.Context(), name, runtime.Wanted{})
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
	choice, err := testRuntimes(t).Choose(t.Context(), Auto, runtime.Wanted{})
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
	if _, err := testRuntimes(t).Choose(t.Context(), Auto, runtime.Wanted{Image: "some"}); err == nil ||
		!strings.Contains(err.Error(), "/nonexistent/docker.sock") {
		t.Errorf("an image was asked for, and no engine is there: %v", err)
	}
	for _, name := range []string{Auto, Process} {
		if _, err := testRuntimes(t).Choose(t.Context(), name,
			runtime.Wanted{Versions: versions.Pair{OVS: "1.2"}}); err == nil ||
			!strings.Contains(err.Error(), "no image with OVS 1.2 for local processes, and this host has OVS ") {
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
	if _, err := testRuntimes(t).Choose(t.Context(), engine.Docker, runtime.Wanted{}); err == nil ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("the context's socket was not asked: %v", err)
	}
	t.Setenv("DOCKER_CONTEXT", "other")
	if _, err := testRuntimes(t).Choose(t.Context(), engine.Docker, runtime.Wanted{}); err == nil ||
		!strings.Contains(err.Error(), `context "other"`) {
		t.Errorf("a context that is not there: %v", err)
	}
}

// addImage adds an image to a store as "image add" leaves it, but without programs.
func addImage(t *testing.T, number int, ovs, ovn string) (root string) {
	t.Helper()
	digits := fmt.Sprintf("%064x", number)
	folder := filepath.Join(os.Getenv("XDG_DATA_HOME"), "ovs-offline/images", digits)
	root = filepath.Join(folder, "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"name": "image-%d", "id": "sha256:%s", "ovs": "%s", "ovn": "%s"}`, number, digits, ovs, ovn)
	if err := os.WriteFile(filepath.Join(folder, "image.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestChoosesAmongHostAndImages checks which of this host's real tools and four images
// are chosen, and that the line about it says why.
func TestChoosesAmongHostAndImages(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-ofctl", "ovs-appctl", "ovn-nbctl")
	t.Setenv("CONTAINER_HOST", "unix:///nonexistent/podman.sock")
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	r := testRuntimes(t)
	roots := map[string]string{"host": ""}
	roots["1"], roots["2"], roots["3"] = addImage(t, 1, "90.1.0", "90.03.0"), addImage(t, 2, "90.1.4", "90.03.2"),
		addImage(t, 3, "95.0.0", "")
	roots["4"] = addImage(t, 4, "90.1.4", "90.03.2")
	if err := os.Mkdir(filepath.Join(roots["4"], "kube-ovn"), 0o700); err != nil {
		t.Fatal(err)
	}
	host := versions.Pair{OVS: strings.Fields(ovs.Run(t, "ovs-vswitchd", "--version"))[3],
		OVN: strings.Fields(ovs.Run(t, "ovn-nbctl", "--version"))[1]}
	pair := func(ovs, ovn string) versions.Pair { return versions.Pair{OVS: ovs, OVN: ovn} }
	for what, c := range map[string]struct {
		wanted    runtime.Wanted
		root, why string
	}{
		"nothing is known":   {runtime.Wanted{}, "host", ""},
		"those of this host": {runtime.Wanted{Recorded: host}, "host", ": " + host.String() + ", as on the node"},
		"an image has them": {runtime.Wanted{Recorded: pair("90.1.4", "90.03.2")}, "2",
			": OVS 90.1.4, OVN 90.03.2, as on the node"},
		"databases alone, of a schema": {runtime.Wanted{Recorded: pair("", "90.03")}, "1",
			": OVS 90.1.0, OVN 90.03.0, as on the node"},
		"of the same minor version": {runtime.Wanted{Recorded: pair("90.1.5", "90.03.2")}, "2",
			": OVS 90.1.4, OVN 90.03.2, nearest to the node's OVS 90.1.5, OVN 90.03.2"},
		"the nearest newer": {runtime.Wanted{Recorded: pair("89.0.0", "")}, "1",
			": OVS 90.1.0, OVN 90.03.0, nearest to the node's OVS 89.0.0"},
		"the nearest older": {runtime.Wanted{Recorded: pair("99.0.0", "")}, "3",
			": OVS 95.0.0, nearest to the node's OVS 99.0.0"},
		"an older one with all tools": {runtime.Wanted{Recorded: pair("99.0.0", "99.03.0")}, "2",
			": OVS 90.1.4, OVN 90.03.2, nearest to the node's OVS 99.0.0, OVN 99.03.0"},
		"a named image": {runtime.Wanted{Image: "image-3", Recorded: host}, "3", ": OVS 95.0.0"},
		"a named version": {runtime.Wanted{Versions: pair("90", ""), Recorded: host}, "1",
			": OVS 90.1.0, OVN 90.03.0"},
		"a named version of OVN": {runtime.Wanted{Versions: pair("", "90.03.2"), Recorded: host}, "2",
			": OVS 90.1.4, OVN 90.03.2"},
		"the build of kube-ovn": {runtime.Wanted{Recorded: host, Build: runtime.KubeOVN}, "4",
			": OVS 90.1.4, OVN 90.03.2, nearest to the node's " + host.String()},
		"no build of kube-ovn": {runtime.Wanted{Recorded: pair("90.1.4", "90.03.2"), Build: runtime.Stock}, "2",
			": OVS 90.1.4, OVN 90.03.2, as on the node"},
		"the named one of this host": {runtime.Wanted{Versions: host, Recorded: pair("90.1.4", "90.03.2")}, "host",
			": " + host.String()},
	} {
		for _, name := range []string{Auto, Process} {
			choice, err := r.Choose(t.Context(), name, c.wanted)
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			where := "local processes"
			if c.root != "host" {
				where += ", image image-" + c.root
			}
			expect.Equal(t, choice.Runtime.Root(), roots[c.root], what, name)
			expect.Equal(t, choice.What, where+c.why, what, name)
		}
	}
	for want, wanted := range map[string]runtime.Wanted{
		"no image image-9 for local processes":       {Image: "image-9"},
		"no image with OVS 95 for local processes: ": {Versions: pair("95", ""), Build: runtime.KubeOVN},
		"no image with OVS 90.1, OVN 91 for local processes, and this host has " + host.String() +
			":": {Versions: pair("90.1", "91")},
	} {
		if _, err := r.Choose(t.Context(), Process, wanted); !errors.Is(err, runtime.ErrNoImage) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", wanted, err, want)
		}
	}
}
