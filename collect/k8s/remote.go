package k8s

import (
	"context"
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

// remote runs commands through the API server.
type remote struct {
	config    *rest.Config
	api       requests
	handshake time.Duration // how long the connection's handshake may take
}

// Exec runs a command over WebSocket, and over SPDY where the server or a proxy
// refuses WebSocket. The command has no terminal.
func (r *remote) Exec(ctx context.Context, t Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	url := r.api.exec(t, argv)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(r.config, http.MethodGet, url.String())
	if err != nil {
		return err
	}
	overSPDY, err := newSPDYExecutor(ctx, r.config, url)
	if err != nil {
		return err
	}
	either, err := remotecommand.NewFallbackExecutor(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	return endsWith(ctx, func() error {
		return either.StreamWithContext(handshakeContext{ctx, time.Now().Add(r.handshake)}, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	})
}

// handshakeContext limits a WebSocket handshake, which heeds a deadline but not that
// its context ends. It is not done at its deadline: the stream may last longer.
type handshakeContext struct {
	context.Context
	deadline time.Time
}

// Deadline returns the time at which the handshake must have ended.
func (c handshakeContext) Deadline() (time.Time, bool) { return c.deadline, true }

// endsWith returns the error of a call, or that of ctx when ctx ends first: parts of
// client-go, and programs that it runs for credentials, do not heed their context.
func endsWith(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
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
