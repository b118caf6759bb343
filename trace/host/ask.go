package host

import (
	"context"
	"errors"
	"fmt"
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

// ErrNoAnswer is wrapped when an ovs-vswitchd does not answer within the time limit.
var ErrNoAnswer = errors.New("ovs-vswitchd does not answer")

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
		return "", a.noAnswer(argv[0])
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

func (a *asker) noAnswer(command string) error {
	return fmt.Errorf("node %s: %w to %s within %v: stop and start its replica", a.node, ErrNoAnswer, command, askTimeout)
}

// errDown is wrapped when the replica can't be reached.
var errDown = errors.New("the ovs-vswitchd of its replica can't be reached: start it with: ovs-offline start")

// ask returns the connection as well, nil if it can't be used any more.
func (a *asker) ask(ctx context.Context, c *unixctl.Conn, argv []string) (string, *unixctl.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for {
		reused := c != nil
		if !reused {
			var err error
			if c, err = unixctl.Connect(limited, a.runDir, "ovs-vswitchd"); err != nil {
				return "", nil, fmt.Errorf("node %s: %w: %w", a.node, errDown, err)
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
			return "", nil, a.noAnswer(argv[0])
		case !reused:
			return "", nil, fmt.Errorf("node %s: %w: it ended while it executed %s; start its replica again: %w", a.node, ErrNoAnswer, argv[0], err)
		}
	}
}
