//go:build linux

package keeper

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
	"golang.org/x/sys/unix"

	"ovs-offline/internal/lines"
	"ovs-offline/replica/report"
)

// maxConnections bounds the recorded connections of one namespace that are loaded.
const maxConnections = 200000

// connections are the connections of a namespace: the recorded ones, and what the frames of a question change.
type connections struct {
	recorded []connection
	byKey    map[string]int // index in recorded
	socket   int            // for requests, -1 if the kernel has no table of connections
	flushed  bool           // the recorded connections are not loaded
	changed  map[string]connection
}

// timeouts are the settings of how long a connection lives. A question may come a day after the start.
func timeouts() []string {
	return strings.Fields("generic_timeout icmp_timeout icmpv6_timeout udp_timeout udp_timeout_stream tcp_timeout_syn_sent tcp_timeout_syn_recv tcp_timeout_established tcp_timeout_fin_wait tcp_timeout_close_wait tcp_timeout_last_ack tcp_timeout_time_wait tcp_timeout_close tcp_timeout_max_retrans tcp_timeout_unacknowledged sctp_timeout_established gre_timeout gre_timeout_stream")
}

// restoreConnections loads the recorded connections.
func (s *space) restoreConnections(ctx context.Context) {
	s.flows = &connections{socket: -1, byKey: map[string]int{}, changed: map[string]connection{}}
	s.readConnections()
	if module := s.kernel.missing("nf_conntrack", "nfnetlink", "nf_conntrack_netlink"); module != "" {
		s.report.RejectUnnamed(report.Connections, len(s.flows.recorded), "the kernel of this machine has not loaded what connections need: sudo modprobe %s", module)
		return
	}
	_ = writeSetting("net.netfilter.nf_conntrack_events", "1")
	for _, name := range timeouts() {
		_ = writeSetting("net.netfilter.nf_conntrack_"+name, longTime)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		s.report.RejectUnnamed(report.Connections, len(s.flows.recorded), "%v", err)
		return
	}
	s.flows.socket = fd
	s.loadConnections(ctx)
	for i, c := range s.flows.recorded {
		s.flows.byKey[c.key()] = i
	}
	s.compareConnections()
}

// loadConnections loads what was read, and rejects what the kernel does not take.
func (s *space) loadConnections(ctx context.Context) {
	nat := s.kernel.has("nf_nat")
	for i := range s.flows.recorded {
		s.flows.recorded[i].nat = nat
	}
	for part := range slices.Chunk(s.flows.recorded, batch) {
		if ctx.Err() != nil {
			s.report.RejectUnnamed(report.Connections, len(part), "to load the connections takes longer than a minute")
			for i := range part {
				part[i].rejected = true
			}
			continue
		}
		for i, err := range s.flows.create(part...) {
			if err != nil {
				s.report.Reject(report.Connections, part[i].text, "%v", err)
				part[i].rejected = true
			}
		}
	}
	s.flows.recorded = slices.DeleteFunc(s.flows.recorded, func(c connection) bool { return c.rejected })
}

// readConnections reads the recorded connections.
func (s *space) readConnections() {
	if s.recorded.Conntrack == "" {
		return
	}
	file, err := os.Open(s.recorded.Conntrack)
	if err != nil {
		s.report.Remark("the connections: %v", err)
		return
	}
	defer func() { _ = file.Close() }()
	cut := 0
	if _, err := lines.Read(file, func(raw []byte) error {
		if len(bytes.TrimSpace(raw)) == 0 || !bytes.Contains(raw, []byte("src=")) {
			return nil
		}
		s.report.Record(report.Connections, 1)
		if len(s.flows.recorded) == maxConnections {
			cut++
			return nil
		}
		text := strings.TrimSpace(string(raw[:min(len(raw), 2000)]))
		c, err := parseConnection(text)
		if err != nil {
			s.report.Reject(report.Connections, text, "%v", err)
			return nil
		}
		s.flows.recorded = append(s.flows.recorded, c)
		return nil
	}); err != nil {
		s.report.Remark("the connections: %v", err)
	}
	s.report.RejectUnnamed(report.Connections, cut, "only the first %d connections are loaded", maxConnections)
}

// compareConnections reads the connections back.
func (s *space) compareConnections() {
	if len(s.flows.recorded) == 0 {
		return
	}
	conn, err := conntrack.Dial(nil)
	if err != nil {
		s.report.Remark("the connections can't be read back: %v", err)
		return
	}
	defer func() { _ = conn.Close() }()
	list, err := conn.Dump(nil)
	if err != nil {
		s.report.Remark("the connections can't be read back: %v", err)
		return
	}
	found := map[string]connection{}
	for _, flow := range list {
		c := connectionOf(&flow)
		found[c.key()] = c
	}
	for _, c := range s.flows.recorded {
		got, ok := found[c.key()]
		switch {
		case !ok:
			s.report.Reject(report.Connections, c.text, "it is not in the kernel")
		case got.String() != c.String():
			s.report.Differ(report.Connections, c.text, "it is read back as %s", got)
		default:
			s.report.Restore(report.Connections, 1)
		}
	}
}

