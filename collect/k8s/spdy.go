package k8s

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	transport "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

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
			_ = socket.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // it fails on a closed connection
		})
		return ctx.Err() // there is no connection yet
	}}
	authorized, err := rest.HTTPWrappersForConfig(config, upgrader)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(authorized, transport.NewUpgraderForStreaming(upgrader), http.MethodPost, url)
}
