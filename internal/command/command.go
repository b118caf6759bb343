// Package command runs one program with an argument list, and keeps what is
// needed to tell a person what went wrong: the arguments, the exit and what the
// program said. Nothing here ever goes through a shell.
package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"ovs-offline/internal/logging"
)

// Command is one run of a program. Argv[0] is the program, found in PATH when
// it holds no slash. Env is the whole environment; nil means the caller's own.
type Command struct {
	Argv  []string
	Env   []string
	Dir   string
	Stdin io.Reader
	// Stdout gets what the program prints, as it comes; nil for Run's result.
	Stdout io.Writer
}

// Error tells of a program that could not be started or did not exit with 0.
type Error struct {
	Argv   []string
	Stderr string // what it said there, whole
	Stdout string // what it had printed until then
	Err    error  // *exec.ExitError, or why it did not start
}

// Error names the program, its exit and the first line of what it said: the
// OVS tools put the reason there, and then say that there was an error.
func (e *Error) Error() string {
	said := firstLine(e.Stderr)
	if said == "" {
		said = firstLine(e.Stdout)
	}
	if said == "" {
		return fmt.Sprintf("%s: %v", shortened(strings.Join(e.Argv, " ")), e.Err)
	}
	return fmt.Sprintf("%s: %v: %s", e.Argv[0], e.Err, said)
}

func (e *Error) Unwrap() error { return e.Err }

// Run runs c to its end and returns what it printed on standard output. When
// ctx ends first the program is killed and the error wraps ctx's.
func Run(ctx context.Context, c Command) ([]byte, error) {
	defer logging.Timed(ctx, "run program", "argv", shortened(strings.Join(c.Argv, " ")))()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin = c.Env, c.Dir, c.Stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout // who takes it may take its time, also after the program's end
	} else {
		cmd.WaitDelay = time.Second // a killed program's child may keep the pipes open
	}
	err := cmd.Run()
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.Bytes(), &Error{Argv: c.Argv, Stderr: stderr.String(), Stdout: stdout.String(), Err: err}
}

// shortened cuts a command that nobody would read to its end.
func shortened(line string) string {
	const most = 500
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most], "") + "..."
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
