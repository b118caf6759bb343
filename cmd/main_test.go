package cmd

import (
	"os"
	"path/filepath"
	"slices"
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
	runScripts(t, engines.Get(t, engines.Process), "testdata/script/*.txtar", "testdata/everywhere/*.txtar")
}

// TestScriptsInARoot runs the scripts that start daemons in an image for local processes.
func TestScriptsInARoot(t *testing.T) {
	runScripts(t, engines.Get(t, engines.ProcessRoot), "testdata/everywhere/*.txtar")
}

// scriptsOf returns the scripts of a folder that make test runs in a runtime, by its label: each way of a runtime to start
// daemons, to run tools in them, to look after them and to read images is in one of them, and each script in one runtime at
// least. TestScripts runs all of the folder everywhere with local processes; the sweep runs all in each.
func scriptsOf(label string) []string {
	return map[string][]string{
		engines.ProcessRoot:    {"session", "withimage", "notools"},
		engines.Docker:         {"session", "status", "withimage", "doctor"},
		engines.Podman:         {"session", "sets", "whatif", "notools", "doctor"},
		engines.PodmanRootless: {"session", "shell"},
	}[label]
}

// TestScriptsEverywhere runs the scripts that start daemons on each engine.
func TestScriptsEverywhere(t *testing.T) {
	engines.EachEngine(t, func(t *testing.T, r engines.Runtime) {
		runScripts(t, r, "testdata/everywhere/*.txtar", "testdata/containers/*.txtar")
	})
}

func runScripts(t *testing.T, r engines.Runtime, patterns ...string) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-detrace")
	runPatterns(t, r, patterns...)
}

func runPatterns(t *testing.T, r engines.Runtime, patterns ...string) {
	t.Helper()
	captures, err := filepath.Abs("../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	if kept := scriptsOf(r.Label); kept != nil {
		files = sweep.Rows(files, func(path string) bool {
			return slices.Contains(kept, strings.TrimSuffix(filepath.Base(path), ".txtar"))
		})
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
