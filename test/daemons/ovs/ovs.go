// Package ovs starts Open vSwitch for tests: ovsdb-server and ovs-vswitchd with a
// dummy datapath, in a temporary folder and without a network. It imports no
// product package, so that the tests of every package can use it.
package ovs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The schemas that the distributions' packages install.
const (
	Schema   = "/usr/share/openvswitch/vswitch.ovsschema"
	NBSchema = "/usr/share/ovn/ovn-nb.ovsschema"
	SBSchema = "/usr/share/ovn/ovn-sb.ovsschema"
)

// RunVariable names the folder in which the tests of one run share what they make. scripts/testrun makes it, and removes it
// when the run ends.
const RunVariable = "OVS_OFFLINE_RUN"

// Need skips a test that starts real programs: in -short mode, and where one of
// the programs is not installed. The reason names what is missing. No result of such a test is taken from an earlier run.
func Need(tb testing.TB, programs ...string) {
	tb.Helper()
	_ = os.Getenv(RunVariable) // `go test` takes no result from a run in which a variable that the test reads had another value
	if testing.Short() {
		tb.Skip("real daemons and tools are not run in -short mode")
	}
	for _, program := range programs {
		if _, err := find(program); err != nil {
			tb.Skip(err)
		}
	}
}

// find returns the path of a program. Daemons are in sbin folders, which are not
// in every user's PATH.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if err == nil {
			break
		}
		if found, sbinErr := exec.LookPath(filepath.Join(dir, program)); sbinErr == nil {
			return found, nil
		}
	}
	return path, err
}

// Dir returns a new folder that is removed when the test ends. Its path is
// short: the path of a unix socket has at most 107 bytes, and t.TempDir holds
// the test's name.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "ovs")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// Run runs a program, fails the test if it fails, and returns its standard output.
func Run(tb testing.TB, argv ...string) string {
	tb.Helper()
	return must(tb, argv, nil)
}

func must(tb testing.TB, argv, env []string) string {
	tb.Helper()
	out, err := try(argv, env)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// try runs a program with additional environment variables, for Patience at most: a daemon that hangs
// fails one test and not the whole run. The error holds what
// the program printed on standard error.
func try(argv, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

// environment makes the tools of Open vSwitch and OVN find the daemons of a folder.
func environment(dir string) []string {
	return []string{"OVS_RUNDIR=" + dir, "OVS_LOGDIR=" + dir, "OVS_DBDIR=" + dir, "OVN_RUNDIR=" + dir}
}
