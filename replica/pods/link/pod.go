package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"ovs-offline/replica/runtime"
)

// pod is the near end of the link to one pod.
type pod struct {
	name       string        // for messages
	connecting chan struct{} // has an element while connect connects

	mu   sync.Mutex
	conn *connection // nil before connect
}

func newPod(name string) *pod { return &pod{name: name, connecting: make(chan struct{}, 1)} }

// connection is a connection to a far end.
type connection struct {
	*ssh.Client
	transport *transport
	ended     chan struct{} // closed when the connection is
}

// connect connects to the pod unless it is connected.
func (p *pod) connect(ctx context.Context, open func() (io.ReadWriteCloser, error)) error {
	select {
	case p.connecting <- struct{}{}:
		defer func() { <-p.connecting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.connected() != nil {
		return nil
	}
	stream, err := open()
	if err != nil {
		return err
	}
	transport := newTransport(stream)
	limited, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	defer context.AfterFunc(limited, func() { transport.Close() })()
	conn, channels, requests, err := ssh.NewClientConn(transport, "", nearConfig())
	if err != nil {
		transport.Close()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			err = fmt.Errorf("no answer for %s", silence)
		}
		return p.connectionError(transport, err)
	}
	connection := &connection{ssh.NewClient(conn, channels, requests), transport, make(chan struct{})}
	go keepAlive(connection, transport, pause, silence)
	go func() {
		_ = connection.Wait() // transport has the reason
		close(connection.ended)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = connection
	return nil
}

// connected returns the connection, nil if it was lost or never made. The end of the stream counts
// before the sockets and commands that depend on it end.
func (p *pod) connected() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || p.conn.transport.cause.Load() != nil {
		return nil
	}
	select {
	case <-p.conn.ended:
		return nil
	default:
		return p.conn
	}
}

func (p *pod) close() {
	if connection := p.connected(); connection != nil {
		connection.Close()
	}
}

// ErrLost is wrapped when the connection to a pod was lost, or could not be made.
var ErrLost = errors.New("the connection is lost")

// connectionError returns the error of a connection that has ended: with the cause where it has one.
func (p *pod) connectionError(transport *transport, err error) error {
	if cause := transport.cause.Load(); cause != nil && *cause != io.EOF && *cause != net.ErrClosed {
		err = *cause
	} else if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", p.name, ErrLost)
	}
	return fmt.Errorf("%s: %w: %w", p.name, ErrLost, err)
}

// end ends a connection that was lost, or whose other end is not the far end of a link, and returns
// the error.
func (p *pod) end(conn *connection) error {
	conn.Close()
	<-conn.ended
	return p.connectionError(conn.transport, nil)
}

// ask calls a function with the connection, and returns its error, or the error of ctx if that ends
// first: a pod may be silent. The function goes on then.
func (p *pod) ask(ctx context.Context, do func(conn *connection) error) error {
	conn := p.connected()
	if conn == nil {
		return fmt.Errorf("%s: %w", p.name, ErrLost)
	}
	done := make(chan error, 1)
	go func() { done <- do(conn) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
	}
	var refused *ssh.OpenChannelError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", p.name, refused.Message)
	case errors.Is(err, errRun):
		return fmt.Errorf("%s: %w", p.name, err)
	case err != nil:
		return p.end(conn)
	}
	return nil
}

// list returns the sockets of the replica of a workdir, by the name of its folder.
func (p *pod) list(ctx context.Context, workdir string) ([]socket, error) {
	found := make(chan []socket, 1)
	err := p.ask(ctx, func(conn *connection) error {
		channel, requests, err := conn.OpenChannel(channelList, []byte(workdir))
		if err != nil {
			return err
		}
		defer channel.Close()
		go ssh.DiscardRequests(requests)
		var list []socket
		err = json.NewDecoder(io.LimitReader(channel, maxList)).Decode(&list)
		found <- list
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-found, nil
}

// forward connects a local connection to a socket in the pod, until one of them ends.
func (p *pod) forward(ctx context.Context, local net.Conn, path string) {
	if conn := p.connected(); conn != nil {
		if there, err := conn.DialContext(ctx, "unix", path); err == nil {
			join(there, local)
		}
	}
	local.Close() // the client sees the end of its connection
}

var (
	// errOutput is wrapped when what a command printed can't be written.
	errOutput = errors.New("writing what the command printed")
	// errRun is wrapped when the far end could not run a command.
	errRun = errors.New("cannot run the command in the pod")
)

// run runs a command line of ovs-offline with streams and returns its exit code.
func (p *pod) run(parent context.Context, args []string, c runtime.Command) (exit int, err error) {
	command, err := joinWords(args)
	if err != nil {
		return 0, err
	}
	var terminal *terminal
	if c.Terminal {
		if terminal, err = takeTerminal(&c); err != nil {
			return 0, err
		}
		defer func() { terminal.giveBack(err) }()
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	out := &printed{failed: cancel}
	defer out.end()
	c.Stdout, c.Stderr = printedTo{out, c.Stdout}, printedTo{out, c.Stderr}
	exited := make(chan int, 1)
	err = p.ask(ctx, func(conn *connection) error {
		exit, err := conn.run(ctx, command, c, terminal)
		exited <- exit
		return err
	})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOutput):
		return 0, cause
	case errors.Is(err, ErrLost):
		return 0, fmt.Errorf("%w while \"ovs-offline %s\" ran in it", err, strings.Join(args, " "))
	case err != nil:
		return 0, err
	}
	return <-exited, nil
}

// run runs a command until it ends or ctx does.
func (c *connection) run(ctx context.Context, command string, streams runtime.Command, terminal *terminal) (exit int, err error) {
	session, err := c.NewSession()
	if err != nil {
		return 0, err
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { session.Close() })()
	session.Stdout, session.Stderr = streams.Stdout, streams.Stderr
	input, err := session.StdinPipe()
	if err != nil {
		return 0, err
	}
	if terminal != nil {
		columns, rows := terminal.size()
		if err := session.RequestPty(terminalName, rows, columns, nil); err != nil {
			return 0, err
		}
		go terminal.follow(session)
	}
	if err := session.Start(command); err != nil {
		return 0, err
	}
	go func() {
		if streams.Stdin != nil {
			_, _ = io.Copy(input, streams.Stdin) // an error is the end of either
		}
		input.Close()
	}()
	err = session.Wait()
	var exited *ssh.ExitError
	switch {
	case !errors.As(err, &exited):
		return 0, err
	case exited.Signal() == failed:
		return 0, fmt.Errorf("%w: %s", errRun, exited.Msg())
	}
	return exited.ExitStatus(), nil
}

// printed passes on what a run prints until it ends.
type printed struct {
	mu     sync.Mutex
	ended  bool
	failed func(error) // is called if that can't be written
}

func (p *printed) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// printedTo is a writer of printed.
type printedTo struct {
	*printed
	to io.Writer
}

// Write writes what is printed before the end. It returns no error.
func (p printedTo) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		if _, err := p.to.Write(text); err != nil {
			p.ended = true
			p.failed(fmt.Errorf("%w: %w", errOutput, err))
		}
	}
	return len(text), nil
}
