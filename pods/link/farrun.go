package link

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// input returns the channel of the standard input of a run. Its stream and that of the run
// may arrive in either order.
func (e *end) input(n runNumber) chan net.Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inputs[n] == nil {
		e.inputs[n] = make(chan net.Conn)
	}
	return e.inputs[n]
}

// forget removes the channel of a run that has its input.
func (e *end) forget(n runNumber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.inputs, n)
}

// pass passes the standard input of a run on until one of the two ends.
func (e *end) pass(ctx context.Context, stream net.Conn, n runNumber) {
	ended := make(chan struct{})
	select {
	case e.input(n) <- endingConn{stream, ended}:
		<-ended
	case <-ctx.Done():
	}
}

// endingConn is a connection whose Close closes a channel. It is closed once.
type endingConn struct {
	net.Conn
	ended chan struct{}
}

func (c endingConn) Close() error {
	defer close(c.ended)
	return c.Conn.Close()
}

// run runs a command until it ends, or the near end closes its side of the stream.
func (e *end) run(ctx context.Context, stream net.Conn, r run) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sizes := make(chan size)
	go func() {
		readSizes(ctx, stream, sizes)
		cancel()
	}()
	var exit int
	var err error
	if r.Terminal != nil {
		exit, err = e.runInTerminal(ctx, stream, r, sizes)
	} else {
		exit, err = e.runWith(ctx, &frames{stream: stream}, r)
	}
	answer := reply{Exit: exit}
	if err != nil {
		answer.Error = err.Error()
	}
	if ctx.Err() != nil {
		e.cut.Store(true)
		return
	}
	_ = writeJSON(stream, frameReply, answer) // fails if the near end is gone
}

// runWith runs a command with pipes as its streams: programs that it starts get them as
// they are, and can be waited for without their input.
func (e *end) runWith(ctx context.Context, to *frames, r run) (exit int, err error) {
	in, err := e.inputOf(ctx, r)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	var outputs []*output
	for _, kind := range []frame{frameOut, frameErr} {
		o, err := newOutput(to, kind)
		if err != nil {
			return 0, err
		}
		defer o.end()
		outputs = append(outputs, o)
	}
	return e.server.Run(ctx, r.Args, in, outputs[0].file, outputs[1].file), nil
}

// inputOf returns the standard input of a run.
func (e *end) inputOf(ctx context.Context, r run) (*os.File, error) {
	if !r.Input {
		return os.Open(os.DevNull)
	}
	from, err := e.awaitInput(ctx, r.Number)
	if err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		from.Close()
		return nil, err
	}
	feed(ctx, to, from)
	return in, nil
}

// awaitInput returns the stream of the standard input of a run.
func (e *end) awaitInput(ctx context.Context, n runNumber) (net.Conn, error) {
	select {
	case from := <-e.input(n):
		e.forget(n)
		return from, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// feed copies a stream until one of the two files ends, or ctx, and closes both. The channel is
// closed then.
func feed(ctx context.Context, to io.WriteCloser, from net.Conn) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(to, from) // an error is the end of either
		to.Close()
		from.Close()
	}()
	context.AfterFunc(ctx, func() { from.SetReadDeadline(time.Unix(0, 0)) }) // the command has ended
	return ended
}

// frames writes frames of several kinds to one stream.
type frames struct {
	mu     sync.Mutex
	stream io.Writer
}

func (f *frames) write(kind frame, content []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return writeFrame(f.stream, kind, content)
}

// output is a pipe or a terminal whose content goes to the near end.
type output struct {
	file  *os.File // the end of a pipe to write to; nil for a terminal
	from  *os.File
	ended atomic.Bool // the command has ended
	done  chan struct{}
}

// patience is how long an output may be silent after the end of its command: a program
// that the command left behind may have it open.
const patience = time.Second

func newOutput(to *frames, kind frame) (*output, error) {
	from, file, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return startOutput(file, from, to, kind), nil
}

func startOutput(file, from *os.File, to *frames, kind frame) *output {
	o := &output{file: file, from: from, done: make(chan struct{})}
	go o.copy(to, kind)
	return o
}

func (o *output) copy(to *frames, kind frame) {
	defer close(o.done)
	defer o.from.Close()
	buffer := make([]byte, 64<<10)
	for {
		if o.ended.Load() {
			o.from.SetReadDeadline(time.Now().Add(patience))
		}
		n, err := o.from.Read(buffer)
		if n > 0 {
			err = errors.Join(err, to.write(kind, buffer[:n]))
		}
		if err != nil {
			return // the end, or the near end is gone: the command gets SIGPIPE
		}
	}
}

// end waits until what the command has written was sent.
func (o *output) end() {
	if o.file != nil {
		o.file.Close()
	}
	o.ended.Store(true)
	o.from.SetReadDeadline(time.Now().Add(patience))
	<-o.done
}
