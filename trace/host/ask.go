package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/unixctl"
	"ovs-offline/internal/workdir"
)

// askTimeout bounds one request. A pass takes a millisecond; OVS 3.1 never ends one that
// recirculates in a loop.
const askTimeout = 10 * time.Second

// connections is the number of connections to one ovs-vswitchd. It executes one request
// after the other, but reads the requests of all connections at once.
const connections = 8

// asker sends commands to the ovs-vswitchd of a replica, over connections that stay open.
type asker struct {
	node string
	dir  *workdir.Dir
	idle chan *unixctl.Conn // nil for a connection that is not open
	// stuck is set after a request that was not answered: ovs-vswitchd executes one after
	// the other, so the next would wait as long.
	stuck atomic.Bool
	// lost is why the replica can't be reached any more; nil while it can.
	lost atomic.Pointer[UnavailableError]
	// noticed is why a command had no answer; nil if all had one.
	noticed atomic.Pointer[UnavailableError]
	// ports describes the ports of the replica that was asked first, and checked is the
	// connection to a pod whose replica has the same ones.
	ports   string
	checked atomic.Int64
}

func (a *asker) init(node string, dir *workdir.Dir) {
	a.node, a.dir = node, dir
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
// is an error is one for which unixctl.Refused is true. The error of a replica that can't be
// asked is an *UnavailableError.
func (a *asker) Ask(ctx context.Context, argv ...string) (string, error) {
	out, err := a.answer(ctx, argv)
	if down, ok := errors.AsType[*UnavailableError](err); ok {
		a.noticed.CompareAndSwap(nil, down)
	}
	return out, err
}

// Unavailable returns why the replica could not be asked, now or at an earlier command; nil if
// it has answered them all.
func (a *asker) Unavailable() *UnavailableError { return a.noticed.Load() }

func (a *asker) answer(ctx context.Context, argv []string) (string, error) {
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

// ask returns the connection as well, nil if it can't be used any more. It asks again what
// a closed connection, or a lost pod, did not answer.
func (a *asker) ask(ctx context.Context, c *unixctl.Conn, argv []string) (string, *unixctl.Conn, error) {
	const most = 3 // a question that ends its pod each time is not asked for ever
	for try := 1; ; try++ {
		reused := c != nil
		out, conn, err := a.once(ctx, c, argv)
		_, refused := unixctl.Refused(err)
		switch {
		case err == nil, refused:
			return out, conn, err
		case ctx.Err() != nil:
			return "", nil, ctx.Err()
		case !errors.Is(err, errEnded):
			return "", nil, err
		case !reused && (a.dir.Connected() || try >= most):
			return "", nil, a.ended(argv[0])
		}
		c = nil
	}
}

// connect connects to the pod of the replica, if it is in one. After a failure it does not
// try again: that can take minutes for each question.
func (a *asker) connect(ctx context.Context) error {
	if lost := a.lost.Load(); lost != nil {
		return lost
	}
	err := a.dir.Connect(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	lost := &UnavailableError{a.node, elsewhereError{err}}
	a.lost.Store(lost)
	return lost
}

// errEnded is the error of a command whose connection ended before its answer came.
var errEnded = errors.New("the connection ended")

// once asks once. The time in which a lost replica is made good is no part of the limit.
func (a *asker) once(ctx context.Context, c *unixctl.Conn, argv []string) (string, *unixctl.Conn, error) {
	if c == nil {
		if err := a.connect(ctx); err != nil {
			return "", nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if c == nil {
		var err error
		if c, err = unixctl.Connect(limited, a.dir.VarRun(workdir.OVS), "ovs-vswitchd"); err != nil {
			return "", nil, a.unreachable(err)
		}
		if err := a.check(limited, c); err != nil {
			c.Close()
			return "", nil, err
		}
	}
	out, err := c.Run(limited, argv...)
	if _, refused := unixctl.Refused(err); err == nil || refused {
		return string(out), c, err
	}
	c.Close()
	if limited.Err() != nil && ctx.Err() == nil {
		a.stuck.Store(true)
		return "", nil, a.late(argv[0])
	}
	return "", nil, errEnded
}

// Replaced returns a number that changes when another replica takes the place of the one
// that was asked before. What one has returned, such as the number of a recirculation,
// means nothing to the other.
func (a *asker) Replaced() int { return a.dir.Connections() }

// check returns an error if the replica is another one than that whose ports were read,
// and has other port numbers.
func (a *asker) check(ctx context.Context, c *unixctl.Conn) error {
	n := int64(a.dir.Connections())
	if a.ports == "" || a.checked.Load() == n {
		return nil
	}
	shown, err := c.Run(ctx, portsCommand)
	if err != nil {
		return errEnded
	}
	if portsIn(string(shown)) != a.ports {
		return &UnavailableError{a.node, errOtherPorts}
	}
	a.checked.Store(n)
	return nil
}

// portsCommand is the command that prints the ports.
const portsCommand = "dpif/show"

// portsIn describes the ports in the output of portsCommand, without counters.
func portsIn(shown string) string {
	var text strings.Builder
	for p := range appctl.BridgePorts(shown) {
		fmt.Fprintf(&text, "%s %s %d %s\n", p.Bridge, p.Name, p.OpenFlow, p.Datapath)
	}
	return text.String()
}
