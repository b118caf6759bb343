package engines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestAnEngineThatEndsIsStartedAgain kills an engine, as if it had crashed: the next test
// gets a new one.
func TestAnEngineThatEndsIsStartedAgain(t *testing.T) {
	first := Get(t, PodmanRootless)
	if !first.answers() {
		t.Fatal("the engine does not answer")
	}
	if again := Get(t, PodmanRootless); again.Socket != first.Socket {
		t.Fatalf("an engine that runs was started again: %s, %s", first.Socket, again.Socket)
	}
	pid, err := os.ReadFile(filepath.Join(first.dir, PodmanRootless, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kill", "-KILL", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for first.answers() {
	}
	if second := Get(t, PodmanRootless); second.Socket == first.Socket || !second.answers() {
		t.Errorf("after %s came %s, which answers: %t", first.Socket, second.Socket, second.answers())
	}
}
