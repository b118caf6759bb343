package conntrack

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"ovs-offline/internal/portmap"
)

// Entry is a connection in one zone. It never changes.
type Entry struct {
	Zone        uint16
	Orig, Reply Tuple
	Mark        uint32
	Label       string // hexadecimal with 0x, "" for 0
	// SeenReply reports whether the table showed that an answer was seen; Known is
	// false if the table does not record that.
	SeenReply, Known bool
	// The states of both ends of a TCP connection ("ESTABLISHED"), "" if not recorded.
	OrigState, ReplyState string
	Related               bool // it belongs to another connection
	assumed               bool // it is not recorded, and its address translation not known
	// unsure is why the translated address or port is not known, "" if it is. The one in
	// the entry is one of several that NAT may have chosen.
	unsure string
}

// String returns the connection as dpctl/dump-conntrack prints it, with what matters here.
func (e *Entry) String() string {
	text := fmt.Sprintf("%s,orig=(%s),reply=(%s),zone=%d", protocolName(e.Orig.Proto), e.Orig, e.Reply, e.Zone)
	if e.Mark != 0 {
		text += fmt.Sprintf(",mark=%d", e.Mark)
	}
	if e.Label != "" {
		text += ",labels=" + e.Label
	}
	if e.OrigState != "" {
		text += fmt.Sprintf(",protoinfo=(state_orig=%s,state_reply=%s)", e.OrigState, e.ReplyState)
	}
	return text
}

// Table holds the connections that a node's dpctl/dump-conntrack printed. It never
// changes after Read. A node has up to a million, each of which takes 400 bytes.
type Table struct {
	entries []Entry
	first   map[key]int32 // a direction of an entry: twice its index, and 1 for replies
	next    []int32       // by direction: the next direction with the same key, or end
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
	entry *Entry
	reply bool
}

func keyOf(zone uint16, t Tuple) key {
	return key{t.Src.As16(), t.Dst.As16(), zone, t.SrcPort, t.DstPort, t.Proto, t.Src.Is6()}
}

// maxEntries bounds a table: net.netfilter.nf_conntrack_max is rarely larger.
const maxEntries = 4 << 20

// Read reads the output of dpctl/dump-conntrack, with or without -m and -s. It returns
// the number of lines that it could not read.
func Read(r io.Reader) (t *Table, unread int, err error) {
	t = &Table{first: map[key]int32{}}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		e, ok := ParseEntry(line)
		if !ok || len(t.entries) == maxEntries {
			unread++
			continue
		}
		t.add(*e)
	}
	return t, unread, scanner.Err()
}

// Len returns the number of connections.
func (t *Table) Len() int { return len(t.entries) }

func (t *Table) add(e Entry) {
	t.entries = append(t.entries, e)
	for _, direction := range []Tuple{e.Orig, e.Reply} {
		k := keyOf(e.Zone, direction)
		before, ok := t.first[k]
		if !ok {
			before = end
		}
		t.first[k] = int32(len(t.next))
		t.next = append(t.next, before)
	}
}

// find returns the connection of a tuple. several reports that more than one matches,
// because the tuple's ICMP identifier is not known.
func (t *Table) find(zone uint16, tuple Tuple) (f found, several, ok bool) {
	if t == nil {
		return found{}, false, false
	}
	at, known := t.first[keyOf(zone, tuple)]
	for ; known && at != end; at = t.next[at] {
		c := found{&t.entries[at/2], at%2 == 1}
		if !sameID(tuple, c) {
			continue
		}
		switch {
		case !ok:
			f, ok = c, true
		case f.entry == c.entry:
			f.reply = false // both directions have the same tuple
		default:
			return c, true, true // the first of them
		}
	}
	return f, false, ok
}

// sameID compares the identifier of an ICMP query; one that is not known matches all.
func sameID(tuple Tuple, c found) bool {
	id := c.entry.Orig.ID
	if c.reply {
		id = c.entry.Reply.ID
	}
	return !tuple.isICMP() || tuple.ID == 0 || id == 0 || tuple.ID == id
}

// ParseEntry reads a line of dpctl/dump-conntrack.
func ParseEntry(line string) (e *Entry, ok bool) {
	e = &Entry{}
	proto, rest, found := strings.Cut(line, ",")
	if !found {
		return nil, false
	}
	number, ok := protocolNumber(proto)
	if !ok {
		return nil, false
	}
	for _, token := range portmap.SplitActions(rest) {
		name, value, _ := strings.Cut(token, "=")
		if e.set(number, name, value) != nil {
			return nil, false
		}
	}
	return e, e.Orig.Src.IsValid() && e.Reply.Src.IsValid()
}

func (e *Entry) set(proto uint8, name, value string) (err error) {
	switch name {
	case "orig":
		e.Orig, err = parseTuple(proto, value)
	case "reply":
		e.Reply, err = parseTuple(proto, value)
	case "zone":
		var zone uint64
		zone, err = strconv.ParseUint(value, 0, 16)
		e.Zone = uint16(zone)
	case "mark":
		var mark uint64
		mark, err = strconv.ParseUint(value, 0, 32)
		e.Mark = uint32(mark)
	case "labels":
		e.Label = strings.Clone(value)
	case "status":
		// Linux confirms each connection in its table; the userspace datapath has no status.
		e.Known, e.SeenReply = strings.Contains(value, "CONFIRMED"), strings.Contains(value, "SEEN_REPLY")
		e.Related = strings.Contains("|"+value+"|", "|EXPECTED|")
	case "protoinfo":
		e.setStates(value)
	}
	return err
}

func (e *Entry) setStates(value string) {
	for _, token := range strings.Split(strings.Trim(value, "()"), ",") {
		switch name, state, _ := strings.Cut(token, "="); name {
		case "state":
			e.OrigState, e.ReplyState = intern(state), intern(state)
		case "state_orig":
			e.OrigState = intern(state)
		case "state_reply":
			e.ReplyState = intern(state)
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
