package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"ovs-offline": func() { os.Exit(Main(engines.StartArguments(os.Args[1:]), System())) },
	})
}

// tests runs the tests of the package and then stops the engines that they used.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return engines.Main(t.m)
}

// TestScripts runs the whole program; each script reads like a session at a terminal.
func TestScripts(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-detrace")
	r := engines.Get(t, engines.Process)
	runScripts(t, r, scripts(t, "testdata/script/*.txtar", "testdata/everywhere/*.txtar"))
}

// TestScriptsInARoot runs the scripts that start daemons in an image for local processes.
func TestScriptsInARoot(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-detrace")
	r := engines.Get(t, engines.ProcessRoot)
	runScripts(t, r, some(t, scripts(t, "testdata/everywhere/*.txtar"), "session", "withimage"))
}

// TestScriptsEverywhere runs the scripts that start daemons on each engine. Outside of a sweep, each way of an engine
// to start daemons, to run tools in them, to look after them and to read images is in one of the scripts that it runs,
// and each script is run by one engine at least, or by TestScripts.
func TestScriptsEverywhere(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-detrace")
	kept := map[string][]string{
		engines.Docker:         {"session", "status", "withimage", "doctor"},
		engines.Podman:         {"session"}, // in a sweep, which has all
		engines.PodmanRootless: {"session", "shell", "sets", "whatif", "notools", "doctor"},
	}
	engines.EachEngine(t, func(t *testing.T, r engines.Runtime) {
		runScripts(t, r, some(t, scripts(t, "testdata/everywhere/*.txtar", "testdata/containers/*.txtar"), kept[r.Label]...))
	})
}

// scripts returns the paths of the scripts that match one of the patterns.
func scripts(t *testing.T, patterns ...string) (paths []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v %v", pattern, found, err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// some returns the scripts with these names, and in a sweep all.
func some(t *testing.T, paths []string, names ...string) []string {
	t.Helper()
	return sweep.Named(t, paths, func(path string) string { return strings.TrimSuffix(filepath.Base(path), ".txtar") },
		names...)
}

func runScripts(t *testing.T, r engines.Runtime, files []string) {
	t.Helper()
	captures, err := filepath.Abs("../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Setenv("CAPTURES", captures)
			e.Setenv("VERSIONS", filepath.Join(filepath.Dir(captures), "versions"))
			e.Setenv("COMPUTE", filepath.Join(captures, "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"))
			e.Setenv("WORKER", filepath.Join(captures, "ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"))
			e.Setenv("OVS_DBG_WORKDIR", filepath.Join(e.WorkDir, "wd"))
			e.Setenv("RUNTIME", r.Name)
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/sbin")
			for _, setting := range r.Env() {
				name, value, _ := strings.Cut(setting, "=")
				e.Setenv(name, value)
			}
			return nil
		},
	})
}
