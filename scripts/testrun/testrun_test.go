package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// user is the user without privileges that scripts/install-deps --test adds.
const user = "ovs-offline-test"

// leaving is a command of tests that leaves a process in a session of its own, which sleeps for so many seconds, and
// mounts something where it may. It ends when its standard input does.
const leaving = `mount -t tmpfs none /mnt 2>/dev/null; setsid sleep "$0" </dev/null >/dev/null 2>&1 &
echo started; read -r line; exit 3`

// TestNothingOutlivesARun ends runs in each way, and looks for what their tests left: at once where the run had
// namespaces of its own, and else once the next run has begun.
func TestNothingOutlivesARun(t *testing.T) {
	ovs.Need(t, "sh", "setsid", "sleep", "setpriv")
	bin := filepath.Join(ovs.Dir(t), "testrun")
	ovs.Run(t, "go", "build", "-o", bin, ".")
	if err := os.Chmod(filepath.Dir(bin), 0o755); err != nil {
		t.Fatal(err)
	}
	for who, as := range map[string][]string{"root": nil,
		"user": {"setpriv", "--reuid", user, "--regid", user, "--init-groups"}} {
		if os.Getuid() != 0 {
			if who == "root" {
				continue
			}
			as = nil
		}
		for _, signal := range []syscall.Signal{0, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(fmt.Sprintf("%s %v", who, signal), func(t *testing.T) {
				mark := fmt.Sprintf("1%06d%02d.%d", os.Getpid(), signal, len(as))
				r := begun(t, slices.Concat(as, []string{bin, "sh", "-c", leaving, mark}))
				ovs.Await(t, "the process that stays", func() bool { return len(marked(mark)) > 0 })
				code := r.end(signal)
				if signal == 0 && code != 3 {
					t.Errorf("exit code %d, not that of the command", code)
				}
				if signal == syscall.SIGKILL && who == "user" {
					next := begun(t, slices.Concat(as, []string{bin, "sh", "-c", "echo started"}))
					next.end(0)
				}
				ovs.Await(t, "the end of all that the run left", func() bool { return len(marked(mark)) == 0 },
					func() string { return fmt.Sprint(marked(mark)) })
				if left := mounted(t); left != "" {
					t.Errorf("what the run mounted is still there: %s", left)
				}
			})
		}
	}
}

// begunRun is a run whose command has printed its first line.
type begunRun struct {
	cmd   *exec.Cmd
	input *os.File
}

func begun(t *testing.T, argv []string) begunRun {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = "/"
	// The tests themselves may be part of a run.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, stage+"=") || strings.HasPrefix(v, "TMPDIR=")
	})
	cmd.Stdin = r
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		t.Fatalf("%q (%v): %s", line, err, stderr.String())
	}
	return begunRun{cmd, w}
}

// end ends the command of a run (0), or sends a signal to the run, and returns the run's exit code.
func (r begunRun) end(signal syscall.Signal) int {
	if signal == 0 {
		r.input.Close()
	} else {
		_ = r.cmd.Process.Signal(signal) // it runs, since its command does
	}
	_ = r.cmd.Wait() // the exit code says how it ended
	return r.cmd.ProcessState.ExitCode()
}

// marked lists the processes that sleep for so many seconds.
func marked(mark string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, path := range all {
		words, _ := os.ReadFile(path) // empty for one that has ended
		if string(words) == "sleep\x00"+mark+"\x00" {
			found = append(found, path)
		}
	}
	return found
}

// mounted returns what is mounted on /mnt where these tests run.
func mounted(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " /mnt ") {
			return line
		}
	}
	return ""
}
