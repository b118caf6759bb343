package pods

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	utilexec "k8s.io/client-go/util/exec"

	"ovs-offline/internal/kube"
	"ovs-offline/replica"
)

// Host is the pod in which a replica runs. Several replicas may run in one pod: their
// hosts have the same Pod.
type Host struct {
	cluster *cluster
	place   replica.Place
}

// Pod identifies the pod.
func (h *Host) Pod() string { return h.place.UID }

// Folder returns the path of the workdir in the pod.
func (h *Host) Folder() string { return h.place.Folder }

// String returns the pod as messages name it.
func (h *Host) String() string { return h.place.String() }

func (h *Host) command(argv []string, stdin io.Reader, stdout, stderr io.Writer) kube.Command {
	return kube.Command{Namespace: h.place.Namespace, Pod: h.place.Pod, Container: container, Argv: argv, Stdin: stdin, Stdout: stdout, Stderr: stderr}
}

// exitOf returns the exit code in the error of a command, or the error.
func exitOf(err error) (int, error) {
	var exited utilexec.CodeExitError
	if errors.As(err, &exited) {
		return exited.Code, nil
	}
	return 0, err
}

// Stream runs a program in the pod and returns its standard input and output. Close ends
// the connection, and the program sees the end of its input. Once the program has ended,
// Read returns io.EOF, or the reason if it failed, without the name of the pod.
func (h *Host) Stream(ctx context.Context, argv ...string) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, toProgram := io.Pipe()
	fromProgram, out := io.Pipe()
	stream := &stream{Reader: fromProgram, Writer: toProgram, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(stream.ended)
		var stderr tail
		exit, err := exitOf(h.cluster.client.Exec(ctx, h.command(argv, in, out, &stderr)))
		switch {
		case err != nil:
			err = fmt.Errorf("%w: %s", h.unreachable(ctx, err), nextStep)
		case exit != 0:
			err = fmt.Errorf("%s ended with exit code %d", argv[0], exit)
			if text := stderr.text(); text != "" {
				err = fmt.Errorf("%w: %s", err, text)
			}
		}
		out.CloseWithError(err)                                 // io.EOF for nil
		in.CloseWithError(cmp.Or(err, error(io.ErrClosedPipe))) // whoever writes may notice it first
	}()
	return stream, nil
}

// stream is the standard input and output of a program in a pod.
type stream struct {
	io.Reader
	io.Writer
	cancel context.CancelFunc
	ended  chan struct{}
}

// Close ends the connection and waits for that.
func (s *stream) Close() error {
	s.Writer.(*io.PipeWriter).Close()
	s.cancel()
	<-s.ended
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

const maxTail = 4 << 10

// Write keeps the last bytes.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, data...)
	if more := len(t.bytes) - maxTail; more > 0 {
		t.bytes = bytes.Clone(t.bytes[more:])
	}
	return len(data), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.bytes))
}
