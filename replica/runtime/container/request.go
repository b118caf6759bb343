package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
)

// Tools runs programs in the tools' container through its runner (runner.sh). It
// needs no engine, only the folder that it shares with the runner.
type Tools struct {
	folder string
	image  string // for messages; may be empty
}

// NewTools returns a Tools; scratch is the folder that it shares with the runner.
func NewTools(scratch string) *Tools { return &Tools{folder: scratch} }

// Exec runs a program for the user, not on a terminal.
func (t *Tools) Exec(ctx context.Context, command runtime.Command) (int, error) {
	if !t.alive() {
		return 0, fmt.Errorf("%w: its tools' container does not answer at %s", runtime.ErrNotRunning, t.requests())
	}
	return t.run(ctx, command)
}

func (t *Tools) requests() string { return filepath.Join(t.folder, "requests") }

// alive reports whether the runner reads requests: a pipe without a reader can't be
// opened for writing alone.
func (t *Tools) alive() bool {
	fd, err := t.open()
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

func (t *Tools) open() (int, error) {
	return unix.Open(t.requests(), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// ask writes a request.
func (t *Tools) ask(verb, name string) error {
	fd, err := t.open()
	if err != nil {
		return fmt.Errorf("the tools' container does not listen: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	// A short line is written atomically even if there are other writers: pipe(7).
	if _, err := unix.Write(fd, []byte(verb+" "+name+"\n")); err != nil {
		return fmt.Errorf("the tools' container does not listen: %w", err)
	}
	return nil
}

// run makes the runner run a command and returns the exit code.
func (t *Tools) run(ctx context.Context, command runtime.Command) (int, error) {
	request := &request{tools: t, name: rand.Text(), command: command}
	request.dir = filepath.Join(t.folder, request.name)
	if err := request.prepare(); err != nil {
		return 0, errors.Join(err, os.RemoveAll(request.dir))
	}
	exit, err := request.run(ctx)
	return exit, errors.Join(err, os.RemoveAll(request.dir))
}

// request is a program that the runner runs.
type request struct {
	tools   *Tools
	name    string
	dir     string
	command runtime.Command
	writing atomic.Int32 // outputs that are being written to the caller
}

// The names of a request's pipes.
const (
	pipeIn   = "in"
	pipeOut  = "out"
	pipeErr  = "err"
	pipeExit = "exit"
)

func (q *request) prepare() error {
	if err := os.Mkdir(q.dir, 0o700); err != nil {
		return err
	}
	text, err := requestWords(q.command)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(q.dir, "words"), text, 0o600); err != nil {
		return err
	}
	for _, name := range []string{pipeIn, pipeOut, pipeErr, pipeExit} {
		if err := unix.Mkfifo(filepath.Join(q.dir, name), 0o600); err != nil {
			return fmt.Errorf("creating a pipe for %s: %w", q.command.Argv[0], err)
		}
	}
	return nil
}

// run runs the program, and returns when it has ended and all its output is copied.
func (q *request) run(ctx context.Context) (int, error) {
	// The pipe is opened for reading and writing, so that it has a reader when the
	// runner writes to it.
	exit, err := os.OpenFile(filepath.Join(q.dir, pipeExit), os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = exit.Close() }()
	if err := q.tools.ask("run", q.name); err != nil {
		return 0, err
	}
	copied := make(chan error, 2)
	go func() { copied <- q.copyFrom(pipeOut, q.command.Stdout) }()
	go func() { copied <- q.copyFrom(pipeErr, q.command.Stderr) }()
	go q.copyTo(pipeIn, q.command.Stdin)
	code, err := q.await(ctx, exit)
	if err != nil {
		_ = q.tools.ask("kill", q.name) // fails where the runner has ended, and the program with it
		q.release()
	}
	for range 2 {
		err = errors.Join(err, q.finish(copied))
	}
	return code, err
}

// await waits for the exit code, the end of ctx or the end of the runner.
func (q *request) await(ctx context.Context, exit *os.File) (int, error) {
	const interval = 200 * time.Millisecond
	defer context.AfterFunc(ctx, func() { _ = exit.SetReadDeadline(time.Now()) })()
	answer := make([]byte, 32)
	for alive := true; ; alive = q.tools.alive() {
		_ = exit.SetReadDeadline(time.Now().Add(interval))
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if n, err := exit.Read(answer); err == nil {
			return q.exitCode(strings.TrimSpace(string(answer[:n])))
		}
		if !alive {
			return 0, errors.New("the tools' container has ended")
		}
	}
}

func (q *request) exitCode(answer string) (int, error) {
	if answer == "missing" {
		image := strings.TrimSpace("the replica's image " + q.tools.image)
		return 0, fmt.Errorf("%s is %w in %s: build one that has it (ovs-offline image build), or choose another with --image (%w)",
			q.command.Argv[0], runtime.ErrNotInstalled, image, exec.ErrNotFound)
	}
	code, err := strconv.Atoi(answer)
	if err != nil {
		return 0, fmt.Errorf("running %s: %q instead of an exit code", q.command.Argv[0], answer)
	}
	return code, nil
}

// finish waits for a copy to end. A process that the program left running may hold the
// pipe open: finish waits only a second for that, but without limit for the caller's
// writer.
func (q *request) finish(copied <-chan error) error {
	const timeout = time.Second
	for {
		select {
		case err := <-copied:
			return err
		case <-time.After(timeout):
			if q.writing.Load() == 0 {
				return nil
			}
		}
	}
}

// countingWriter counts the calls of Write that have not returned.
type countingWriter struct {
	io.Writer
	active *atomic.Int32
}

func (w countingWriter) Write(data []byte) (int, error) {
	w.active.Add(1)
	defer w.active.Add(-1)
	return w.Writer.Write(data)
}

// copyFrom copies the program's output until it and its children have closed the pipe.
func (q *request) copyFrom(pipe string, to io.Writer) error {
	file, err := os.Open(filepath.Join(q.dir, pipe)) // waits until the runner opens it
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	if to == nil {
		to = io.Discard
	}
	_, err = io.Copy(countingWriter{to, &q.writing}, file)
	return err
}

// copyTo copies the program's input. A program may end without reading all of it.
func (q *request) copyTo(pipe string, from io.Reader) {
	file, err := os.OpenFile(filepath.Join(q.dir, pipe), os.O_WRONLY, 0) // waits until the runner opens it
	if err != nil {
		return
	}
	if from != nil {
		_, _ = io.Copy(file, from)
	}
	_ = file.Close()
}

// release ends the copies that wait for the runner to open its end of a pipe:
// opening a pipe for reading and writing never waits, and is the other end for them.
func (q *request) release() {
	for _, name := range []string{pipeIn, pipeOut, pipeErr} {
		file, err := os.OpenFile(filepath.Join(q.dir, name), os.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			_ = file.Close()
		}
	}
}

// requestWords returns a command in the notation that the runner reads.
func requestWords(command runtime.Command) ([]byte, error) {
	var text strings.Builder
	for name, value := range command.Env {
		fmt.Fprintf(&text, "%s=%s\x00", name, value)
	}
	text.WriteString("--\x00")
	for _, word := range command.Argv {
		if strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("%q: an argument can't hold a NUL", word)
		}
		text.WriteString(word + "\x00")
	}
	return []byte(text.String()), nil
}
