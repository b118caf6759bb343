package k8s

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"ovs-offline/internal/kube"
)

// silentServer accepts connections and never answers. It sends to asked once it is asked.
func silentServer(t *testing.T) (url string, asked <-chan bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	heard := make(chan bool, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			report(heard)
		}
	}()
	return "http://" + l.Addr().String(), heard
}

// report sends to a channel unless something waits in it.
func report(heard chan<- bool) {
	select {
	case heard <- true:
	default:
	}
}

// onlySPDY refuses WebSocket, and never answers a request for SPDY. It sends to asked once it
// has such a request.
func onlySPDY(t *testing.T) (url string, asked <-chan bool) {
	t.Helper()
	heard, ended := make(chan bool, 1), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.Error(w, "no WebSocket here", http.StatusBadRequest)
			return
		}
		report(heard)
		<-ended
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server.URL, heard
}

// TestHandshakeEndsWithItsContext checks that a command ends as soon as its context
// does, and with the stall time, if the server does not answer.
func TestHandshakeEndsWithItsContext(t *testing.T) {
	for name, start := range map[string]func(*testing.T) (string, <-chan bool){"WebSocket": silentServer,
		"SPDY": onlySPDY} {
		t.Run(name, func(t *testing.T) {
			host, asked := start(t)
			c, err := Connect(&rest.Config{Host: host})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			err = c.Exec(ctx, Target{Namespace: "ns", Pod: "pod", Container: "c"}, []string{"sh"}, strings.NewReader(""),
				io.Discard, io.Discard)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
			tr := &transfer{exec: c, spool: t.TempDir(), stall: 200 * time.Millisecond, patience: impatient()}
			if _, err = tr.run(t.Context(), someContainer, prologue+"z"); !errors.Is(err, kube.ErrSilent) {
				t.Errorf("got %v, want %v", err, kube.ErrSilent)
			}
		})
	}
}

// TestRequestEndsWithItsContext checks that requests to the API end with their context,
// and after the request timeout.
func TestRequestEndsWithItsContext(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"interrupted": 0, "timeout": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			host, asked := silentServer(t)
			c, err := Connect(&rest.Config{Host: host, Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := context.DeadlineExceeded
			if timeout == 0 {
				want = context.Canceled
				go func() {
					<-asked
					cancel()
				}()
			}
			if _, err := c.Nodes(ctx, ""); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}
