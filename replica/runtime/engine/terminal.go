package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/moby/moby/client"
	"golang.org/x/term"

	"ovs-offline/replica/runtime"
)

// Terminal runs a program in a container on the caller's terminal.
func (e *Engine) Terminal(ctx context.Context, id string, c runtime.Command) (int, error) {
	options := client.ExecCreateOptions{Cmd: c.Argv, TTY: true, AttachStdin: true, AttachStdout: true, AttachStderr: true, Env: settings(c.Env)}
	if name := os.Getenv("TERM"); name != "" {
		options.Env = append(options.Env, "TERM="+name)
	}
	made, err := e.client.ExecCreate(ctx, id, options)
	if err != nil {
		return 0, err
	}
	attached, err := e.client.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		return 0, err
	}
	defer attached.Close()
	if before, err := term.MakeRaw(int(os.Stdin.Fd())); err == nil {
		defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()
	}
	defer e.followSize(ctx, made.ID)()
	if c.Stdin != nil {
		go func() { _, _ = io.Copy(attached.Conn, c.Stdin) }() // ends with the connection
	}
	// podman 4.3 resets the connection if the program ends before it has read all
	// input.
	_, failed := io.Copy(c.Stdout, attached.Reader)
	if failed != nil && !errors.Is(failed, syscall.ECONNRESET) {
		return 0, failed
	}
	ended, err := e.client.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	if err == nil && ended.Running {
		err = failed
	}
	return ended.ExitCode, err
}

// followSize keeps the size of the program's terminal equal to the caller's
// until stop is called.
func (e *Engine) followSize(ctx context.Context, exec string) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			if width, height, err := term.GetSize(int(os.Stdin.Fd())); err == nil {
				_, _ = e.client.ExecResize(ctx, exec, client.ExecResizeOptions{Width: uint(width), Height: uint(height)})
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
