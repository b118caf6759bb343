package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ovs-offline/replica/runtime/process"
)

func TestMain(m *testing.M) {
	process.Main()
	testscript.Main(m, map[string]func(){
		"ovs-offline": func() { os.Exit(Main(os.Args[1:], System())) },
	})
}

// TestScripts runs the whole program as a person would; each script reads like
// a session at a terminal.
func TestScripts(t *testing.T) {
	if err := process.Missing("ovs-vswitchd", "ovn-nbctl", "ovn-detrace"); err != nil {
		t.Skip(err)
	}
	captures, err := filepath.Abs("../testdata/captures")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CAPTURES", captures)
			e.Setenv("COMPUTE", filepath.Join(captures, "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz"))
			e.Setenv("WORKER", filepath.Join(captures, "ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz"))
			e.Setenv("OVS_DBG_WORKDIR", filepath.Join(e.WorkDir, "wd"))
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/sbin")
			return nil
		},
	})
}