// begin makes the table that of the capture, or with fresh an empty one.
func (c *connections) begin(fresh bool) {
	clear(c.changed)
	if c.socket < 0 {
		return
	}
	switch {
	case fresh && !c.flushed && len(c.recorded) > 0:
		c.flush()
		c.flushed = true
	case !fresh && c.flushed:
		for part := range slices.Chunk(c.recorded, batch) {
			c.create(part...)
		}
		c.flushed = false
	}
}

func (c *connections) flush() {
	c.send(request{kind: ctDelete, family: unix.NFPROTO_UNSPEC})
}

// note notes what a message says of a connection.
func (c *connections) note(message netlink.Message) {
	if flow := eventFlow(message); flow != nil {
		one := connectionOf(flow)
		c.changed[one.key()] = one
	}
}

// eventFlow returns the connection that a message is about; nil for other messages.
func eventFlow(message netlink.Message) *conntrack.Flow {
	if uint16(message.Header.Type)>>8 != unix.NFNL_SUBSYS_CTNETLINK {
		return nil
	}
	var event conntrack.Event
	if event.Unmarshal(message) != nil {
		return nil
	}
	return event.Flow
}

// describe returns the connection that a message is about, "" for other messages.
func (c *connections) describe(message netlink.Message) string {
	flow := eventFlow(message)
	if flow == nil || uint16(message.Header.Type)&0xff == ctDelete {
		return ""
	}
	return connectionOf(flow).String()
}

// open makes a connection that an earlier question opened, in place of the one with the same first packet.
func (c *connections) open(text string) error {
	if c.socket < 0 {
		return nil
	}
	one, err := parseConnection(text)
	if err != nil {
		return err
	}
	one.nat = true
	c.send(one.deletion()) // there need not be one
	c.changed[one.key()] = one
	return errors.Join(c.create(one)...)
}

// undo deletes the connections that the frames of a question opened, and restores the connections that they changed.
func (c *connections) undo() {
	if c.socket < 0 {
		return
	}
	for key, one := range c.changed {
		c.send(one.deletion())
		if i, ok := c.byKey[key]; ok && !c.flushed {
			c.create(c.recorded[i])
		}
	}
	clear(c.changed)
}

// Messages and attributes of connections (linux/netfilter/nfnetlink_conntrack.h).
const (
	ctNew    = 0
	ctDelete = 2

	ctaTupleOrig, ctaTupleReply, ctaStatus, ctaProtoInfo, ctaNATSource, ctaTimeout, ctaMark, ctaNATDestination, ctaZone = 1, 2, 3, 4, 6, 7, 8, 13, 18

	ctaTupleIP, ctaTupleProto, ctaTupleZone = 1, 2, 3
)

// batch is how many connections are made by one message.
const batch = 64

// request is a request about a connection.
type request struct {
	kind       int
	flags      netlink.HeaderFlags
	family     uint8
	attributes []netfilter.Attribute
	problem    error // it can't be sent
}

// create makes connections and returns the error of each.
func (c *connections) create(list ...connection) []error {
	requests := make([]request, len(list))
	for i, one := range list {
		requests[i] = one.creation()
	}
	return c.send(requests...)
}

// creation returns the request to make a connection.
func (c connection) creation() request {
	attributes := []netfilter.Attribute{
		c.orig.attribute(ctaTupleOrig, c.protocol),
		c.orig.inverse(c.protocol).attribute(ctaTupleReply, c.protocol),
		{Type: ctaStatus, Data: netfilter.Uint32Bytes(uint32(c.status()))},
		{Type: ctaTimeout, Data: netfilter.Uint32Bytes(8640000)},
		{Type: ctaMark, Data: netfilter.Uint32Bytes(c.mark)},
	}
	if c.zone != 0 {
		attributes = append(attributes, netfilter.Attribute{Type: ctaZone, Data: netfilter.Uint16Bytes(c.zone)})
	}
	if c.protocol == unix.IPPROTO_TCP {
		attributes = append(attributes, tcpInfo(c.state))
	}
	r := request{kind: ctNew, flags: netlink.Create | netlink.Excl, family: c.family()}
	switch translated := c.reply != c.orig.inverse(c.protocol); {
	case c.nat:
		attributes = append(attributes, natAttribute(ctaNATSource, c.reply.destination, c.reply.dport, c.protocol),
			natAttribute(ctaNATDestination, c.reply.source, c.reply.sport, c.protocol))
	case translated:
		r.problem = errors.New("it has its addresses translated: sudo modprobe nf_nat")
	}
	r.attributes = attributes
	return r
}

