package link

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// run is a session at the far end, and the command that runs in it.
type run struct {
	*end
	channel  ssh.Channel
	terminal *terminalPayload // nil for none
	sizes    chan sizePayload // the last size that is not set yet
	words    []string         // of the command line; nil before it is known
	running  sync.WaitGroup
}

// session serves a session until the near end closes it, which ends the command.
func (e *end) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	run := &run{end: e, channel: channel, sizes: make(chan sizePayload, 1)}
	for request := range requests {
		taken := run.take(request)
		_ = request.Reply(taken, nil) // fails if the near end is gone
		// The command starts after the reply: one that ends at once would close the channel
		// before it, and the near end would miss the reply.
		if taken && request.Type == requestExec {
			run.running.Go(func() { run.run(ctx) })
		}
	}
	cancel()
	run.running.Wait()
}

// take notes what a request asks for, and reports whether it is a valid one.
func (r *run) take(request *ssh.Request) bool {
	switch request.Type {
	case requestTerminal:
		var payload terminalPayload
		if r.words != nil || ssh.Unmarshal(request.Payload, &payload) != nil {
			return false
		}
		r.terminal = &payload
		return true
	case requestSize:
		var payload sizePayload
		if ssh.Unmarshal(request.Payload, &payload) != nil {
			return false
		}
		select {
		case <-r.sizes: // one that no longer matters
		default:
		}
		r.sizes <- payload
		return true
	case requestExec:
		var payload commandPayload
		if r.words != nil || ssh.Unmarshal(request.Payload, &payload) != nil {
			return false
		}
		r.words = splitWords(payload.Command)
		return true
	}
	return false
}

// run runs the command until it ends or ctx does, and closes the session.
func (r *run) run(ctx context.Context) {
	defer r.channel.Close()
	runIn := r.withPipes
	if r.terminal != nil {
		runIn = r.inTerminal
	}
	exit, err := runIn(ctx, r.words)
	switch {
	case ctx.Err() != nil:
		r.cut.Store(true)
	case err != nil:
		_, _ = r.channel.SendRequest(requestSignal, false, ssh.Marshal(signalPayload{Signal: failed, Message: err.Error()})) // fails if the near end is gone
	default:
		_, _ = r.channel.SendRequest(requestExit, false, ssh.Marshal(exitPayload{uint32(exit)}))
	}
}

// withPipes runs a command with pipes as its streams: programs that it starts get them as
// they are, and can be waited for without their input.
func (r *run) withPipes(ctx context.Context, words []string) (exit int, err error) {
	in, to, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	copyAndClose(to, r.channel)
	var files []*os.File
	for _, to := range []io.Writer{r.channel, r.channel.Stderr()} {
		output, err := newOutput(to)
		if err != nil {
			return 0, err
		}
		defer output.end()
		files = append(files, output.file)
	}
	return r.server.Run(ctx, words, in, files[0], files[1]), nil
}

// copyAndClose copies a stream until one of the two ends, and closes the file. The channel is closed
// then.
func copyAndClose(to io.WriteCloser, from io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(to, from) // an error is the end of either
		to.Close()
	}()
	return ended
}

// output is a pipe or a terminal whose content goes to the near end.
type output struct {
	file  *os.File // the end of a pipe to write to; nil for a terminal
	from  *os.File
	ended atomic.Bool // the command has ended
	done  chan struct{}
}

// patienceOutput is how long an output may be silent after the end of its command: a program
// that the command left behind may have it open.
const patienceOutput = time.Second

func newOutput(to io.Writer) (*output, error) {
	from, file, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return startOutput(file, from, to), nil
}

func startOutput(file, from *os.File, to io.Writer) *output {
	output := &output{file: file, from: from, done: make(chan struct{})}
	go output.copy(to)
	return output
}

func (o *output) copy(to io.Writer) {
	defer close(o.done)
	defer o.from.Close()
	buffer := make([]byte, 64<<10)
	for {
		if o.ended.Load() {
			o.from.SetReadDeadline(time.Now().Add(patienceOutput))
		}
		n, err := o.from.Read(buffer)
		if n > 0 {
			_, written := to.Write(buffer[:n])
			err = errors.Join(err, written)
		}
		if err != nil {
			return // the end, or the near end is gone: the command gets SIGPIPE
		}
	}
}

// end waits until all output of the command was sent.
func (o *output) end() {
	if o.file != nil {
		o.file.Close()
	}
	o.ended.Store(true)
	o.from.SetReadDeadline(time.Now().Add(patienceOutput))
	<-o.done
}
