//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/command"
	"ovs-offline/internal/logging"
	"ovs-offline/replica/runtime/process/namespace"
)

// runInRoot works like command.Run, for a program in the root file system.
func (r *Runtime) runInRoot(ctx context.Context, c command.Command) ([]byte, error) {
	defer logging.Timed(ctx, "run program in root", "root", r.options.Root, "argv", c.Argv)()
	var stdout, stderr bytes.Buffer
	run := &toolRun{command: c, state: make(chan message)}
	if c.Stdout == nil {
		c.Stdout, run.patience = &stdout, time.Second // a child of a killed program may keep the pipes open
	}
	err := ctx.Err()
	if err == nil {
		err = run.open(c.Stdin, c.Stdout, &stderr)
	}
	if err == nil {
		err = run.run(ctx, r)
	}
	err = run.close(err)
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.Bytes(), &command.Error{Argv: c.Argv, Stderr: stderr.String(), Stdout: stdout.String(), Err: err}
}

// toolRun is one run of a tool by the runner.
type toolRun struct {
	command  command.Command
	theirs   []*os.File    // for the runner: the words and the standard streams
	ours     []io.Closer   // our ends of the streams
	copies   []chan error  // of the tool's output and errors; each gets one error or nil
	input    chan struct{} // closed when the tool's input is copied; nil without a copy
	patience time.Duration // how long to wait for the copies once the tool has ended; 0 means no limit
	state    chan message
}

// message is a message of the runner; of kind 0 if the runner has ended.
type message struct {
	kind   byte
	number int
}

// open prepares the files for the runner, and the copies of the streams.
func (t *toolRun) open(stdin io.Reader, stdout, stderr io.Writer) error {
	var text strings.Builder
	for _, word := range slices.Concat(t.command.Env, []string{namespace.End}, t.command.Argv) {
		if strings.ContainsRune(word, 0) {
			return fmt.Errorf("%q: an argument can't hold a NUL", word)
		}
		text.WriteString(word + "\x00")
	}
	words, err := memoryFile()
	if err != nil {
		return err
	}
	t.theirs = append(t.theirs, words)
	if _, err := words.WriteString(text.String()); err != nil {
		return fmt.Errorf("writing a command line: %w", err)
	}
	if _, err := words.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("writing a command line: %w", err)
	}
	if err := t.openInput(stdin); err != nil {
		return err
	}
	for _, w := range []io.Writer{stdout, stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		t.theirs, t.ours = append(t.theirs, write), append(t.ours, read)
		copied := make(chan error, 1)
		t.copies = append(t.copies, copied)
		go func() {
			_, err := io.Copy(w, read)
			_ = read.Close() // the tool gets an error if it writes on
			copied <- err
		}()
	}
	return nil
}

// openInput prepares the standard input. A tool may end without reading all of it.
func (t *toolRun) openInput(stdin io.Reader) error {
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		t.theirs = append(t.theirs, null)
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	t.theirs, t.ours, t.input = append(t.theirs, read), append(t.ours, write), make(chan struct{})
	go func() {
		_, _ = io.Copy(write, stdin)
		_ = write.Close()
		close(t.input)
	}()
	return nil
}

// run makes the runner run the tool, and returns when the tool has ended.
func (t *toolRun) run(ctx context.Context, runtime *Runtime) error {
	ours, theirs, err := sockets()
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }() // the runner then releases the process ID
	t.theirs = append(t.theirs, theirs)
	runner, err := t.send(runtime)
	if err != nil {
		return err
	}
	go t.receive(ours)
	first := <-t.state
	if first.kind == namespace.RunnerFailed {
		return &os.PathError{Op: "fork/exec", Path: t.command.Argv[0], Err: syscall.Errno(first.number)}
	}
	if first.kind != namespace.RunnerStarted {
		return runtime.runnerEndedError(runner)
	}
	last := t.await(ctx, first.number)
	switch {
	case last.kind == namespace.RunnerExited && last.number == 0:
		return nil
	case last.kind == namespace.RunnerExited:
		return fmt.Errorf("exit status %d", last.number)
	case last.kind == namespace.RunnerSignalled:
		return fmt.Errorf("signal: %v", syscall.Signal(last.number))
	}
	return runtime.runnerEndedError(runner)
}

// send sends the files to the runner and closes them.
func (t *toolRun) send(runtime *Runtime) (*runner, error) {
	defer t.closeTheirs()
	var fds []int
	for _, file := range t.theirs {
		fds = append(fds, int(file.Fd()))
	}
	for {
		runner, err := runtime.needRunner()
		if err != nil {
			return nil, err
		}
		if _, _, err = runner.socket.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil); err == nil {
			return runner, nil
		}
		if runtime.isCurrent(runner) {
			return nil, runtime.runnerEndedError(runner)
		}
		// Another tool has replaced the runner meanwhile.
	}
}

// receive passes on the two messages about the tool.
func (t *toolRun) receive(from *net.UnixConn) {
	for range 2 {
		var message message
		text := make([]byte, 32)
		if n, err := from.Read(text); err == nil && n > 1 {
			message.kind = text[0]
			message.number, _ = strconv.Atoi(string(text[1:n]))
		}
		t.state <- message
		if message.kind != namespace.RunnerStarted {
			return
		}
	}
}

// await waits for the end of the tool, which it kills when ctx ends.
func (t *toolRun) await(ctx context.Context, pid int) message {
	select {
	case message := <-t.state:
		return message
	case <-ctx.Done():
		_ = unix.Kill(pid, unix.SIGKILL) // it is the tool's process ID until the socket is closed
		return <-t.state
	}
}

func (t *toolRun) closeTheirs() {
	for _, file := range t.theirs {
		_ = file.Close()
	}
	t.theirs = nil
}

// close waits for the copies of the streams, and returns err or their first error.
func (t *toolRun) close(err error) error {
	t.closeTheirs()
	var limit <-chan time.Time
	if t.patience > 0 {
		limit = time.After(t.patience)
	}
	for _, copied := range t.copies {
		select {
		case failed := <-copied:
			if err == nil {
				err = failed
			}
		case <-limit:
			t.closeOurs()
			limit = nil
			<-copied
		}
	}
	if t.input != nil {
		select {
		case <-t.input:
		case <-limit:
		}
	}
	t.closeOurs()
	return err
}

func (t *toolRun) closeOurs() {
	for _, closer := range t.ours {
		_ = closer.Close() // some are closed already
	}
}
