package k8s

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	transport "k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Cluster is a Kubernetes cluster: its API, and an Executor for its pods.
type Cluster struct {
	Name    string // its server's URL
	Version string // of its API server, "v1.36.3"; "" if unknown
	API     API
	Executor
}

// Connect returns the Cluster of a configuration. It sends no request yet.
func Connect(config *rest.Config) (*Cluster, error) {
	api, err := newRequests(config)
	if err != nil {
		return nil, err
	}
	streams := rest.CopyConfig(config)
	streams.Timeout = 0 // this is for requests; streams are watched by transfer
	return &Cluster{Name: config.Host, API: api, Executor: &remote{config: streams, api: api}}, nil
}

// Nodes returns the names of the nodes that the label selector matches; "" matches all.
func (c *Cluster) Nodes(ctx context.Context, selector string) ([]string, error) {
	list, err := c.API.Nodes(ctx, selector)
	if err != nil {
		return nil, explain(err, "listing nodes")
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names, nil
}

// remote runs commands through the API server.
type remote struct {
	config *rest.Config
	api    requests
}

// Exec runs a command over WebSocket, and over SPDY where the server or a proxy
// refuses WebSocket. The command has no terminal and no standard input.
func (r *remote) Exec(ctx context.Context, t Target, argv []string, stdout, stderr io.Writer) error {
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
	return either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
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

// isRefused reports whether another try would fail in the same way: the container has
// no shell, or the request was refused. Over SPDY client-go returns the answer as text
// only, which is not recognised.
func isRefused(err error) bool {
	var exited utilexec.CodeExitError
	return apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || errors.As(err, &exited) && (exited.Code == 126 || exited.Code == 127)
}

// explain adds the meaning for the user to an error of the API server.
func explain(err error, doing string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: %w: are the credentials of the kubeconfig (or --token) still good?", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