// deletion returns the request to delete a connection.
func (c connection) deletion() request {
	attributes := []netfilter.Attribute{c.orig.attribute(ctaTupleOrig, c.protocol)}
	if c.zone != 0 {
		attributes = append(attributes, netfilter.Attribute{Type: ctaZone, Data: netfilter.Uint16Bytes(c.zone)})
	}
	return request{kind: ctDelete, family: c.family(), attributes: attributes}
}

// send sends requests by one message, waits for what the kernel says, and returns the error of each.
func (c *connections) send(requests ...request) []error {
	errs := make([]error, len(requests))
	var message []byte
	waiting := 0
	for i, r := range requests {
		raw, err := netfilter.MarshalAttributes(r.attributes)
		if errs[i] = errors.Join(r.problem, err); errs[i] != nil {
			continue
		}
		one, err := netlink.Message{
			Header: netlink.Header{Length: uint32(unix.NLMSG_HDRLEN + 4 + len(raw)), Sequence: uint32(i), Flags: netlink.Request | netlink.Acknowledge | r.flags,
				Type: netlink.HeaderType(unix.NFNL_SUBSYS_CTNETLINK<<8 | r.kind)},
			Data: append([]byte{r.family, 0, 0, 0}, raw...),
		}.MarshalBinary()
		if errs[i] = err; err == nil {
			message = append(message, one...)
			waiting++
		}
	}
	if waiting == 0 {
		return errs
	}
	if err := unix.Sendto(c.socket, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		for i := range errs {
			errs[i] = errors.Join(errs[i], err)
		}
		return errs
	}
	c.receive(errs, waiting)
	return errs
}

// receive reads the kernel's answers to requests.
func (c *connections) receive(errs []error, waiting int) {
	for buffer := make([]byte, 64<<10); waiting > 0; {
		n, _, err := unix.Recvfrom(c.socket, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			errs[0] = errors.Join(errs[0], err)
			return
		}
		splitMessages(buffer[:n], func(message netlink.Message) {
			waiting--
			if message.Header.Type != netlink.Error || len(message.Data) < 4 {
				return
			}
			code := int32(binary.NativeEndian.Uint32(message.Data))
			if i := int(message.Header.Sequence); code != 0 && i < len(errs) {
				errs[i] = unix.Errno(-code)
			}
		})
	}
}

// tcpInfo returns the state of a TCP connection. Its sequence numbers were not recorded, so any are taken.
func tcpInfo(state uint8) netfilter.Attribute {
	const protoInfoTCP, tcpState, flagsOrig, flagsReply, liberal = 1, 1, 4, 5, 8
	return netfilter.Attribute{Type: ctaProtoInfo, Nested: true, Children: []netfilter.Attribute{{Type: protoInfoTCP, Nested: true, Children: []netfilter.Attribute{
		{Type: tcpState, Data: []byte{state}},
		{Type: flagsOrig, Data: []byte{liberal, liberal}},
		{Type: flagsReply, Data: []byte{liberal, liberal}},
	}}}}
}

// natAttribute returns to which address and port an address is translated, perhaps to itself.
func natAttribute(kind uint16, to netip.Addr, port, protocol uint16) netfilter.Attribute {
	const minIP4, maxIP4, proto, minIP6, maxIP6, minPort, maxPort = 1, 2, 3, 4, 5, 1, 2
	low, high := uint16(minIP4), uint16(maxIP4)
	if to.Is6() {
		low, high = minIP6, maxIP6
	}
	children := []netfilter.Attribute{{Type: low, Data: to.AsSlice()}, {Type: high, Data: to.AsSlice()}}
	if hasPorts(protocol) || isICMP(protocol) { // the ID of ICMP is translated as a port is
		children = append(children, netfilter.Attribute{Type: proto, Nested: true, Children: []netfilter.Attribute{
			{Type: minPort, Data: netfilter.Uint16Bytes(port)}, {Type: maxPort, Data: netfilter.Uint16Bytes(port)}}})
	}
	return netfilter.Attribute{Type: kind, Nested: true, Children: children}
}

func hasPorts(protocol uint16) bool {
	return slices.Contains([]uint16{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_UDPLITE}, protocol)
}

// String returns the connection as conntrack -L prints it, without times and counters.
func (c connection) String() string {
	name := protocolName(c.protocol)
	words := []string{name}
	if c.protocol == unix.IPPROTO_TCP {
		words = append(words, tcpStates()[min(int(c.state), len(tcpStates())-1)])
	}
	words = append(words, c.orig.text(c.protocol))
	if !c.seenReply {
		words = append(words, "[UNREPLIED]")
	}
	words = append(words, c.reply.text(c.protocol))
	if c.assured {
		words = append(words, "[ASSURED]")
	}
	if c.mark != 0 {
		words = append(words, fmt.Sprint("mark=", c.mark))
	}
	if c.zone != 0 {
		words = append(words, fmt.Sprint("zone=", c.zone))
	}
	return strings.Join(words, " ")
}
