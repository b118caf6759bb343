package sets

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// relay is the process that keeps a network namespace of a node and moves frames between its devices and
// Open vSwitch: the program in the folder relay.
type relay struct {
	name string // NODE-NAMESPACE
	conn net.Conn
}

// openRelays connects to the relays of a running set.
func openRelays(dir string) (list []*relay, err error) {
	sockets, err := filepath.Glob(filepath.Join(dir, "relays", "*"))
	if err != nil {
		return nil, err
	}
	for _, socket := range sockets {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, errors.Join(err, closeRelays(list))
		}
		list = append(list, &relay{filepath.Base(socket), conn})
	}
	return list, nil
}

func closeRelays(list []*relay) (err error) {
	for _, r := range list {
		err = errors.Join(err, r.conn.Close())
	}
	return err
}

// moved waits until no frame waits for the relay, and returns how many it has moved.
func (r *relay) moved() (uint64, error) {
	return r.ask([]byte{'?'})
}

// send lets a process of the namespace send the packet in a frame.
func (r *relay) send(frame []byte) error {
	const header = 14
	if len(frame) < header+20 {
		return fmt.Errorf("a frame of %d bytes holds no packet", len(frame))
	}
	packet := frame[header:] // a short frame is filled up behind it
	if length := int(binary.BigEndian.Uint16(packet[2:])); length < len(packet) {
		packet = packet[:length]
	}
	_, err := r.ask(append(binary.BigEndian.AppendUint16([]byte{'!'}, uint16(len(packet))), packet...))
	return err
}

// ask sends a request and returns the number of moved frames, with which the relay answers.
func (r *relay) ask(request []byte) (uint64, error) {
	if _, err := r.conn.Write(request); err != nil {
		return 0, err
	}
	var count [8]byte
	_, err := io.ReadFull(r.conn, count[:])
	return binary.BigEndian.Uint64(count[:]), err
}

// numbered reports whether a frame whose number is known is the packet of one of the steps that were just
// sent. The kernel gives its own packets any numbers.
func numbered(steps []*step, m marks) bool {
	return slices.ContainsFunc(steps, func(s *step) bool {
		return (s.ID == m.number || s.Datagram == m.number) && s.marks.kind == m.kind && s.marks.quoted == m.quoted
	})
}

// asked reports whether a frame is part of what the kernels of network namespaces do by themselves, whichever
// packet is sent: they ask for neighbours, are answered, and tell routers about groups.
func (w *wire) asked(current *step, c caught) bool {
	m := read(c.frame)
	return w.spaces && m.resolves() && !current.marks.resolves()
}

// resolves reports whether a packet belongs to ARP, neighbour discovery, or the management of groups.
func (m marks) resolves() bool {
	switch m.kind {
	case "arp", "igmp":
		return true
	case "icmp6":
		const listenerQuery, listenerDone, routerSolicitation, redirect, listenerReport = 130, 132, 133, 137, 143
		return listenerQuery <= m.icmpType && m.icmpType <= listenerDone || routerSolicitation <= m.icmpType && m.icmpType < redirect || m.icmpType == listenerReport
	}
	return false
}

// reply lets the host for whose MAC a frame asks answer, if it came out at the host's port.
func (w *wire) reply(ctx context.Context, c caught) error {
	for _, h := range w.hosts {
		if h.label != c.port.Label {
			continue
		}
		f, ok := h.answerTo(c.frame)
		if !ok {
			continue
		}
		raw, err := f.bytes(0)
		if err != nil {
			return err
		}
		if err := w.cables.put(ctx, c.port, raw); err != nil {
			return err
		}
	}
	return nil
}

// whileHostsAnswer does something that takes long. Meanwhile, the kernels of network namespaces ask again for the
// neighbours that they use, and forget a neighbour that does not answer.
func (w *wire) whileHostsAnswer(ctx context.Context, do func() error) error {
	if !w.spaces {
		return do()
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	const pause = 50 * time.Millisecond
	for nobody := []*step{{}}; ; {
		select {
		case err := <-done:
			return err
		case <-time.After(pause):
		}
		if _, err := w.collect(ctx, nobody); err != nil {
			return errors.Join(err, <-done)
		}
	}
}

// answerTo returns the host's answer to a frame that asks for its MAC.
func (h host) answerTo(raw []byte) (frame, bool) {
	p := gopacket.NewPacket(raw, layers.LayerTypeEthernet, gopacket.Default)
	if tag, tagged := p.Layer(layers.LayerTypeDot1Q).(*layers.Dot1Q); tagged != (h.vlan != 0) || tagged && tag.VLANIdentifier != h.vlan {
		return frame{}, false
	}
	if a, ok := p.Layer(layers.LayerTypeARP).(*layers.ARP); ok {
		asker, target := net.IP(a.SourceProtAddress), net.IP(a.DstProtAddress)
		f := h.between(asker.String(), []string{net.HardwareAddr(a.SourceHwAddress).String()})
		f.proto, f.flags = "arp", "reply"
		return f, a.Operation == layers.ARPRequest && target.String() == h.ip
	}
	n, ok := p.Layer(layers.LayerTypeICMPv6NeighborSolicitation).(*layers.ICMPv6NeighborSolicitation)
	ip, _ := p.Layer(layers.LayerTypeIPv6).(*layers.IPv6)
	if !ok || ip == nil || ip.SrcIP.IsUnspecified() || n.TargetAddress.String() != h.ip6 {
		return frame{}, false
	}
	eth, ok := p.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
	if !ok {
		return frame{}, false
	}
	return h.advertise(ip.SrcIP.String(), eth.SrcMAC.String()), true
}

// MissingForNamespaces returns why a set of NamespaceNames cannot run here, "" if it can.
func MissingForNamespaces() string {
	if os.Geteuid() != 0 {
		return "network namespaces with the kernel's iptables need root"
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Sprintf("no taps: %v", err)
	}
	programs := []string{"ip", "iptables-restore", "nft", "conntrack", "ipset", "sysctl", "nsenter", "setsid"}
	if os.Getenv("LAB_RELAY") == "" { // which names the built relay
		programs = append(programs, "go")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("no program: %v", err)
		}
	}
	return ""
}

// MissingForVRFs returns why a set of VRFNames cannot run here, "" if it can.
func MissingForVRFs() string {
	if missing := MissingForNamespaces(); missing != "" {
		return missing
	}
	if out, err := exec.Command("unshare", "--net", "ip", "link", "add", "name", "vrf1", "type", "vrf", "table", "1").CombinedOutput(); err != nil {
		return fmt.Sprintf("the kernel has no VRFs: %s (%v)", strings.TrimSpace(string(out)), err)
	}
	return ""
}
