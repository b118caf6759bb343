package podman

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
)

// answerTime is how long a service may take to say that it is there.
const answerTime = 3 * time.Second

// Connect connects to podman's service: the one that CONTAINER_HOST names, or
// the user's own, or the system's, as podman's own clients do. What it returns
// carries the connection for podman's bindings, and does not end by itself. The
// error says for each socket why it is not the one.
func Connect(ctx context.Context) (context.Context, error) {
	var failed []error
	for _, uri := range addresses() {
		conn, err := connect(ctx, uri)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, fmt.Errorf("%s: %w", uri, err))
	}
	return nil, fmt.Errorf("podman's service does not answer: %w; start it with: podman system service --time=0 (or systemctl [--user] start podman.socket), or name it in CONTAINER_HOST", errors.Join(failed...))
}

// addresses are where podman's service may listen, the likeliest first.
func addresses() []string {
	if host := os.Getenv("CONTAINER_HOST"); host != "" {
		return []string{host}
	}
	system := "unix:///run/podman/podman.sock"
	if os.Geteuid() == 0 {
		return []string{system}
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	}
	return []string{"unix://" + filepath.Join(dir, "podman/podman.sock"), system}
}

func connect(ctx context.Context, uri string) (context.Context, error) {
	path, local := strings.CutPrefix(uri, "unix://")
	if !local {
		return nil, errors.New("only a service on this machine can reach the working directory: a unix:// address is needed")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("there is no such socket")
	}
	// The bindings keep nothing of the context but its values.
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := bindings.NewConnection(asking, uri)
	if asking.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("it does not answer within %v", answerTime)
	}
	if err != nil {
		return nil, errors.Unwrap(wrapped{err})
	}
	return with(context.WithoutCancel(ctx), conn), nil
}

// wrapped takes the bindings' own "unable to connect to Podman socket" off an
// error.
type wrapped struct{ error }

func (w wrapped) Unwrap() error {
	var refused bindings.ConnectError
	if errors.As(w.error, &refused) {
		return refused.Err
	}
	return w.error
}

// call is one call's own context, with the connection that the bindings look
// for among a context's values.
type call struct {
	context.Context
	conn context.Context
}

func (c call) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.conn.Value(key)
}

func with(ctx, conn context.Context) context.Context { return call{ctx, conn} }
