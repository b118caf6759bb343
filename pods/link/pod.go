package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"ovs-offline/replica/runtime"
)

// pod is the near end of the link to one pod.
type pod struct {
	name string // for messages

	mu      sync.Mutex
	session *yamux.Session // nil before connect
	stream  *noticing
}

// connect connects to the pod unless it is connected.
func (p *pod) connect(ctx context.Context, open func(ctx context.Context) (io.ReadWriteCloser, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil && !p.session.IsClosed() {
		return nil
	}
	stream, err := open(ctx)
	if err != nil {
		return err
	}
	noticed := &noticing{ReadWriteCloser: stream}
	session, err := yamux.Client(noticed, config())
	if err != nil {
		stream.Close()
		return err
	}
	p.session, p.stream = session, noticed
	return nil
}

// isLost reports whether the connection was lost, or never made.
func (p *pod) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session == nil || p.session.IsClosed()
}

func (p *pod) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.Close()
	}
}

// noticing is a stream that keeps the error with which reading ended.
type noticing struct {
	io.ReadWriteCloser
	err atomic.Pointer[error]
}

// Read reads from the stream.
func (n *noticing) Read(p []byte) (int, error) {
	count, err := n.ReadWriteCloser.Read(p)
	if err != nil {
		n.err.CompareAndSwap(nil, &err)
	}
	return count, err
}

// ErrLost is wrapped when the connection to a pod was lost, or could not be made.
var ErrLost = errors.New("the connection is lost")

// lost returns the error of a request that the pod did not answer: with the cause where
// the connection has one.
func (p *pod) lost(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cause := p.stream.err.Load(); cause != nil && !errors.Is(*cause, io.EOF) {
		err = *cause
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, yamux.ErrSessionShutdown) {
		return fmt.Errorf("%s: %w", p.name, ErrLost)
	}
	return fmt.Errorf("%s: %w: %w", p.name, ErrLost, err)
}

// request sends a request and returns its stream, which ends with ctx, even if the pod does
// not answer.
func (p *pod) request(ctx context.Context, q request) (stream *yamux.Stream, end func(), err error) {
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	stream, err = session.OpenStream()
	if err != nil {
		return nil, nil, p.lost(err)
	}
	stop := context.AfterFunc(ctx, func() {
		stream.Close()                          // the far end reads that
		stream.SetReadDeadline(time.Unix(0, 0)) // Close lets the near end read on
	})
	end = func() {
		stop()
		stream.Close()
	}
	if err := writeJSON(stream, frameRequest, q); err != nil {
		end()
		return nil, nil, p.lost(err)
	}
	return stream, end, nil
}

// list returns the sockets of the replica of a workdir, by the name of its folder.
func (p *pod) list(ctx context.Context, workdir string) ([]socket, error) {
	stream, end, err := p.request(ctx, request{List: &workdir})
	if err != nil {
		return nil, err
	}
	defer end()
	var r reply
	err = readJSON(stream, frameReply, &r)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, p.lost(err)
	case r.Error != "":
		return nil, fmt.Errorf("%s: %s", p.name, r.Error)
	}
	return r.Sockets, nil
}

// carry connects a local connection to a socket in the pod, until one of them ends.
func (p *pod) carry(ctx context.Context, local net.Conn, s socket) {
	defer local.Close()
	stream, end, err := p.request(ctx, request{Dial: &s})
	if err != nil {
		return // the local client sees the end of its connection
	}
	defer end()
	go func() {
		_, _ = io.Copy(stream, local) // what the client asks need not wait for the reply
		stream.Close()
	}()
	var r reply
	if readJSON(stream, frameReply, &r) == nil && r.Error == "" {
		_, _ = io.Copy(local, stream) // an error is the end of either
	}
}

// run runs a command line of ovs-offline with streams and returns its exit code.
func (p *pod) run(ctx context.Context, args []string, c runtime.Command) (exit int, err error) {
	r := run{Number: runNumber(rand.Uint64()), Args: args, Input: c.Stdin != nil}
	var t *terminal
	if c.Terminal {
		if t, err = takeTerminal(&c, &r); err != nil {
			return 0, err
		}
		defer func() { t.giveBack(err) }()
	}
	stream, end, err := p.request(ctx, request{Run: &r})
	if err != nil {
		return 0, err
	}
	defer end()
	if t != nil {
		go t.follow(stream)
	}
	if r.Input {
		input, endInput, err := p.request(ctx, request{In: &r.Number})
		if err != nil {
			return 0, err
		}
		defer endInput()
		go func() {
			_, _ = io.Copy(input, c.Stdin) // an error is the end of either
			input.Close()
		}()
	}
	exit, err = outcome(stream, c)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.Is(err, errOutput):
		return 0, err
	case errors.Is(err, errRun):
		return 0, fmt.Errorf("%s: %w", p.name, err)
	case err != nil:
		return 0, fmt.Errorf("%w while \"ovs-offline %s\" ran in it", p.lost(err), strings.Join(args, " "))
	}
	return exit, nil
}

// errOutput is wrapped when what a command printed can't be written.
var errOutput = errors.New("writing what the command printed")

// errRun is wrapped when the far end could not run a command.
var errRun = errors.New("the command can't be run there")

// outcome passes on what a run prints, and returns its exit code.
func outcome(stream io.Reader, c runtime.Command) (exit int, err error) {
	for {
		kind, content, err := readFrame(stream)
		if err != nil {
			return 0, err
		}
		switch kind {
		case frameOut:
			_, err = c.Stdout.Write(content)
		case frameErr:
			_, err = c.Stderr.Write(content)
		case frameReply:
			return exitOf(content)
		default:
			return 0, errFrame
		}
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errOutput, err)
		}
	}
}
