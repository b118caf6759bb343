package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is a kind of failure of a connection.
type Kind int

// The kinds of failure. All except Slow occur once per connection, after a number of
// bytes towards the client.
const (
	Close     Kind = iota // both directions are closed
	Reset                 // the connection is reset
	HalfClose             // only the direction towards the client is closed
	Stall                 // no more bytes arrive, and the connection stays open
	Kill                  // the command is killed; only for the commands of a StandIn
	Slow                  // each chunk is delayed
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"close", "reset", "half close", "stall", "kill", "slow"}[k]
}

// Fault is a failure of connections through a hop.
type Fault struct {
	Kind  Kind
	After int64         // number of bytes; shorter connections do not fail
	Times int           // number of connections that fail; 0 for all
	Late  time.Duration // the delay of Slow
}

// Hop is a part of the connection between client and container, which can fail.
type Hop struct {
	Address string // host:port on which the hop listens, if it does

	mu       sync.Mutex
	network  Network // in which the target is
	target   string
	fault    *Fault
	happened int
	longest  int64
	total    int64  // bytes since Watch
	mark     int64  // of total
	reached  func() // to call at the mark
	listener net.Listener
	open     map[io.Closer]bool
}

// Listen starts a hop that forwards to target (host:port).
func Listen(target string) (*Hop, error) { return listenAt("", "127.0.0.1:0", target) }

// listenAt starts a hop that listens at an address of a network.
func listenAt(where Network, address, target string) (*Hop, error) {
	listener, err := where.listen(address)
	if err != nil {
		return nil, err
	}
	h := &Hop{Address: listener.Addr().String(), target: target, listener: listener, open: map[io.Closer]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go h.forward(client)
		}
	}()
	return h, nil
}

// Target forwards further connections to another address.
func (h *Hop) Target(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.network, h.target = "", address
}

// targetIn forwards further connections to an address in a network.
func (h *Hop) targetIn(network Network, address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.network, h.target = network, address
}

// Cut closes all connections, and refuses further ones until Target is called.
func (h *Hop) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.target = ""
	for c := range h.open {
		c.Close()
	}
}

// Break sets the fault from now on, nil for none.
func (h *Hop) Break(f *Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault, h.happened = f, 0
}

// Longest returns the number of bytes of the longest connection so far.
func (h *Hop) Longest() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.longest
}

// Watch calls reached, if it is not nil, as soon as the given number of bytes have come
// towards the client from now on, in all connections.
func (h *Hop) Watch(mark int64, reached func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total, h.mark, h.reached = 0, mark, reached
}

// Total returns the number of bytes towards the client since Watch.
func (h *Hop) Total() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// Happened returns how often the fault has occurred.
func (h *Hop) Happened() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.happened
}

// Stop closes the hop and its connections.
func (h *Hop) Stop() {
	h.listener.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.open {
		c.Close()
	}
}

func (h *Hop) forward(client net.Conn) {
	h.mu.Lock()
	network, target := h.network, h.target
	h.mu.Unlock()
	server, err := network.dial(target)
	if err != nil {
		client.Close()
		return
	}
	h.mu.Lock()
	h.open[client], h.open[server] = true, true
	h.mu.Unlock()
	conn := h.wrap(server)
	var both sync.WaitGroup
	both.Go(func() {
		io.Copy(server, client)
		closeWrite(server)
	})
	both.Go(func() {
		_, err := io.Copy(client, conn)
		switch {
		case errors.Is(err, errReset):
			client.(*net.TCPConn).SetLinger(0)
			client.Close()
		case errors.Is(err, errClosed):
			client.Close()
		default:
			closeWrite(client)
		}
	})
	both.Wait()
	client.Close()
	server.Close()
	h.mu.Lock()
	delete(h.open, client)
	delete(h.open, server)
	h.mu.Unlock()
}

// dialer makes connections with small buffers, as in a network: those of the loopback
// device hold several megabytes that a stalled client does not read.
var dialer = net.Dialer{Control: func(_, _ string, socket syscall.RawConn) (err error) {
	const segment, buffer = 1400, 64 << 10
	controlErr := socket.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, segment), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, buffer))
	})
	return errors.Join(controlErr, err)
}}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// wrap returns a connection that fails with the fault of the hop.
func (h *Hop) wrap(server net.Conn) net.Conn {
	return &faulty{Conn: server, hop: h, closed: make(chan struct{})}
}

var (
	errReset  = errors.New("reset by the test")
	errClosed = errors.New("closed by the test")
)

// faulty is a connection whose reads fail.
type faulty struct {
	net.Conn
	hop    *Hop
	read   int64
	spoilt *Fault // the fault that has occurred
	once   sync.Once
	closed chan struct{}
}

// Read returns no byte beyond the point of failure.
func (c *faulty) Read(p []byte) (int, error) {
	if c.spoilt != nil {
		return c.fail()
	}
	n, err := c.Conn.Read(p)
	f, left := c.hop.due(c.read, int64(n))
	c.read += int64(n)
	switch {
	case f == nil:
		return n, err
	case f.Kind == Slow:
		select {
		case <-time.After(f.Late):
		case <-c.closed:
		}
		return n, err
	}
	c.spoilt = f
	if left > 0 {
		return int(left), nil
	}
	return c.fail()
}

// due returns the fault that occurs within the next n bytes of a connection, nil for
// none, and the number of bytes before it.
func (h *Hop) due(read, n int64) (*Fault, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.longest = max(h.longest, read+n)
	h.total += n
	if h.reached != nil && h.total >= h.mark {
		go h.reached()
		h.reached = nil
	}
	f := h.fault
	switch {
	case f == nil, n == 0:
		return nil, 0
	case f.Kind == Slow:
		h.happened++
		return f, n
	case read > f.After, read+n <= f.After, f.Times > 0 && h.happened >= f.Times:
		return nil, 0
	}
	h.happened++
	return f, f.After - read
}

func (c *faulty) fail() (int, error) {
	switch c.spoilt.Kind {
	case Stall:
		<-c.closed
		return 0, net.ErrClosed
	case HalfClose:
		return 0, io.EOF
	case Reset:
		c.Conn.Close()
		return 0, errReset
	}
	c.Conn.Close()
	return 0, errClosed
}

// Close also ends a stalled read.
func (c *faulty) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// CloseWrite closes the writing direction.
func (c *faulty) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}
