package host

import (
	"context"
	"sync/atomic"
	"time"

	"ovs-offline/internal/unixctl"
)

// askTimeout bounds one request. A pass takes a millisecond; OVS 3.1 never ends one that
// recirculates in a loop.
const askTimeout = 10 * time.Second

// connections is the number of connections to one ovs-vswitchd. It executes one request
// after the other, but reads the requests of all connections at once.
const connections = 8

// asker sends commands to the ovs-vswitchd of a replica, over connections that stay open.
type asker struct {
	node, runDir string
	idle         chan *unixctl.Conn // nil for a connection that is not open
	// stuck is set after a request that was not answered: ovs-vswitchd executes one after
	// the other, so the next would wait as long.
	stuck atomic.Bool
}

func (a *asker) init(node, runDir string) {
	a.node, a.runDir = node, runDir
	a.idle = make(chan *unixctl.Conn, connections)
	for range connections {
		a.idle <- nil
	}
}

// Close ends the connections. Requests must have ended.
func (a *asker) Close() {
	for range connections {
		if c := <-a.idle; c != nil {
			c.Close()
		}
	}
}

// Ask sends a command to the node's ovs-vswitchd and returns the answer. An answer that
// is an error is one for which unixctl.Refused is true.
func (a *asker) Ask(ctx context.Context, argv ...string) (string, error) {
	if a.stuck.Load() {
		return "", a.late(argv[0])
	}
	var c *unixctl.Conn
	select {
	case c = <-a.idle:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	out, c, err := a.ask(ctx, c, argv)
	a.idle <- c
	return out, err
}

// ask returns the connection as well, nil if it can't be used any more.
func (a *asker) ask(ctx context.Context, c *unixctl.Conn, argv []string) (string, *unixctl.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		reused := c != nil
		if !reused {
			var err error
			if c, err = unixctl.Connect(limited, a.runDir, "ovs-vswitchd"); err != nil {
				if ctx.Err() != nil {
					return "", nil, ctx.Err()
				}
				return "", nil, a.unreachable(err)
			}
		}
		out, err := c.Run(limited, argv...)
		if _, refused := unixctl.Refused(err); err == nil || refused {
			return string(out), c, err
		}
		c.Close()
		switch c = nil; {
		case ctx.Err() != nil:
			return "", nil, ctx.Err()
		case limited.Err() != nil:
			a.stuck.Store(true)
			return "", nil, a.late(argv[0])
		case !reused:
			return "", nil, a.ended(argv[0])
		}
	}
}
