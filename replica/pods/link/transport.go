package link

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// nearConfig returns the parameters of the near end. It accepts any host key: what encrypts
// and authenticates the stream is the connection to the API server.
func nearConfig() *ssh.ClientConfig {
	return &ssh.ClientConfig{Config: common(), HostKeyCallback: ssh.InsecureIgnoreHostKey(), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519}}
}

// farConfig returns the parameters of the far end, with a host key for this one connection.
func farConfig() (*ssh.ServerConfig, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{Config: common(), NoClientAuth: true}
	config.AddHostKey(signer)
	return config, nil
}

// common returns the fastest key exchange: a stronger one would protect nothing more.
func common() ssh.Config { return ssh.Config{KeyExchanges: []string{ssh.KeyExchangeCurve25519}} }

// transport is a stream as the connection that SSH takes. Unlike a stream's Read, its Read
// ends with Close.
type transport struct {
	net.Conn                       // one end of a pipe; the stream is at the other
	end      func() error          // closes the stream, once
	cause    atomic.Pointer[error] // of the end
}

func newTransport(stream io.ReadWriteCloser) *transport {
	near, far := net.Pipe()
	transport := &transport{Conn: near, end: sync.OnceValue(stream.Close)}
	go func() {
		defer far.Close()
		_, err := io.Copy(far, stream)
		transport.ends(cmp.Or(err, io.EOF))
	}()
	go func() {
		_, _ = io.Copy(stream, far) // where the stream is read, its end is noticed with the cause
	}()
	return transport
}

// ends notes the cause of the end. The first is the true one.
func (t *transport) ends(cause error) { t.cause.CompareAndSwap(nil, &cause) }

// Close closes the stream.
func (t *transport) Close() error {
	t.ends(net.ErrClosed)
	return errors.Join(t.Conn.Close(), t.end())
}

// keepAlive closes a connection whose other end is silent for too long. It returns when the
// connection has ended.
func keepAlive(conn ssh.Conn, transport *transport, pause, silence time.Duration) {
	for {
		time.Sleep(pause)
		tooLong := time.AfterFunc(silence, func() {
			transport.ends(fmt.Errorf("no answer for %s", silence))
			transport.Close()
		})
		_, _, err := conn.SendRequest(requestKeepalive, true, nil)
		tooLong.Stop()
		if err != nil {
			return
		}
	}
}

// join copies between two connections until one of them ends, and closes both.
func join(a, b io.ReadWriteCloser) {
	go func() {
		_, _ = io.Copy(a, b) // an error is the end of either
		a.Close()
		b.Close()
	}()
	_, _ = io.Copy(b, a)
	a.Close()
	b.Close()
}
