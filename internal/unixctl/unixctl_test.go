package unixctl

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/command"
)

// server starts an ovsdb-server in a folder whose sockets have long names.
func server(t *testing.T) (runDir string) {
	t.Helper()
	if _, err := exec.LookPath("ovsdb-server"); err != nil {
		t.Skip("no ovsdb-server here")
	}
	runDir = filepath.Join(t.TempDir(), strings.Repeat("long", 25))
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(runDir, "conf.db")
	run(t, runDir, "ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	run(t, runDir, "ovsdb-server", db, "--remote=punix:"+filepath.Join(runDir, "db.sock"), "--pidfile", "--detach", "--no-chdir", "-vconsole:off", "-vsyslog:off", "--log-file="+filepath.Join(runDir, "log"))
	t.Cleanup(func() {
		if _, err := Run(context.Background(), runDir, "ovsdb-server", "exit"); err != nil { // the test's own context has ended
			t.Error(err)
		}
	})
	return runDir
}

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
	for _, argv := range [][]string{{"version"}, {"list-commands"}, {"ovsdb-server/list-dbs"}, {"vlog/set", "ANY:file:dbg"}, {"vlog/list"}, {"no such command"}, {"version", "too", "many"},
		{"ovsdb-server/add-remote", "punix:/nowhere/" + `"quoted" <and> \back` + "\té"}, {"ovsdb-server/add-db", "/no/such/file"}} {
		want, wantErr := run(t, dir, append([]string{"ovs-appctl", "-t", "ovsdb-server"}, argv...)...)
		got, err := Run(t.Context(), dir, "ovsdb-server", argv...)
		if string(got) != want {
			t.Errorf("%q: %q, want %q", argv, got, want)
		}
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
