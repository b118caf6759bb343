//go:build linux

package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// launch is one attempt to start something, marked so that every process it
// led to can be found.
type launch struct{ variable string }

func newLaunch() launch {
	return launch{variable: launchMark + "=" + rand.Text()}
}

// run runs cmd until it ends, which for a daemon's --detach means that the
// daemon is ready, and returns what it printed. On any error nothing of it is
// left.
func (l launch) run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	// A file, not a pipe: a daemon that keeps it open then holds up nobody.
	output, err := memoryFile()
	if err != nil {
		return "", err
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Kill() // its children are found by their mark
		<-ended
		err = ctx.Err()
	}
	if err != nil {
		err = errors.Join(err, l.kill())
	}
	said, readErr := io.ReadAll(io.NewSectionReader(output, 0, 1<<20))
	if readErr != nil && err == nil {
		err = fmt.Errorf("reading what %s printed: %w", cmd.Args[0], readErr)
	}
	return string(said), err
}

// kill ends every process that carries the mark. A detached daemon leads a
// session of its own and has init for a parent: the mark in the environment it
// was started with is what is left to know it by.
func (l launch) kill() error { return killAll(l.marks) }

// killAll ends the processes of which is says so, and those that they become.
func killAll(is func(pid int) bool) error {
	const bound = 2 * time.Second
	for deadline := time.Now().Add(bound); ; {
		found := processes(is)
		if len(found) == 0 {
			return nil
		}
		for _, pid := range found {
			if err := killOne(pid, bound, is); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v could not be ended", found)
		}
	}
}

func killOne(pid int, bound time.Duration, is func(pid int) bool) error {
	p, err := openProcess(pid, func() bool { return is(pid) })
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.signal(unix.SIGKILL); err != nil {
		return err
	}
	_, err = p.wait(context.Background(), bound) // a killed process ends soon, whatever the caller's context
	return err
}

// processes lists the pids of which is says so. Zombies have no environment
// and no arguments, and so don't count.
func processes(is func(pid int) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && is(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (l launch) marks(pid int) bool { return has(pid, "environ", l.variable) }

// has tells whether a process has a word among its arguments ("cmdline") or in
// its environment ("environ").
func has(pid int, where, word string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, where))
	if err != nil {
		return false // gone, or another user's
	}
	return slices.Contains(strings.Split(string(raw), "\x00"), word)
}

func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a file to keep a program's output in: %w", err)
	}
	return os.NewFile(uintptr(fd), "output"), nil
}
