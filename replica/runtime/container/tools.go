package container

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/command"
	"ovs-offline/internal/logging"
	"ovs-offline/replica/runtime"
)

//go:embed runner.sh
var runner string

// Tool runs a program of the image in the tools' container.
func (r *Runtime) Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error) {
	var stdout bytes.Buffer
	err := r.ToolTo(ctx, runDir, stdin, &stdout, argv...)
	var failed *command.Error
	if errors.As(err, &failed) {
		failed.Stdout = stdout.String()
	}
	return stdout.Bytes(), err
}

// ToolTo works like Tool, but writes the standard output to stdout while the program
// runs.
func (r *Runtime) ToolTo(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv ...string) error {
	defer logging.Timed(ctx, "run tool in container", "argv", argv)()
	if _, err := r.needTools(ctx); err != nil {
		return &command.Error{Argv: argv, Err: err}
	}
	var stderr bytes.Buffer
	exit, err := r.tools.run(ctx, runtime.Command{Argv: argv, Env: environment(runDir, runDir), Stdin: stdin, Stdout: stdout, Stderr: &stderr})
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit status %d", exit)
	}
	if err != nil {
		return &command.Error{Argv: argv, Stderr: stderr.String(), Err: err}
	}
	return nil
}

// Shares returns the usual folders of the image.
func (r *Runtime) Shares(string) []string { return runtime.UsualShares() }

// ReadFile returns a file of the image.
func (r *Runtime) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return r.Tool(ctx, "/tmp", nil, "cat", path)
}

// Exec runs a program for the user: on a terminal through the engine, else as a tool.
func (r *Runtime) Exec(ctx context.Context, command runtime.Command) (int, error) {
	if !command.Terminal || !r.tools.alive() {
		return r.tools.Exec(ctx, command)
	}
	return r.engine.Terminal(ctx, r.name(roleTools), command)
}

// needTools returns the ID of the tools' container, which it starts if necessary.
func (r *Runtime) needTools(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.toolsID != "" {
		return r.toolsID, nil
	}
	daemon := runtime.Daemon{Role: roleTools}
	container, err := r.find(ctx, roleTools)
	if err == nil && container.Running && r.tools.alive() {
		r.toolsID = container.ID
		return container.ID, nil
	}
	if err := r.makeScratch(); err != nil {
		return "", err
	}
	spec := r.spec(roleTools)
	spec.Env = environment("/tmp", "/tmp")
	spec.Command = []string{"bash", "-c", runner, "runner", r.tools.folder}
	r.toolsID, err = r.launch(ctx, spec, daemon, r.tools.alive)
	return r.toolsID, err
}

// makeScratch makes an empty folder for requests, and the folders to mount.
func (r *Runtime) makeScratch() error {
	if err := os.RemoveAll(r.tools.folder); err != nil {
		return err
	}
	for _, dir := range append([]string{r.tools.folder}, r.workdir.RuntimeFolders()...) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := unix.Mkfifo(r.tools.requests(), 0o600); err != nil {
		return fmt.Errorf("%s: %w", r.tools.requests(), err)
	}
	return nil
}
