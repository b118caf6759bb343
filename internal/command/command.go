// Package command runs programs. Its errors hold the arguments, the exit status and
// the output of the program. It uses no shell.
package command

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"ovs-offline/internal/logging"
)

// Command is one run of a program. Argv[0] is the program, found in PATH unless it
// contains a slash. Env is the whole environment; nil means the caller's.
type Command struct {
	Argv  []string
	Env   []string
	Dir   string
	Stdin io.Reader
	// Stdout receives the standard output while the program runs; with nil, Run
	// returns it.
	Stdout io.Writer
	// Stderr receives the standard error as well, while the program runs; nil for none.
	Stderr io.Writer
	// Group makes the program the leader of a process group, which is killed as a whole
	// when the context ends. The program can't read from a terminal then.
	Group bool
}

// Error is the error of a program that did not start, or whose exit status is not 0.
type Error struct {
	Argv   []string
	Stderr string // the whole standard error
	Stdout string // the standard output until it ended
	Err    error  // *exec.ExitError, or the reason that it did not start
}

// Error returns the program, its exit status and the first line of its output: the
// OVS tools print the reason there.
func (e *Error) Error() string {
	reason := cmp.Or(firstLine(e.Stderr), firstLine(e.Stdout))
	if reason == "" {
		return fmt.Sprintf("%s: %v", shortened(strings.Join(e.Argv, " ")), e.Err)
	}
	return fmt.Sprintf("%s: %v: %s", e.Argv[0], e.Err, reason)
}

func (e *Error) Unwrap() error { return e.Err }

// outputDelay is how long the end of the output of a program is awaited once it has ended:
// on a busy machine, its output may be read seconds later.
const outputDelay = 30 * time.Second

// Run runs a command to its end and returns its standard output. When ctx ends first, Run
// kills the program, and the error wraps the error of ctx.
func Run(ctx context.Context, command Command) ([]byte, error) {
	defer logging.Timed(ctx, "run program", "argv", shortened(strings.Join(command.Argv, " ")))()
	cmd := exec.CommandContext(ctx, command.Argv[0], command.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin = command.Env, command.Dir, command.Stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if command.Stdout != nil {
		cmd.Stdout = command.Stdout // its reader may be slow, even after the program has ended
	} else {
		cmd.WaitDelay = outputDelay
	}
	if command.Stderr != nil {
		cmd.Stderr = io.MultiWriter(&stderr, command.Stderr)
	}
	if command.Group {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	kill := cmd.Cancel
	cmd.Cancel = func() error {
		cmd.WaitDelay = min(cmd.WaitDelay, time.Second) // a child of a killed program may keep the pipes open
		return kill()
	}
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.Bytes(), &Error{Argv: command.Argv, Stderr: stderr.String(), Stdout: stdout.String(), Err: err}
}

// shortened cuts a long command line.
func shortened(line string) string {
	const limit = 500
	if len(line) <= limit {
		return line
	}
	return strings.ToValidUTF8(line[:limit], "") + "..."
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
