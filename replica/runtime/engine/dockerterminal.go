package engine

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

func (d *docker) Terminal(ctx context.Context, id string, command runtime.Command) (int, error) {
	options := client.ExecCreateOptions{Cmd: command.Argv, TTY: true, AttachStdin: true, AttachStdout: true, AttachStderr: true, Env: terminalSettings(command.Env)}
	made, err := d.client.ExecCreate(ctx, id, options)
	if err != nil {
		return 0, err
	}
	attached, err := d.client.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		return 0, err
	}
	defer attached.Close()
	if before, err := term.MakeRaw(int(os.Stdin.Fd())); err == nil {
		defer func() { _ = term.Restore(int(os.Stdin.Fd()), before) }()
	}
	defer d.followSize(ctx, made.ID)()
	if command.Stdin != nil {
		go func() { _, _ = io.Copy(attached.Conn, command.Stdin) }() // ends with the connection
	}
	if _, err := io.Copy(command.Stdout, attached.Reader); err != nil {
		return 0, err
	}
	ended, err := d.client.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	return ended.ExitCode, err
}

// followSize keeps the size of the program's terminal equal to the caller's
// until stop is called.
func (d *docker) followSize(ctx context.Context, exec string) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			if width, height, err := term.GetSize(int(os.Stdin.Fd())); err == nil {
				_, _ = d.client.ExecResize(ctx, exec, client.ExecResizeOptions{Width: uint(width), Height: uint(height)})
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
