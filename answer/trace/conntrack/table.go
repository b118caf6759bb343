package conntrack

import (
	"fmt"
	"io"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"ovs-offline/internal/lines"
	"ovs-offline/pkg/openflow"
)

// Connection is a connection in one zone. It never changes.
type Connection struct {
	Zone        uint16
	Orig, Reply Tuple
	Mark        uint32
	Label       string // hexadecimal with 0x, "" for 0
	// SeenReply reports whether the table showed that an answer was seen; Known is
	// false if the table does not record that.
	SeenReply, Known bool
	// Unlabelled reports that the table does not show the connection's label.
	Unlabelled bool
	// The states of both ends of a TCP connection ("ESTABLISHED"), "" if not recorded.
	OrigState, ReplyState string
	Related               bool // it belongs to another connection
	assumed               bool // the connection is not recorded, and its address translation not known
	// unsure is why the translated address or port is not known, "" if it is known: the
	// connection has one of several that NAT may have chosen.
	unsure string
	// taken reports that the address and port in Reply are another connection's, so that NAT chooses others.
	taken bool
}

// String returns the connection as dpctl/dump-conntrack prints it, with what matters here.
func (c *Connection) String() string {
	text := fmt.Sprintf("%s,orig=(%s),reply=(%s),zone=%d", protocolName(c.Orig.Proto), c.Orig, c.Reply, c.Zone)
	if c.Mark != 0 {
		text += fmt.Sprintf(",mark=%d", c.Mark)
	}
	if c.Label != "" {
		text += ",labels=" + c.Label
	}
	if c.OrigState != "" {
		text += fmt.Sprintf(",protoinfo=(state_orig=%s,state_reply=%s)", c.OrigState, c.ReplyState)
	}
	return text
}

// Protocol returns the name of the connection's protocol, or its number.
func (c *Connection) Protocol() string { return protocolName(c.Orig.Proto) }

// Table holds the connections that a node's dpctl/dump-conntrack printed. It never
// changes after Read. A node has up to a million, each of which takes 400 bytes.
type Table struct {
	connections []Connection
	first       map[key]int32 // a direction of a connection: twice its index, and 1 for replies
	next        []int32       // by direction: the next direction with the same key, or end
}

const end = -1

// key is what a lookup compares; the ID of ICMP is compared separately.
type key struct {
	src, dst         [16]byte
	zone             uint16
	srcPort, dstPort uint16
	proto            uint8
	six              bool
}

// found is a connection and the direction that a key matches.
type found struct {
	connection *Connection
	reply      bool
}

func keyOf(zone uint16, t Tuple) key {
	return key{t.Src.As16(), t.Dst.As16(), zone, t.SrcPort, t.DstPort, t.Proto, t.Src.Is6()}
}

// maxConnections bounds a table: net.netfilter.nf_conntrack_max is rarely larger.
const maxConnections = 4 << 20

// Read reads the output of dpctl/dump-conntrack, with or without -m and -s, or of conntrack(8) -L. It returns
// the number of lines that it could not read.
func Read(r io.Reader) (t *Table, unread int, err error) {
	t = &Table{first: map[key]int32{}}
	tooMany := 0
	unread, err = Each(r, func(connection *Connection) error {
		if len(t.connections) == maxConnections {
			tooMany++
			return nil
		}
		t.add(*connection)
		return nil
	})
	return t, unread + tooMany, err
}

// Each calls use with each connection of the output of dpctl/dump-conntrack, with or without -m and -s, or of
// conntrack(8) -L.
// It returns the number of lines that it could not read.
func Each(r io.Reader, use func(*Connection) error) (unread int, err error) {
	skipped, err := lines.Read(r, func(raw []byte) error {
		line := strings.TrimSpace(string(raw))
		if line == "" || isBanner(line) {
			return nil
		}
		connection, ok := ParseConnection(line)
		if !ok {
			unread++
			return nil
		}
		return use(connection)
	})
	return unread + skipped, err
}

// Len returns the number of connections.
func (t *Table) Len() int { return len(t.connections) }

// InZone returns the connections of a zone. A nil table has none.
func (t *Table) InZone(zone uint16) iter.Seq[*Connection] {
	return func(yield func(*Connection) bool) {
		if t == nil {
			return
		}
		for i := range t.connections {
			if t.connections[i].Zone == zone && !yield(&t.connections[i]) {
				return
			}
		}
	}
}

func (t *Table) add(connection Connection) {
	t.connections = append(t.connections, connection)
	for _, direction := range []Tuple{connection.Orig, connection.Reply} {
		sought := keyOf(connection.Zone, direction)
		before, ok := t.first[sought]
		if !ok {
			before = end
		}
		t.first[sought] = int32(len(t.next))
		t.next = append(t.next, before)
	}
}

