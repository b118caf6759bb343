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

// Tools is the way to the runner of a replica's tools. It needs no engine, only
// the folder that it shares with the runner.
type Tools struct {
	folder string
	image  string // for messages; may be empty
}

// NewTools makes one; scratch is that of Options.
func NewTools(scratch string) *Tools { return &Tools{folder: scratch} }

// Exec runs a program for a person, but not on a terminal.
func (t *Tools) Exec(ctx context.Context, c runtime.Command) (int, error) {
	if !t.alive() {
		return 0, fmt.Errorf("%w: its container of tools does not answer at %s: start one with: ovs-offline start", runtime.ErrNotRunning, t.requests())
	}
	return t.run(ctx, c)
}

func (t *Tools) requests() string { return filepath.Join(t.folder, "requests") }

// alive tells whether somebody reads the requests: a pipe without a reader
// can't be opened for writing alone.
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

// ask writes one request.
func (t *Tools) ask(verb, name string) error {
	fd, err := t.open()
	if err != nil {
		return fmt.Errorf("the container of tools does not listen: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	// So short a line goes in one piece, whoever else writes: pipe(7).
	if _, err := unix.Write(fd, []byte(verb+" "+name+"\n")); err != nil {
		return fmt.Errorf("the container of tools does not listen: %w", err)
	}
	return nil
}

// run has the runner run c and returns its exit code.
func (t *Tools) run(ctx context.Context, c runtime.Command) (int, error) {
	q := &request{tools: t, name: rand.Text(), command: c}
	q.dir = filepath.Join(t.folder, q.name)
	if err := q.prepare(); err != nil {
		return 0, errors.Join(err, os.RemoveAll(q.dir))
	}
	exit, err := q.run(ctx)
	return exit, errors.Join(err, os.RemoveAll(q.dir))
}

// request is one program that the runner runs.
type request struct {
	tools   *Tools
	name    string
	dir     string
	command runtime.Command
	handing atomic.Int32 // outputs that are being handed to who asked
}

// The pipes of a request, as the runner calls them. The one for the input is an
// empty file where there is none.
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
	said, err := words(q.command)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(q.dir, "words"), said, 0o600); err != nil {
		return err
	}
	pipes := []string{pipeOut, pipeErr, pipeExit}
	if q.command.Stdin == nil {
		if err := os.WriteFile(filepath.Join(q.dir, pipeIn), nil, 0o600); err != nil {
			return err
		}
	} else {
		pipes = append(pipes, pipeIn)
	}
	for _, name := range pipes {
		if err := unix.Mkfifo(filepath.Join(q.dir, name), 0o600); err != nil {
			return fmt.Errorf("a pipe for %s: %w", q.command.Argv[0], err)
		}
	}
	return nil
}

// run returns when the program has ended and all that it printed was copied.
func (q *request) run(ctx context.Context) (int, error) {
	// Opened both ways it has a reader whenever the runner writes to it.
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
	if q.command.Stdin != nil {
		go q.copyTo(pipeIn, q.command.Stdin)
	}
	code, err := q.await(ctx, exit)
	if err != nil {
		_ = q.tools.ask("kill", q.name) // fails where the runner is gone, and the program with it
		q.release()
	}
	for range 2 {
		err = errors.Join(err, q.finish(copied))
	}
	return code, err
}

// await waits for the exit code, for the end of ctx or for that of the runner.
func (q *request) await(ctx context.Context, exit *os.File) (int, error) {
	told := make(chan string, 1)
	go func() {
		answer := make([]byte, 32)
		n, _ := exit.Read(answer) // ends with the file's closing at the latest
		told <- strings.TrimSpace(string(answer[:n]))
	}()
	const between = 200 * time.Millisecond
	alive := time.NewTicker(between)
	defer alive.Stop()
	for {
		select {
		case answer := <-told:
			return q.exitCode(answer)
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-alive.C:
			if q.tools.alive() {
				continue
			}
			select {
			case answer := <-told:
				return q.exitCode(answer)
			default:
				return 0, errors.New("the container of tools has ended")
			}
		}
	}
}

func (q *request) exitCode(answer string) (int, error) {
	if answer == "missing" {
		image := strings.TrimSpace("the replica's image " + q.tools.image)
		return 0, fmt.Errorf("%s is %w in %s: build one that has it (ovs-offline build), or choose another with --image (%w)",
			q.command.Argv[0], runtime.ErrNotInstalled, image, exec.ErrNotFound)
	}
	code, err := strconv.Atoi(answer)
	if err != nil {
		return 0, fmt.Errorf("running %s: %q instead of an exit code", q.command.Argv[0], answer)
	}
	return code, nil
}

// finish waits for a copy. Something that the program left running may hold the
// pipe open: that is waited for only so long, but who takes the output may take
// its time.
func (q *request) finish(copied <-chan error) error {
	const bound = time.Second
	for {
		select {
		case err := <-copied:
			return err
		case <-time.After(bound):
			if q.handing.Load() == 0 {
				return nil
			}
		}
	}
}

// handOver tells while something is being handed over.
type handOver struct {
	io.Writer
	now *atomic.Int32
}

func (h handOver) Write(p []byte) (int, error) {
	h.now.Add(1)
	defer h.now.Add(-1)
	return h.Writer.Write(p)
}

// copyFrom copies what the program writes, until it and its children have
// closed the pipe.
func (q *request) copyFrom(pipe string, to io.Writer) error {
	f, err := os.Open(filepath.Join(q.dir, pipe)) // waits for the runner
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if to == nil {
		to = io.Discard
	}
	_, err = io.Copy(handOver{to, &q.handing}, f)
	return err
}

// copyTo gives the program its input. One that ends without reading it all is
// no error.
func (q *request) copyTo(pipe string, from io.Reader) {
	f, err := os.OpenFile(filepath.Join(q.dir, pipe), os.O_WRONLY, 0) // waits for the runner
	if err != nil {
		return
	}
	_, _ = io.Copy(f, from)
	_ = f.Close()
}

// release lets go whatever still waits for a runner that never came: opening a
// pipe both ways never waits, and gives the waiting end its other one.
func (q *request) release() {
	for _, name := range []string{pipeIn, pipeOut, pipeErr} {
		f, err := os.OpenFile(filepath.Join(q.dir, name), os.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			_ = f.Close()
		}
	}
}

// words are what the runner reads of a command.
func words(c runtime.Command) ([]byte, error) {
	var b strings.Builder
	for name, value := range c.Env {
		fmt.Fprintf(&b, "%s=%s\x00", name, value)
	}
	b.WriteString("--\x00")
	for _, word := range c.Argv {
		if strings.ContainsRune(word, 0) {
			return nil, fmt.Errorf("%q: an argument can't hold a NUL", word)
		}
		b.WriteString(word + "\x00")
	}
	return []byte(b.String()), nil
}
