package cluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Kind is a way in which a connection fails.
type Kind int

// The kinds. All but Slow happen once, after so many bytes, in the direction of
// the client.
const (
	Close     Kind = iota // both directions end in order
	Reset                 // the connection is reset
	HalfClose             // no more bytes come, in order; those of the client still go
	Stall                 // no more bytes come, and the connection stays
	Kill                  // the command is killed, as by a container that ends
	Slow                  // each chunk is late
)

// String names a kind.
func (k Kind) String() string {
	return [...]string{"close", "reset", "half close", "stall", "kill", "slow"}[k]
}

// Fault is what happens to connections of a hop.
type Fault struct {
	Kind  Kind
	After int64         // bytes; connections with fewer go unharmed
	Times int           // how many connections fail; 0 is all of them
	Late  time.Duration // for Slow
}

// Hop is a piece of the way between a client and a container, and what fails there.
type Hop struct {
	Address string // host:port, where it listens on its own

	mu       sync.Mutex
	fault    *Fault
	happened int
	longest  int64
	listener net.Listener
	open     map[io.Closer]bool
}

// Listen opens a hop before target, host:port.
func Listen(target string) (*Hop, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &Hop{Address: listener.Addr().String(), listener: listener, open: map[io.Closer]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go h.forward(client, target)
		}
	}()
	return h, nil
}

// Break sets what happens from now on; nil is nothing.
func (h *Hop) Break(f *Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault, h.happened = f, 0
}

// Longest is how many bytes the longest connection has brought so far.
func (h *Hop) Longest() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.longest
}

// Happened is how often the fault has happened.
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

func (h *Hop) forward(client net.Conn, target string) {
	server, err := net.Dial("tcp", target)
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

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// wrap makes a connection to a server fail as the hop is told.
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
	spoilt *Fault // what has happened to it
	once   sync.Once
	closed chan struct{}
}

// Read gives no byte beyond the point of failure.
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

// due tells whether a fault happens within the next n bytes of a connection,
// and how many of them come before it.
func (h *Hop) due(read, n int64) (*Fault, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.longest = max(h.longest, read+n)
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

// Close ends a stalled read, too.
func (c *faulty) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// CloseWrite ends one direction.
func (c *faulty) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}
