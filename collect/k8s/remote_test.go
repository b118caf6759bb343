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
)

// silentServer accepts connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// onlySPDY refuses WebSocket, and never answers a request for SPDY.
func onlySPDY(t *testing.T) string {
	t.Helper()
	ended := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.Error(w, "no WebSocket here", http.StatusBadRequest)
			return
		}
		<-ended
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server.URL
}

// TestHandshakeEndsWithItsContext checks that a command ends as soon as its context
// does, and with the stall time, if the server does not answer.
func TestHandshakeEndsWithItsContext(t *testing.T) {
	for name, host := range map[string]string{"WebSocket": silentServer(t), "SPDY": onlySPDY(t)} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(&rest.Config{Host: host})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(200*time.Millisecond, cancel)
			began := time.Now()
			err = c.Exec(ctx, Target{Namespace: "ns", Pod: "pod", Container: "c"}, []string{"sh"}, strings.NewReader(""), io.Discard, io.Discard)
			if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 3*time.Second {
				t.Errorf("after %s: %v", took, err)
			}
			tr := &transfer{exec: c, spool: t.TempDir(), stall: 200 * time.Millisecond, patience: impatient()}
			began = time.Now()
			_, err = tr.run(t.Context(), someContainer, prologue+"z")
			if took := time.Since(began); !errors.Is(err, errStalled) || took > 5*time.Second {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
}

// TestRequestEndsWithItsContext checks that requests to the API end with their context,
// and after the request timeout.
func TestRequestEndsWithItsContext(t *testing.T) {
	host := silentServer(t)
	for name, timeout := range map[string]time.Duration{"interrupted": 0, "timeout": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			c, err := Connect(&rest.Config{Host: host, Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if timeout == 0 {
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			began := time.Now()
			if _, err := c.Nodes(ctx, ""); err == nil || time.Since(began) > 3*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	}
}