// find returns the connection of a tuple. several reports that more than one matches,
// because the tuple's ICMP identifier is not known.
func (t *Table) find(zone uint16, tuple Tuple) (match found, several, ok bool) {
	if t == nil {
		return found{}, false, false
	}
	at, known := t.first[keyOf(zone, tuple)]
	for ; known && at != end; at = t.next[at] {
		candidate := found{&t.connections[at/2], at%2 == 1}
		if !sameID(tuple, candidate) {
			continue
		}
		switch {
		case !ok:
			match, ok = candidate, true
		case match.connection == candidate.connection:
			match.reply = false // both directions have the same tuple
		default:
			return candidate, true, true // the first of them
		}
	}
	return match, false, ok
}

// sameID reports whether the identifier of an ICMP query is the connection's; one that is not
// known is every connection's.
func sameID(tuple Tuple, match found) bool {
	id := match.id()
	return !tuple.isICMP() || tuple.ID == 0 || id == 0 || tuple.ID == id
}

// id returns the identifier of an ICMP connection in the direction that was found, 0 if it is not
// known.
func (c found) id() uint16 {
	switch {
	case c.connection == nil:
		return 0
	case c.reply:
		return c.connection.Reply.ID
	}
	return c.connection.Orig.ID
}

// ParseConnection reads a line of dpctl/dump-conntrack or of conntrack(8) -L.
func ParseConnection(line string) (connection *Connection, ok bool) {
	connection = &Connection{}
	proto, rest, found := strings.Cut(line, ",")
	if !found {
		return parseKernel(line)
	}
	number, ok := protocolNumber(proto)
	if !ok {
		return nil, false
	}
	for token := range openflow.Split(rest) {
		name, value, _ := strings.Cut(token, "=")
		if connection.set(number, name, value) != nil {
			return nil, false
		}
	}
	return connection, connection.Orig.Src.IsValid() && connection.Reply.Src.IsValid()
}

// set reads a field of a connection.
func (c *Connection) set(proto uint8, name, value string) (err error) {
	switch name {
	case "orig":
		c.Orig, err = parseTuple(proto, value)
	case "reply":
		c.Reply, err = parseTuple(proto, value)
	case "zone":
		var zone uint64
		zone, err = strconv.ParseUint(value, 0, 16)
		c.Zone = uint16(zone)
	case "mark":
		var mark uint64
		mark, err = strconv.ParseUint(value, 0, 32)
		c.Mark = uint32(mark)
	case "labels":
		c.Label = strings.Clone(value)
	case "status":
		// Linux confirms each connection in its table; the userspace datapath has no status.
		c.Known, c.SeenReply = strings.Contains(value, "CONFIRMED"), strings.Contains(value, "SEEN_REPLY")
		c.Related = strings.Contains("|"+value+"|", "|EXPECTED|")
	case "protoinfo":
		c.setStates(value)
	}
	return err
}

// setStates reads the states of both ends of a TCP connection.
func (c *Connection) setStates(value string) {
	for _, token := range strings.Split(strings.Trim(value, "()"), ",") {
		switch name, state, _ := strings.Cut(token, "="); name {
		case "state":
			c.OrigState, c.ReplyState = intern(state), intern(state)
		case "state_orig":
			c.OrigState = intern(state)
		case "state_reply":
			c.ReplyState = intern(state)
		}
	}
}

// intern returns the name of a TCP state without the line that it is part of.
func intern(state string) string {
	for _, name := range []string{"ESTABLISHED", "TIME_WAIT", "SYN_SENT", "SYN_RECV", "CLOSED", "CLOSING", "FIN_WAIT_1", "FIN_WAIT_2", "CLOSE_WAIT", "LAST_ACK", "LISTEN"} {
		if state == name {
			return name
		}
	}
	return strings.Clone(state)
}

// protocolName is the reverse of protocolNumber.
func protocolName(number uint8) string {
	for _, name := range []string{"icmp", "tcp", "udp", "icmpv6", "sctp", "igmp", "dccp", "udplite"} {
		if n, _ := protocolNumber(name); n == number {
			return name
		}
	}
	return strconv.Itoa(int(number))
}

func protocolNumber(name string) (uint8, bool) {
	switch name {
	case "icmp":
		return 1, true
	case "tcp":
		return 6, true
	case "udp":
		return 17, true
	case "icmpv6":
		return 58, true
	case "sctp":
		return 132, true
	case "igmp":
		return 2, true
	case "dccp":
		return 33, true
	case "udplite":
		return 136, true
	}
	n, err := strconv.ParseUint(name, 10, 8)
	return uint8(n), err == nil
}

func parseTuple(proto uint8, text string) (t Tuple, err error) {
	t.Proto = proto
	for _, token := range strings.Split(strings.Trim(text, "()"), ",") {
		name, value, _ := strings.Cut(token, "=")
		var n uint64
		switch name {
		case "src":
			t.Src, err = netip.ParseAddr(value)
		case "dst":
			t.Dst, err = netip.ParseAddr(value)
		case "sport", "type":
			n, err = strconv.ParseUint(value, 10, 16)
			t.SrcPort = uint16(n)
		case "dport", "code":
			n, err = strconv.ParseUint(value, 10, 16)
			t.DstPort = uint16(n)
		case "id":
			n, err = strconv.ParseUint(value, 10, 16)
			t.ID = uint16(n)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}
