package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"

	"ovs-offline/internal/kube"
)

// useTerminal passes the terminal of this process on to a command: bytes as they are
// typed, and its size whenever that changes. restore puts the terminal back.
func useTerminal(ctx context.Context, command *kube.Command) (restore func(), err error) {
	in, isFile := command.Stdin.(*os.File)
	if !isFile {
		return nil, errors.New("standard input is no terminal")
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	changed <- unix.SIGWINCH // the first size
	command.Sizes = sizes{ctx, int(in.Fd()), changed}
	return func() {
		signal.Stop(changed)
		_ = term.Restore(int(in.Fd()), state) // it was a terminal just now
	}, nil
}

// sizes yields the size of a terminal at each change.
type sizes struct {
	ctx     context.Context
	fd      int
	changed <-chan os.Signal
}

// Next waits for the next change. It returns nil once the context has ended.
func (s sizes) Next() *remotecommand.TerminalSize {
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case <-s.changed:
			if width, height, err := term.GetSize(s.fd); err == nil {
				return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
			}
		}
	}
}
