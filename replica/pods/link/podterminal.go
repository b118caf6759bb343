package link

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// inTerminal runs the command in a new terminal, which ends with it: so does all that the
// command leaves in the session of that terminal.
func (r *run) inTerminal(ctx context.Context, words []string) (exit int, err error) {
	command := r.server.Command(words)
	command.Env = append(command.Environ(), "TERM="+r.terminal.Term)
	keyboard, err := startInTerminal(command, r.terminal.Columns, r.terminal.Rows)
	if err != nil {
		return 0, fmt.Errorf("a terminal in the pod: %w", err)
	}
	hungUp := copyAndClose(keyboard, r.channel) // by the near end, which has lost its terminal
	out := startOutput(nil, keyboard, r.channel)
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // ProcessState has the outcome
		close(ended)
	}()
	for running := true; running; {
		select {
		case payload := <-r.sizes:
			_ = resize(keyboard, payload.Columns, payload.Rows) // fails once the terminal has ended
		case <-ended:
			running = false
		case <-hungUp:
			running = false
		case <-ctx.Done():
			running = false
		}
	}
	endSession(command.Process.Pid)
	<-ended
	out.end()
	return exitCode(command), nil
}

// startInTerminal starts a process that leads a session with a new terminal, and returns the
// other end of the terminal. Closing that ends the terminal.
func startInTerminal(command *exec.Cmd, columns, rows uint32) (*os.File, error) {
	keyboard, err := pty.StartWithSize(command, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	if err != nil {
		return nil, err
	}
	return interruptible(keyboard)
}

// interruptible returns a file whose Close and deadlines end a Read, which those of package
// pty do not, in place of one of that package.
func interruptible(file *os.File) (*os.File, error) {
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// resize changes the size of a terminal, whose programs get SIGWINCH.
func resize(keyboard *os.File, columns, rows uint32) error {
	raw, err := keyboard.SyscallConn() // Fd would make Read wait for good
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
	})
	return errors.Join(err, failed)
}

// exitCode returns the exit code of a process as a shell does: 128 and the signal for one
// that a signal ended.
func exitCode(command *exec.Cmd) int {
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return command.ProcessState.ExitCode()
}
