// Package truth asks questions with real packets, and compares what ovs-offline answers with
// what happened to them.
package truth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"ovs-offline/test/e2e/k8s/cluster"
)

// ServerPort is the port at which Serve answers.
const ServerPort = 8080

// Serve answers TCP connections and UDP packets at ServerPort of all addresses of a
// network with a name, until it is closed.
func Serve(network cluster.Network, name string) (io.Closer, error) {
	var listener net.Listener
	var packets net.PacketConn
	err := network.Do(func() (err error) {
		if listener, err = net.Listen("tcp", fmt.Sprintf(":%d", ServerPort)); err != nil {
			return err
		}
		packets, err = net.ListenPacket("udp", fmt.Sprintf(":%d", ServerPort))
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, name)
			c.Close()
		}
	}()
	go func() {
		for question := make([]byte, 64); ; {
			_, from, err := packets.ReadFrom(question)
			if err != nil {
				return
			}
			packets.WriteTo([]byte(name), from)
		}
	}()
	return closers{listener, packets}, nil
}

// closers are closed together.
type closers []io.Closer

// Close closes all of them.
func (list closers) Close() error {
	var errs []error
	for _, c := range list {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// patience is how long Ask waits for an answer. Silence is an answer too, the one of a packet that is dropped, so that
// most questions do wait so long.
const patience = 1500 * time.Millisecond

// Ask sends packets of a protocol (tcp, udp, icmp) from a network, and returns the name
// that a server of Serve answers, for icmp "pong". The answer is "" if none comes.
func Ask(ctx context.Context, network cluster.Network, protocol string, to netip.AddrPort) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = network.Do(func() error {
		if protocol == "icmp" {
			answer, err = ping(to.Addr())
		} else {
			answer, err = converse(ctx, protocol, to)
		}
		return err
	})
	if err != nil && !isSilence(err) {
		return "", err
	}
	return answer, nil
}

// isSilence reports whether an error means that no answer came, or a refusal.
func isSilence(err error) bool {
	var operation *net.OpError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &operation)
}

func converse(ctx context.Context, protocol string, to netip.AddrPort) (string, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, protocol, to.String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if protocol == "tcp" {
		c.SetDeadline(deadline)
		answer, err := io.ReadAll(c)
		return string(answer), err
	}
	answer := make([]byte, 64)
	for { // a packet may be lost on a loaded machine, and UDP does not send it again
		if _, err := io.WriteString(c, "who?"); err != nil {
			return "", err
		}
		c.SetReadDeadline(time.Now().Add(patience / 3))
		n, err := c.Read(answer)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(deadline.Add(-patience/3)) {
			return string(answer[:n]), err
		}
	}
}

// ping sends an echo request and waits for the reply.
func ping(to netip.Addr) (string, error) {
	family, any, protocol := "ip4:icmp", "0.0.0.0", 1
	var kind icmp.Type = ipv4.ICMPTypeEcho
	if to.Is6() {
		family, any, protocol, kind = "ip6:ipv6-icmp", "::", 58, ipv6.ICMPTypeEchoRequest
	}
	c, err := icmp.ListenPacket(family, any)
	if err != nil {
		return "", err
	}
	defer c.Close()
	data := []byte("ovs-offline " + to.String())
	message := icmp.Message{Type: kind, Body: &icmp.Echo{ID: os.Getpid() & 0xffff, Seq: 1, Data: data}}
	request, err := message.Marshal(nil)
	if err != nil {
		return "", err
	}
	if _, err := c.WriteTo(request, &net.IPAddr{IP: to.AsSlice()}); err != nil {
		return "", err
	}
	c.SetDeadline(time.Now().Add(patience))
	for buffer := make([]byte, 1500); ; {
		n, _, err := c.ReadFrom(buffer)
		if err != nil {
			return "", err
		}
		reply, err := icmp.ParseMessage(protocol, buffer[:n])
		if err != nil || !strings.HasSuffix(fmt.Sprint(reply.Type), "reply") {
			continue
		}
		if echo, ok := reply.Body.(*icmp.Echo); ok && bytes.Equal(echo.Data, data) {
			return "pong", nil
		}
	}
}

// ServeAll starts the servers of several peers.
func ServeAll(peers []Peer) (io.Closer, error) {
	var all closers
	for _, p := range peers {
		c, err := Serve(p.Network, p.Name)
		if err != nil {
			all.Close()
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		all = append(all, c)
	}
	return all, nil
}
