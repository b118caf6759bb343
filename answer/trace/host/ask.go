package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/workdir"
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
	// answered is set after the first answer: a replica that does not run any more was stopped.
	answered atomic.Bool
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

// Ask sends a command to the node's ovs-vswitchd and returns the answer. unixctl.Refused accepts
// the error that is the answer to a wrong command; the error is an *UnavailableError if the
// replica can't be asked.
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

// answer asks over the next connection that is free.
func (a *asker) answer(ctx context.Context, argv []string) (string, error) {
	if a.stuck.Load() {
		return "", a.lateError(argv[0])
	}
	var conn *unixctl.Conn
	select {
	case conn = <-a.idle:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	out, conn, err := a.ask(ctx, conn, argv)
	a.idle <- conn
	return out, err
}

// ask asks over a connection, nil for a new one, and returns it as well, nil if it can't be used
// any more. It asks again what a closed connection, or a lost pod, did not answer.
func (a *asker) ask(ctx context.Context, open *unixctl.Conn, argv []string) (string, *unixctl.Conn, error) {
	const maxTries = 3 // a question that ends its pod each time is not asked for ever
	for try := 1; ; try++ {
		reused, replica := open != nil, a.Replaced()
		out, conn, err := a.askOnce(ctx, open, argv)
		_, refused := unixctl.Refused(err)
		switch {
		case err == nil, refused:
			return out, conn, err
		case ctx.Err() != nil:
			return "", nil, ctx.Err()
		case !errors.Is(err, errEnded):
			return "", nil, err
		case try >= maxTries, !reused && a.dir.Connected() && a.Replaced() == replica:
			return "", nil, a.endedError(ctx, argv[0])
		}
		open = nil
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

// askOnce asks once. The time limit does not include the time in which a lost replica is
// started again.
func (a *asker) askOnce(ctx context.Context, conn *unixctl.Conn, argv []string) (string, *unixctl.Conn, error) {
	if conn == nil {
		if err := a.connect(ctx); err != nil {
			return "", nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if conn == nil {
		var err error
		if conn, err = unixctl.Connect(limited, a.dir.VarRun(workdir.OVS), "ovs-vswitchd"); err != nil {
			return "", nil, a.unreachableError(err)
		}
		if err := a.checkPorts(limited, conn); err != nil {
			conn.Close()
			return "", nil, err
		}
	}
	out, err := conn.Run(limited, argv...)
	if _, refused := unixctl.Refused(err); err == nil || refused {
		a.answered.Store(true)
		return string(out), conn, err
	}
	conn.Close()
	if limited.Err() != nil && ctx.Err() == nil {
		a.stuck.Store(true)
		return "", nil, a.lateError(argv[0])
	}
	return "", nil, errEnded
}

// Replaced returns a number that changes when another replica takes the place of the one
// that was asked before. What one has returned, such as the number of a recirculation,
// the other does not know.
func (a *asker) Replaced() int { return a.dir.Connections() }

// checkPorts returns an error if another replica has taken the place of the one whose ports were
// read, and has other port numbers.
func (a *asker) checkPorts(ctx context.Context, conn *unixctl.Conn) error {
	n := int64(a.dir.Connections())
	if a.ports == "" || a.checked.Load() == n {
		return nil
	}
	shown, err := conn.Run(ctx, portsCommand)
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
