//go:build linux

package process

import (
	"bytes"
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

// launch is one start of a daemon. A variable in the environment marks all its
// processes, so that they can be found.
type launch struct{ variable string }

func newLaunch() launch {
	return launch{variable: launchMark + "=" + rand.Text()}
}

// run runs cmd until it exits or ctx ends, and returns its output. A daemon with --detach is then ready. After an error, no process of the
// start is left.
func (l launch) run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	// The output goes to a file, not a pipe, because a daemon may keep it open.
	output, err := memoryFile()
	if err != nil {
		return "", err
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	if err = cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		err = errors.Join(err, l.kill()) // its children, too
	}
	text, readErr := io.ReadAll(io.NewSectionReader(output, 0, 1<<20))
	if readErr != nil && err == nil {
		err = fmt.Errorf("reading the output of %s: %w", cmd.Args[0], readErr)
	}
	return string(text), err
}

// kill kills every process that has the mark. A detached daemon leads a session of
// its own and is a child of init, so the environment that it was started with is
// all that identifies it.
func (l launch) kill() error { return killAll(l.isMarked) }

// killAll kills the processes that match, and repeats that until no process matches.
func killAll(matches func(pid int) bool) error {
	const timeout = 2 * time.Second
	for deadline := time.Now().Add(timeout); ; {
		found := processes(matches)
		if len(found) == 0 {
			return nil
		}
		for _, pid := range found {
			// A killed process ends soon, so the caller's context is not needed.
			if _, err := end(context.Background(), pid, func() bool { return matches(pid) }, timeout, unix.SIGKILL); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v could not be ended", found)
		}
	}
}

// processes returns the process IDs that match. Zombies have neither environment
// nor arguments, and never match.
func processes(matches func(pid int) bool) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && matches(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (l launch) isMarked(pid int) bool { return has(pid, "environ", l.variable) }

// has reports whether a process has a word among its arguments ("cmdline") or in its
// environment ("environ"). During an exec both are empty for a moment, which is long on a
// machine under load, or a part of them is missing: has waits for its end, and takes a text
// without the word only if it reads the same text twice.
func has(pid int, where, word string) bool {
	const pause, timeout = time.Millisecond, time.Second
	var before []byte
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		raw, err := readProc(pid, where)
		if err != nil {
			return false // the process has ended, or belongs to another user
		}
		if slices.Contains(strings.Split(string(raw), "\x00"), word) {
			return true
		}
		if len(raw) > 0 {
			if bytes.Equal(raw, before) {
				return false
			}
			before = raw
			continue
		}
		if staysEmpty(pid, where) {
			return false
		}
		time.Sleep(pause)
	}
	return false
}

// staysEmpty reports whether a process has no arguments ("cmdline") or no environment ("environ"),
// and is not in the middle of an exec. Zombies and the kernel's threads have neither, nor a program.
func staysEmpty(pid int, where string) bool {
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
		return true
	}
	stat, err := readProc(pid, "stat")
	if err != nil {
		return true
	}
	// startcode, arg_start, arg_end, env_start and env_end of proc(5), which counts the name as field 2. During an
	// exec they are 0, and env_end is env_start for a moment; startcode is set when both texts are there
	// (create_elf_tables and load_elf_binary in fs/binfmt_elf.c of Linux).
	const first, startCode, argStart = 3, 26, 48
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= argStart+3-first {
		return false
	}
	address := func(field int) uint64 {
		n, _ := strconv.ParseUint(fields[field-first], 10, 64)
		return n
	}
	start := argStart
	if where == "environ" {
		start += 2
	}
	return address(startCode) != 0 && address(argStart+3) != 0 && address(start) >= address(start+1)
}

// readProc returns a file of a process. os.ReadFile takes three times as many system calls, and
// a start reads such a file of each process several times.
func readProc(pid int, name string) ([]byte, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/" + name
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if text = text[:len(text)+n]; n == 0 || len(text) < cap(text) {
			return text, nil
		}
		text = slices.Grow(text, len(text))
	}
}

func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a file for a program's output: %w", err)
	}
	return os.NewFile(uintptr(fd), "output"), nil
}
