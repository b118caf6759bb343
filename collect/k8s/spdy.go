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

// newSPDYExecutor is client-go's, but for one thing: that waits for the answer
// to its request for as long as the server likes, whatever becomes of ctx. Here
// the connection is shut down when ctx ends. It is for one use.
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
			_ = socket.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // closed already, if it fails
		})
		return ctx.Err() // before the connection there is nothing to shut down
	}}
	authorized, err := rest.HTTPWrappersForConfig(config, upgrader)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutorForTransports(authorized, transport.NewUpgraderForStreaming(upgrader), http.MethodPost, url)
}
