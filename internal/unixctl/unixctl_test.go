package unixctl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/command"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// server starts an ovsdb-server in a folder whose sockets have paths of more than
// 107 bytes, the longest that a unix socket's address holds.
func server(t *testing.T) (runDir string) {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovs-appctl")
	runDir = filepath.Join(t.TempDir(), strings.Repeat("long", 25))
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(runDir, "conf.db")
	ovs.Run(t, "ovsdb-tool", "create", db)
	ovs.ServeIn(t, runDir, db)
	return runDir
}

// run runs ovs-appctl.
func run(t *testing.T, runDir string, argv ...string) (stdout, stderr string) {
	t.Helper()
	out, err := command.Run(t.Context(), command.Command{Argv: argv, Env: append(os.Environ(), "OVS_RUNDIR="+runDir)})
	var failed *command.Error
	if errors.As(err, &failed) && argv[0] == "ovs-appctl" {
		return "", failed.Stderr
	}
	if err != nil && t.Context().Err() == nil {
		t.Fatal(err)
	}
	return string(out), ""
}

// TestRunReturnsTheOutputOfOVSAppctl compares Run with ovs-appctl.
func TestRunReturnsTheOutputOfOVSAppctl(t *testing.T) {
	dir := server(t)
	for _, argv := range [][]string{{"version"}, {"list-commands"}, {"ovsdb-server/list-dbs"},
		{"vlog/set", "ANY:file:dbg"}, {"vlog/list"}, {"no such command"}, {"version", "too", "many"},
		{"ovsdb-server/add-remote", "punix:/nowhere/" + `"quoted" <and> \back` + "\té"},
		{"ovsdb-server/add-db", "/no/such/file"}} {
		want, wantErr := run(t, dir, append([]string{"ovs-appctl", "-t", "ovsdb-server"}, argv...)...)
		got, err := Run(t.Context(), dir, "ovsdb-server", argv...)
		expect.Equal(t, string(got), want, argv)
		var failed *command.Error
		if errors.As(err, &failed) != (wantErr != "") || failed != nil && !strings.HasPrefix(wantErr, failed.Stderr) {
			t.Errorf("%q: %v, want %q", argv, err, wantErr)
		}
	}
}

// TestCommandsThatAreNotSent checks that the error wraps ErrUnreachable.
func TestCommandsThatAreNotSent(t *testing.T) {
	dir := server(t)
	if _, err := Run(t.Context(), dir, "ovsdb-server", "vlog/set", "\xff"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("arguments that are not UTF-8: %v", err)
	}
	if _, err := Run(t.Context(), dir, "ovs-vswitchd", "version"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a daemon that does not run: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, dir, "ovsdb-server", "version"); err == nil {
		t.Error("an ended context is no error")
	}
}
