package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/test/daemons/ovs"
)

// started is a shell text that runs as a container runtime runs it: it leads its own
// process group, and its output is a pipe that stays open and that a test may not read.
type started struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	output  *os.File
}

func startText(t *testing.T, shell, env []string, nonce, text string) *started {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	argv := (&transfer{stall: time.Minute}).argv(nonce, "", text, nil)
	c := exec.Command(shell[0], append(shell[1:], argv[1:]...)...)
	c.Stdout, c.Stderr = w, w
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s := &started{command: c, output: r}
	if s.stdin, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = r.Close()
		_ = w.Close() // kept open until now, as container runtimes do
	})
	return s
}

// group returns the names of the processes in the shell's process group.
func (s *started) group(t *testing.T) (names []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // state, ppid, pgrp: proc(5)
		if fields[0] != "Z" && fields[2] == strconv.Itoa(s.command.Process.Pid) {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}

// awaitEmpty waits for the end of all processes of the group.
func (s *started) awaitEmpty(t *testing.T) {
	t.Helper()
	go func() { _ = s.command.Wait() }()
	var left []string
	ovs.Await(t, "the end of the processes in the pod", func() bool {
		left = s.group(t)
		return len(left) == 0
	}, func() string { return fmt.Sprintf("left in the pod: %q", left) })
}

const endlessText = prologue + "f zeros cat /dev/zero\nz"

// TestLostConnectionLeavesNoProcess checks that a command which can't write, because
// its connection was lost, ends with its standard input.
func TestLostConnectionLeavesNoProcess(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			s := startText(t, shell, nil, "NONCE", endlessText)
			if _, err := io.ReadFull(s.output, make([]byte, 100000)); err != nil {
				t.Fatal(err)
			}
			if n := len(s.group(t)); n < 4 {
				t.Fatalf("%d processes run", n)
			}
			if err := s.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			s.awaitEmpty(t)
		})
	}
}

// TestSilentClientLeavesNoProcess checks that a command ends when its client sends no
// line any more although its standard input stays open, and not before. A second takes
// three hundredths of a second here.
func TestSilentClientLeavesNoProcess(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sleep"),
		[]byte("#!/bin/sh\necho >>$PASSED\nPATH=/bin:/usr/bin exec sleep 0.03\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits
			if hasOwnSleep(t, shell) {
				t.Skip("this shell has a sleep of its own, which would wait for 30 whole seconds")
			}
			passed := filepath.Join(t.TempDir(), "seconds")
			s := startText(t, shell, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "PASSED=" + passed}, "NONCE", endlessText)
			if _, err := io.ReadFull(s.output, make([]byte, 100000)); err != nil {
				t.Fatal(err)
			}
			before := len(readFile(t, passed))
			for len(readFile(t, passed)) < before+40 && len(s.group(t)) > 0 { // more than 30 short seconds
				time.Sleep(10 * time.Millisecond) // a client that is there sends a line every second
				if _, err := s.stdin.Write([]byte("\n")); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(s.group(t)); n < 4 {
				t.Fatalf("%d processes are left although the client is there", n)
			}
			s.awaitEmpty(t)
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// hasOwnSleep reports whether a shell runs another sleep than that of PATH, as busybox does.
func hasOwnSleep(t *testing.T, shell []string) bool {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\necho of PATH\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(shell[0], append(slices.Clone(shell[1:]), "-c", "sleep 0")...)
	c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return len(out) == 0
}

// TestEndLeavesNoProcess checks that nothing is left when a text has come to its end,
// and that its exit code is 0.
func TestEndLeavesNoProcess(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			s := startText(t, shell, nil, "NONCE", prologue+"f one echo first\nz")
			if err := s.command.Wait(); err != nil {
				t.Error(err)
			}
			s.awaitEmpty(t)
			buffer := make([]byte, 4096)
			n, err := s.output.Read(buffer)
			if text := string(buffer[:n]); err != nil || !strings.Contains(text, "first\n") ||
				strings.Contains(text, "erminated") {
				t.Errorf("%v: %q", err, text)
			}
		})
	}
}

// TestSharedGroupIsNotKilled checks that a shell which does not lead its process group
// kills no other process.
func TestSharedGroupIsNotKilled(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			argv := (&transfer{stall: time.Minute}).argv("NONCE", "", prologue+"f one echo first\nz", nil)
			outer := exec.Command("sh", append([]string{"-c", `"$@" </dev/null; sleep 0.1; echo survived`, "sh"},
				append(shell, argv[1:]...)...)...)
			outer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := outer.Output()
			if err != nil || !strings.Contains(string(out), "first\n") || !strings.HasSuffix(string(out), "survived\n") {
				t.Errorf("%v: %q", err, out)
			}
		})
	}
}

// forgetful is a container runtime that was killed and started again during the first
// command: this command's streams stay open, and it can't be reached any more.
type forgetful struct {
	loopback
	t     *testing.T
	first *started
}

func (f *forgetful) Exec(ctx context.Context, target Target, argv []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	if f.first != nil {
		return f.loopback.Exec(ctx, target, argv, stdin, stdout, stderr)
	}
	f.first = startText(f.t, f.shell, nil, argv[4], endlessText)
	if _, err := io.ReadFull(f.first.output, make([]byte, 100000)); err != nil {
		return err
	}
	return errors.New("connection reset by peer")
}

// TestNextTryEndsFormerOnes checks that a try kills what a former one left in the
// container, and nothing else.
func TestNextTryEndsFormerOnes(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			other := startText(t, shell, nil, "OTHER", endlessText)
			exec := &forgetful{loopback: loopback{shell}, t: t}
			if _, err := fetch(t, exec, time.Minute, threeCommands); err != nil {
				t.Fatal(err)
			}
			exec.first.awaitEmpty(t)
			if len(other.group(t)) < 4 {
				t.Error("another command in the container was killed")
			}
		})
	}
}
