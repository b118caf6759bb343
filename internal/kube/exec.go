package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	transport "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Command is a command to run in a container of a pod.
type Command struct {
	Namespace, Pod string
	Container      string // "" for the only one of the pod
	Argv           []string
	Stdin          io.Reader // nil for none
	Stdout, Stderr io.Writer
}

// Exec runs a command over WebSocket, and over SPDY where the server or a proxy refuses
// WebSocket. It returns when the command's streams have ended, or ctx; a nil error does
// not mean that they are complete. The error of a command that ran and failed is an
// exec.CodeExitError of client-go.
func (c *Client) Exec(ctx context.Context, run Command) error {
	url := c.execURL(run)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(c.streams, http.MethodGet, url.String())
	if err != nil {
		return err
	}
	overSPDY, err := newSPDYExecutor(ctx, c.streams, url)
	if err != nil {
		return err
	}
	either, err := remotecommand.NewFallbackExecutor(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Stdin: run.Stdin, Stdout: run.Stdout, Stderr: run.Stderr}
	return endsWith(ctx, func() error {
		return either.StreamWithContext(handshakeContext{ctx, time.Now().Add(c.timeout)}, options)
	})
}

// ErrSilent is wrapped when nothing was received for too long.
var ErrSilent = errors.New("no data was received for too long")

// UntilSilent returns a context for a stream in which something must be received within each
// limit: its caller calls received for each piece of data. The cause of a stream that was silent wraps ErrSilent.
func UntilSilent(parent context.Context, limit time.Duration) (ctx context.Context, received func(), cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	watch := time.AfterFunc(limit, func() { end(fmt.Errorf("%w (%s)", ErrSilent, limit)) })
	return ctx, func() { watch.Reset(limit) }, func() {
		watch.Stop()
		end(nil)
	}
}

// execURL returns the URL at which a command is run.
func (c *Client) execURL(run Command) *url.URL {
	request := scopeRequest(c.rest.Get(), coreGroup, run.Namespace, "pods").Name(run.Pod).SubResource("exec").Param("stdout", "true").Param("stderr", "true")
	if run.Container != "" {
		request.Param("container", run.Container)
	}
	if run.Stdin != nil {
		request.Param("stdin", "true")
	}
	for _, word := range run.Argv {
		request.Param("command", word)
	}
	return request.URL()
}

// handshakeContext limits a WebSocket handshake, which heeds a deadline but not that
// its context ends. It is not done at its deadline: the stream may last longer.
type handshakeContext struct {
	context.Context
	deadline time.Time
}

// Deadline returns the time at which the handshake must have ended.
func (c handshakeContext) Deadline() (time.Time, bool) { return c.deadline, true }

// endsWith returns the error of a call, or the error of ctx when ctx ends first: parts of
// client-go, and programs that it runs for credentials, do not heed their context. The call may return
// first with the error of a connection that was shut down because ctx ended: endsWith then returns the error of ctx as well.
func endsWith(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newSPDYExecutor differs from client-go's in one point: client-go's waits for the
// answer to its request even after ctx ends; here the connection is shut down when
// ctx ends. The executor is for one use.
func newSPDYExecutor(ctx context.Context, config *rest.Config, url *url.URL) (remotecommand.Executor, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{TLS: tlsConfig, Proxier: proxy, PingPeriod: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	upgrader.Dialer = &net.Dialer{Control: func(_, _ string, socket syscall.RawConn) error {
		context.AfterFunc(ctx, func() {
			_ = socket.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // this fails if the connection is closed
		})
		return ctx.Err() // there is no connection yet
	}}
	authorized, err := rest.HTTPWrappersForConfig(config, upgrader)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(authorized, transport.NewUpgraderForStreaming(upgrader), http.MethodPost, url)
}
