package docker

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/moby/moby/client"
	"golang.org/x/term"

	"ovs-offline/replica/runtime"
)

// Terminal runs a program on the caller's terminal.
func (e *Engine) Terminal(ctx context.Context, id string, c runtime.Command) (int, error) {
	options := client.ExecCreateOptions{Cmd: c.Argv, TTY: true, AttachStdin: true, AttachStdout: true, AttachStderr: true, Env: terminalName()}
	for name, value := range c.Env {
		options.Env = append(options.Env, name+"="+value)
	}
	made, err := e.cli.ExecCreate(ctx, id, options)
	if err != nil {
		return 0, err
	}
	attached, err := e.cli.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		return 0, err
	}
	defer attached.Close()
	if before, err := term.MakeRaw(int(os.Stdin.Fd())); err == nil {
		defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()
	}
	defer e.followSize(ctx, made.ID)()
	go func() { _, _ = io.Copy(attached.Conn, c.Stdin) }() // ends with the connection
	if _, err := io.Copy(c.Stdout, attached.Reader); err != nil {
		return 0, err
	}
	ended, err := e.cli.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	return ended.ExitCode, err
}

// followSize keeps the program's terminal as large as the caller's, until the
// function that it returns is called.
func (e *Engine) followSize(ctx context.Context, exec string) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			if width, height, err := term.GetSize(int(os.Stdin.Fd())); err == nil {
				_, _ = e.cli.ExecResize(ctx, exec, client.ExecResizeOptions{Width: uint(width), Height: uint(height)})
			}
			select {
			case <-changed:
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(done)
	}
}
