package temporary

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// childVariable makes this program a command that makes a folder and a file, and waits.
const childVariable = "OVS_OFFLINE_TEMPORARY_IN"

func TestMain(m *testing.M) {
	folder := os.Getenv(childVariable)
	if folder == "" {
		os.Exit(m.Run())
	}
	made, _, err := Folder("oo")
	if err != nil {
		panic(err)
	}
	f, _, err := File(folder, "out.")
	if err != nil {
		panic(err)
	}
	fmt.Println(made, f.Name())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends it
}

// TestKilledCommandsLeaveNothingForLong checks that a folder and a file stay while their
// command runs, and go with the next command of that name once it was killed.
func TestKilledCommandsLeaveNothingForLong(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv(childVariable, folder)
	child := exec.Command(os.Args[0])
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	paths := strings.Fields(line)
	check(t, "while the command runs", paths, true)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	check(t, "after it was killed", paths, false)
}

// TestHalfRemovedFolderGoes checks a folder of a command that was killed while it removed it.
func TestHalfRemovedFolderGoes(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	half := filepath.Join(parent, "ovs-offline-half-1", "data")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	_, remove, err := Folder("half")
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
}

// check makes a folder and a file, and checks whether those of the other command are there.
func check(t *testing.T, when string, others []string, want bool) {
	t.Helper()
	_, remove, err := Folder("oo")
	if err != nil {
		t.Fatal(err)
	}
	f, release, err := File(os.TempDir(), "out.")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := os.Remove(f.Name()); err != nil {
		t.Error(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	for _, path := range others {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s, %s is there: got %t, want %t", when, path, err == nil, want)
		}
	}
}
