package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminalName is the TERM of commands with a terminal, as container runtimes set it: images
// know it, and not what each user's terminal is called.
const terminalName = "xterm"

// readSizes passes on the sizes that the near end sends, until it closes its side of the
// stream. For a run without a terminal it sends nothing.
func readSizes(ctx context.Context, stream net.Conn, sizes chan<- size) {
	for {
		var s size
		if readJSON(stream, frameSize, &s) != nil {
			return
		}
		select {
		case sizes <- s:
		case <-ctx.Done():
			return
		}
	}
}

// runInTerminal runs a command in a new terminal, which ends with it: so does all that the
// command leaves in the session of that terminal.
func (e *end) runInTerminal(ctx context.Context, stream net.Conn, r run, sizes <-chan size) (exit int, err error) {
	in, err := e.awaitInput(ctx, r.Number)
	if err != nil {
		return 0, err
	}
	c := e.server.Command(r.Args)
	c.Env = append(c.Environ(), "TERM="+terminalName)
	keyboard, err := startInTerminal(c, *r.Terminal)
	if err != nil {
		in.Close()
		return 0, fmt.Errorf("a terminal in the pod: %w", err)
	}
	hungUp := feed(ctx, keyboard, in) // by the near end, which has lost its terminal
	out := startOutput(nil, keyboard, &frames{stream: stream}, frameOut)
	ended := make(chan struct{})
	go func() {
		_ = c.Wait() // ProcessState has the outcome
		close(ended)
	}()
	for running := true; running; {
		select {
		case s := <-sizes:
			_ = resize(keyboard, s) // fails once the terminal has ended
		case <-ended:
			running = false
		case <-hungUp:
			running = false
		case <-ctx.Done():
			running = false
		}
	}
	if ctx.Err() != nil {
		stream.Close() // nothing reads the output
	}
	endSession(c.Process.Pid)
	<-ended
	out.end()
	return exitCode(c), nil
}

// startInTerminal starts a process that leads a session with a new terminal, and returns the
// other end of the terminal. Closing that ends the terminal.
func startInTerminal(c *exec.Cmd, s size) (*os.File, error) {
	keyboard, err := pty.StartWithSize(c, &pty.Winsize{Cols: s.Columns, Rows: s.Rows})
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
func resize(keyboard *os.File, s size) error {
	raw, err := keyboard.SyscallConn() // Fd would make Read wait for good
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: s.Columns, Row: s.Rows})
	})
	return errors.Join(err, failed)
}

// exitCode returns the exit code of a process as a shell does: 128 and the signal for one
// that a signal ended.
func exitCode(c *exec.Cmd) int {
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.ProcessState.ExitCode()
}
