package mcp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Listen answers requests of the streamable HTTP transport at an address of this machine,
// HOST:PORT, until ctx ends. A request needs the token. listening is called with the URL
// once connections are accepted.
func (s *Server) Listen(ctx context.Context, address, token string, listening func(url string)) error {
	if token == "" {
		return errors.New("a server that listens needs a token")
	}
	listener, err := listenLocally(ctx, address)
	if err != nil {
		return err
	}
	tools := s.tools()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tools }, &sdk.StreamableHTTPOptions{SessionTimeout: 30 * time.Minute})
	server := &http.Server{
		Handler:           authorize(token, s.connections.number(http.MaxBytesHandler(handler, 2*maxArguments))),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	listening(fmt.Sprintf("http://%s/mcp", listener.Addr()))
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	for session := range tools.Sessions() {
		session.Close()
	}
	return ctx.Err()
}

// listenLocally listens at an address that other machines can't reach.
func listenLocally(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s: only an address of this machine can be listened at, such as 127.0.0.1:8100", address)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// authorize refuses requests without the token (RFC 6750, section 2.1).
func authorize(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// connectionHeader is a header of requests that only this server sets: the number of the
// HTTP request that a call came with.
const connectionHeader = "Ovs-Offline-Connection"

// connections are the HTTP requests that are not answered yet.
type connections struct {
	last     atomic.Uint64 // number of a request
	contexts sync.Map      // of the requests, by number
}

// number numbers requests, so that a call ends when its client has gone. The protocol
// lets a call go on and a client come back for its result; here, nothing of it is kept.
func (c *connections) number(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strconv.FormatUint(c.last.Add(1), 10)
		c.contexts.Store(id, r.Context())
		defer c.contexts.Delete(id)
		r.Header.Set(connectionHeader, id)
		next.ServeHTTP(w, r)
	})
}

// follow returns a context that ends when the client of a request over HTTP has gone.
func (c *connections) follow(ctx context.Context, request sdk.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	extra := request.GetExtra()
	if extra == nil {
		return ctx, cancel
	}
	connection, found := c.contexts.Load(extra.Header.Get(connectionHeader))
	if !found {
		return ctx, cancel
	}
	stop := context.AfterFunc(connection.(context.Context), cancel)
	return ctx, func() { stop(); cancel() }
}
