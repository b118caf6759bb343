package container

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
)

//go:embed runner.sh
var runner string

// Tool runs a program of the image in the container of tools.
func (r *Runtime) Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error) {
	if len(argv) == 0 {
		return nil, &command.Error{Argv: []string{"?"}, Err: errors.New("no program named")}
	}
	if _, err := r.needTools(ctx); err != nil {
		return nil, &command.Error{Argv: argv, Err: err}
	}
	var stdout, stderr bytes.Buffer
	exit, err := r.request(ctx, runtime.Command{Argv: argv, Env: environment(runDir, runDir), Stdin: stdin, Stdout: &stdout, Stderr: &stderr})
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit status %d", exit)
	}
	if err != nil {
		return stdout.Bytes(), &command.Error{Argv: argv, Stderr: stderr.String(), Stdout: stdout.String(), Err: err}
	}
	return stdout.Bytes(), nil
}

// Exec runs a program for a person: on a terminal by the engine, which knows
// terminals, else as a tool.
func (r *Runtime) Exec(ctx context.Context, c runtime.Command) (int, error) {
	if !r.toolsAlive() {
		return 0, fmt.Errorf("%w in %s: its container %s is not there: start one with: ovs-offline start", runtime.ErrNotRunning, r.options.Workdir, r.name(roleTools))
	}
	if !c.Terminal {
		return r.request(ctx, c)
	}
	return r.options.Engine.Terminal(ctx, r.name(roleTools), c)
}

// needTools returns the id of the container of tools, which it makes where
// there is none.
func (r *Runtime) needTools(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.toolsID != "" {
		return r.toolsID, nil
	}
	d := runtime.Daemon{Role: roleTools}
	c, err := r.find(ctx, roleTools)
	if err == nil && c.Running && r.toolsAlive() {
		r.toolsID = c.ID
		return c.ID, nil
	}
	if err := r.makeScratch(); err != nil {
		return "", err
	}
	spec := r.spec(roleTools)
	spec.Relabel = true // those that join it get its label
	spec.Env = environment("/tmp", "/tmp")
	spec.Command = []string{"bash", "-c", runner, "runner", r.options.Scratch}
	r.toolsID, err = r.launch(ctx, spec, d, r.toolsAlive)
	return r.toolsID, err
}

// makeScratch makes the folder of requests anew, and all that is mounted.
func (r *Runtime) makeScratch() error {
	if err := os.RemoveAll(r.options.Scratch); err != nil {
		return err
	}
	for _, dir := range append([]string{r.options.Scratch}, r.options.Folders...) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := unix.Mkfifo(r.requests(), 0o600); err != nil {
		return fmt.Errorf("%s: %w", r.requests(), err)
	}
	return nil
}

func (r *Runtime) requests() string { return filepath.Join(r.options.Scratch, "requests") }

// toolsAlive tells whether somebody reads the requests: a pipe without a reader
// can't be opened for writing alone.
func (r *Runtime) toolsAlive() bool {
	fd, err := unix.Open(r.requests(), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// ask writes one request.
func (r *Runtime) ask(verb, name string) error {
	fd, err := unix.Open(r.requests(), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
