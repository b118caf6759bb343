package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// needsUser reports whether tests on the runtime run as another user: root's own
// podman is not rootless.
func (r Runtime) needsUser() bool { return r.Label == PodmanRootless && os.Geteuid() == 0 }

// asUser runs the same test again as the user that owns the engine. If the engine ends by
// itself meanwhile, the test runs once more, on a new one: the log then has both runs.
func (r Runtime) asUser(t *testing.T) {
	t.Helper()
	out, err := r.runAsUser(t)
	if err != nil && !r.answers() {
		t.Logf("the engine ended: running the test again")
		out, err = Get(t, r.Label).runAsUser(t)
	}
	if err != nil {
		t.Errorf("as the user of %s: %v", r.Label, err)
	}
	if strings.Contains(out, "\n--- SKIP") || strings.Contains(out, "no tests to run") {
		t.Skip("the other user skipped it: see the log")
	}
}

// runAsUser runs the test from copies of the test program and of the captures that the
// user can read, and returns its output.
func (r Runtime) runAsUser(t *testing.T) (string, error) {
	t.Helper()
	user := owner(t, r.socketPath())
	src := filepath.Join(r.dir, "src")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(root(), here)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(src, relative)
	program := filepath.Join(to, "test")
	if _, err := os.Stat(program); err != nil {
		for _, part := range []string{"testdata", "scripts", "docs", filepath.Join(relative, "testdata")} {
			copyTree(t, filepath.Join(root(), part), filepath.Join(src, part))
		}
		copyFile(t, filepath.Join(root(), "go.mod"), filepath.Join(src, "go.mod"), 0o644)
		copyFile(t, "/proc/self/exe", program, 0o755)
	}
	home := filepath.Join(r.dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, int(user.Uid), int(user.Gid)); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "-test.run="+exactly(t.Name()), "-test.v", "-test.timeout=10m")
	c.Dir = to
	c.Env = append(r.Env(), "PATH="+os.Getenv("PATH"), "HOME="+home, "TMPDIR="+home, inherited+"="+r.Label+"="+r.Socket)
	for _, name := range []string{sweep.Variable, ovs.PatienceVariable} {
		c.Env = append(c.Env, name+"="+os.Getenv(name))
	}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	out, err := c.CombinedOutput()
	t.Logf("as user %d:\n%s", user.Uid, out)
	return string(out), err
}

// exactly returns the pattern for -test.run that selects one test.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

func owner(t *testing.T, path string) *syscall.Credential {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	return &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if _, err := os.Stat(from); err != nil {
		return
	}
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if info, err := e.Info(); err == nil && info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		copyFile(t, path, filepath.Join(to, relative), mode)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, mode); err != nil {
		t.Fatal(err)
	}
}
