package conntrack

import (
	"bufio"
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
	Text                  string
}

// Table holds the connections that a node's dpctl/dump-conntrack printed. It never
// changes after Read.
type Table struct {
	entries int
	index   map[key][]found
}

// key is what a lookup compares; the ID of ICMP is compared separately.
type key struct {
	zone             uint16
	proto            uint8
	src, dst         netip.Addr
	srcPort, dstPort uint16
}

// found is a connection and the direction that a key matches.
type found struct {
	entry *Entry
	reply bool
}

func keyOf(zone uint16, t Tuple) key {
	return key{zone, t.Proto, t.Src, t.Dst, t.SrcPort, t.DstPort}
}

// maxEntries bounds a table: net.netfilter.nf_conntrack_max is rarely larger.
const maxEntries = 4 << 20

// Read reads the output of dpctl/dump-conntrack, with or without -m and -s. It returns
// the number of lines that it could not read.
func Read(r io.Reader) (t *Table, unread int, err error) {
	t = &Table{index: map[key][]found{}}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		e, ok := ParseEntry(line)
		if !ok || t.entries == maxEntries {
			unread++
			continue
		}
		t.add(e)
	}
	return t, unread, scanner.Err()
}

// Len returns the number of connections.
func (t *Table) Len() int { return t.entries }

func (t *Table) add(e *Entry) {
	t.entries++
	o, r := keyOf(e.Zone, e.Orig), keyOf(e.Zone, e.Reply)
	t.index[o] = append(t.index[o], found{e, false})
	t.index[r] = append(t.index[r], found{e, true})
}

// find returns the connection of a tuple. several reports that more than one matches,
// because the tuple's ICMP identifier is not known.
func (t *Table) find(zone uint16, tuple Tuple) (f found, several, ok bool) {
	if t == nil {
		return found{}, false, false
	}
	for _, c := range t.index[keyOf(zone, tuple)] {
		if !sameID(tuple, c) {
			continue
		}
		if ok {
			return f, true, true
		}
		f, ok = c, true
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
	e = &Entry{Text: line}
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
		e.Label = value
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
			e.OrigState, e.ReplyState = state, state
		case "state_orig":
			e.OrigState = state
		case "state_reply":
			e.ReplyState = state
		}
	}
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
