package workdir

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
)

// holdVariable makes this test binary, run again, hold a lock until its input ends.
const holdVariable = "WORKDIR_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdVariable); path != "" {
		if _, err := Lock(path); err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString("locked\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestLockAcrossProcesses checks that one process at a time holds the lock, and a
// killed one does not.
func TestLockAcrossProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wd")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if said, err := bufio.NewReader(stdout).ReadString('\n'); said != "locked\n" {
		t.Fatal(said, err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("while another process has it: %v", err)
	}
	if _, err := Find(path); err != nil {
		t.Errorf("for reading: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	lock(t, path).Unlock()
	lock(t, path)
	if _, err := Lock(path); !errors.Is(err, ErrInUse) {
		t.Errorf("within one process: %v", err)
	}
}

func TestPathsThatCannotBeUsed(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"a,b", "a:b", "a\nb"} {
		path := filepath.Join(base, name)
		for _, open := range []func(string) (*Dir, error){Find, Lock} {
			if _, err := open(path); err == nil || !strings.Contains(err.Error(), "-w") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", path, err)
			}
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%q was made", path)
		}
	}
	files.Write(t, filepath.Join(base, "file"), "x")
	if _, err := Lock(filepath.Join(base, "file")); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Lock(filepath.Join(base, "file", "wd")); err == nil {
		t.Error("below a file")
	}
}

func TestModes(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "made", "here")
	lock(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made with %v %v", info.Mode(), err)
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o777: false,
		0o777 | os.ModeSticky: false} {
		dir := filepath.Join(base, strconv.Itoa(int(mode)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		d, err := Lock(dir)
		if (err == nil) != ok {
			t.Errorf("mode %v: %v", mode, err)
		}
		if err != nil && strings.Contains(err.Error(), "chmod") == (mode&os.ModeSticky != 0) {
			t.Errorf("mode %v: the error suggests to chmod /tmp: %v", mode, err)
		}
		if err == nil {
			d.Unlock()
		}
	}
}

// TestFoldersOfOtherUsersAreRefused also checks links that other users made.
func TestFoldersOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a folder away")
	}
	base := t.TempDir()
	theirs, ours, link := filepath.Join(base, "theirs"), filepath.Join(base, "ours"), filepath.Join(base, "link")
	for _, dir := range []string{theirs, ours} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(ours, link); err != nil {
		t.Fatal(err)
	}
	lock(t, link).Unlock()
	for _, path := range []string{theirs, link} {
		if err := os.Lchown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) (*Dir, error){Find, Lock} {
			if _, err := open(path); err == nil || !strings.Contains(err.Error(), "12345") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if len(tree(t, theirs)) != 0 {
		t.Error("something was written there")
	}
}

// TestSymlinkedWorkdir checks that a link works as the folder that it points to.
func TestSymlinkedWorkdir(t *testing.T) {
	base := t.TempDir()
	real, link := filepath.Join(base, "real"), filepath.Join(base, "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	d := lock(t, link)
	install(t, d, "old", OVS)
	install(t, d, "new", OVS)
	expect.Equal(t, tree(t, real)["db/ovs/conf.db"], "new")
	files.Write(t, filepath.Join(real, "mine"), "x")
	left, err := d.Purge()
	if err != nil || !reflect.DeepEqual(left, []string{"mine"}) {
		t.Errorf("left %q, %v", left, err)
	}
	if got := tree(t, real); !reflect.DeepEqual(got, map[string]string{"mine": "x"}) {
		t.Errorf("there still is %v", got)
	}
}

// TestLinkInPlaceOfTheLockIsRefused checks that a link in place of the lock is refused:
// locking would truncate its target.
func TestLinkInPlaceOfTheLockIsRefused(t *testing.T) {
	d := fresh(t)
	d.Unlock()
	victim := filepath.Join(t.TempDir(), "victim")
	files.Write(t, victim, "precious")
	if err := os.Remove(filepath.Join(d.Path(), ".lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(d.Path(), ".lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(d.Path()); err == nil {
		t.Error("locked")
	}
	if raw, _ := os.ReadFile(victim); string(raw) != "precious" {
		t.Error("written through a link")
	}
}

func TestManifestThatCannotBeRead(t *testing.T) {
	d := fresh(t)
	for _, text := range []string{"", "{", `{"format": 99}`} {
		files.Write(t, d.manifestPath(), text)
		if _, err := d.Manifest(); err == nil || !strings.Contains(err.Error(), d.manifestPath()) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWriteJSON checks that an error leaves the old content and no other file.
func TestWriteJSON(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := WriteJSON(path, 1); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(path, 2); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(path)
	if raw, _ := os.ReadFile(path); string(raw) != "2\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v", raw, info.Mode())
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(dir, "d", "x"), "")
	if err := WriteJSON(filepath.Join(dir, "d"), 3); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}
