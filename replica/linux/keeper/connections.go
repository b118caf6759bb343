//go:build linux

package keeper

import (
	"bytes"
	"context"
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
	conn     *netlink.Conn  // nil if the kernel has no table of connections
	flushed  bool           // the recorded connections are not loaded
	changed  map[string]connection
}

// timeouts are the settings of how long a connection lives. A question may come a day after the start.
func timeouts() []string {
	return strings.Fields("generic_timeout icmp_timeout icmpv6_timeout udp_timeout udp_timeout_stream tcp_timeout_syn_sent tcp_timeout_syn_recv tcp_timeout_established tcp_timeout_fin_wait tcp_timeout_close_wait tcp_timeout_last_ack tcp_timeout_time_wait tcp_timeout_close tcp_timeout_max_retrans tcp_timeout_unacknowledged sctp_timeout_established gre_timeout gre_timeout_stream")
}

// restoreConnections loads the recorded connections.
func (s *space) restoreConnections(ctx context.Context) {
	s.flows = &connections{byKey: map[string]int{}, changed: map[string]connection{}}
	s.readConnections()
	if module := s.kernel.missing("nf_conntrack", "nfnetlink", "nf_conntrack_netlink"); module != "" {
		s.report.RejectUnnamed(report.Connections, len(s.flows.recorded), "the kernel of this machine has not loaded what connections need: sudo modprobe %s", module)
		return
	}
	_ = writeSetting("net.netfilter.nf_conntrack_events", "1")
	for _, name := range timeouts() {
		_ = writeSetting("net.netfilter.nf_conntrack_"+name, longTime)
	}
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		s.report.RejectUnnamed(report.Connections, len(s.flows.recorded), "%v", err)
		return
	}
	s.flows.conn = conn
	nat := s.kernel.has("nf_nat")
	for i := range s.flows.recorded {
		c := &s.flows.recorded[i]
		c.nat = nat
		if ctx.Err() != nil {
			s.report.RejectUnnamed(report.Connections, len(s.flows.recorded)-i, "to load the connections took too long")
			s.flows.recorded = s.flows.recorded[:i]
			break
		}
		if err := s.flows.create(*c); err != nil {
			s.report.Reject(report.Connections, c.text, "%v", err)
			c.rejected = true
		}
	}
	s.flows.recorded = slices.DeleteFunc(s.flows.recorded, func(c connection) bool { return c.rejected })
	for i, c := range s.flows.recorded {
		s.flows.byKey[c.key()] = i
	}
	s.compareConnections()
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
	if c.conn == nil {
		return
	}
	switch {
	case fresh && !c.flushed && len(c.recorded) > 0:
		c.flush()
		c.flushed = true
	case !fresh && c.flushed:
		for _, one := range c.recorded {
			_ = c.create(one)
		}
		c.flushed = false
	}
}

func (c *connections) flush() {
	_ = c.send(unix.NFNL_SUBSYS_CTNETLINK, ctDelete, 0, unix.NFPROTO_UNSPEC, nil)
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
	if c.conn == nil {
		return nil
	}
	one, err := parseConnection(text)
	if err != nil {
		return err
	}
	one.nat = true
	_ = c.delete(one) // there need not be one
	c.changed[one.key()] = one
	return c.create(one)
}

// undo deletes the connections that the frames of a question opened, and makes those that they changed what they
// were.
func (c *connections) undo() {
	if c.conn == nil {
		return
	}
	for key, one := range c.changed {
		_ = c.delete(one)
		if i, ok := c.byKey[key]; ok && !c.flushed {
			_ = c.create(c.recorded[i])
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

// create makes a connection.
func (c *connections) create(one connection) error {
	attributes := []netfilter.Attribute{
		one.orig.attribute(ctaTupleOrig, one.protocol),
		one.orig.inverse(one.protocol).attribute(ctaTupleReply, one.protocol),
		{Type: ctaStatus, Data: netfilter.Uint32Bytes(uint32(one.status()))},
		{Type: ctaTimeout, Data: netfilter.Uint32Bytes(8640000)},
		{Type: ctaMark, Data: netfilter.Uint32Bytes(one.mark)},
	}
	if one.zone != 0 {
		attributes = append(attributes, netfilter.Attribute{Type: ctaZone, Data: netfilter.Uint16Bytes(one.zone)})
	}
	if one.protocol == unix.IPPROTO_TCP {
		attributes = append(attributes, tcpInfo(one.state))
	}
	translated := one.reply != one.orig.inverse(one.protocol)
	if translated && !one.nat {
		return errors.New("it has its addresses translated: sudo modprobe nf_nat")
	}
	if one.nat {
		attributes = append(attributes, natAttribute(ctaNATSource, one.reply.destination, one.reply.dport, one.protocol),
			natAttribute(ctaNATDestination, one.reply.source, one.reply.sport, one.protocol))
	}
	return c.send(unix.NFNL_SUBSYS_CTNETLINK, ctNew, netlink.Create|netlink.Excl, one.family(), attributes)
}

// delete deletes a connection.
func (c *connections) delete(one connection) error {
	attributes := []netfilter.Attribute{one.orig.attribute(ctaTupleOrig, one.protocol)}
	if one.zone != 0 {
		attributes = append(attributes, netfilter.Attribute{Type: ctaZone, Data: netfilter.Uint16Bytes(one.zone)})
	}
	return c.send(unix.NFNL_SUBSYS_CTNETLINK, ctDelete, 0, one.family(), attributes)
}

// send sends a request and waits for what the kernel says.
func (c *connections) send(subsystem, kind int, flags netlink.HeaderFlags, family uint8, attributes []netfilter.Attribute) error {
	raw, err := netfilter.MarshalAttributes(attributes)
	if err != nil {
		return err
	}
	_, err = c.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(subsystem<<8 | kind), Flags: netlink.Request | netlink.Acknowledge | flags},
		Data:   append([]byte{family, 0, 0, 0}, raw...),
	})
	return err
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
