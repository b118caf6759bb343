// Package ofmeter adds meters to a switch over one connection. ovs-ofctl takes
// one meter a run, of which the switch needs a tenth: the rest is a program that starts.
//
// The messages are those of OpenFlow 1.3 (A.3.4.5, A.4.4), which 1.4 and 1.5 left as they were.
package ofmeter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// ErrUnreachable is wrapped where nothing was sent: the switch's socket can't be
// reached from here. ovs-ofctl may reach it.
var ErrUnreachable = errors.New("no switch at its socket")

// Types of messages.
const (
	hello        = 0
	errorMessage = 1
	barrier      = 20
	barrierReply = 21
	meterMod     = 29
)

const headerLen = 8

var (
	meter = regexp.MustCompile(`^meter=(\d+) (kbps|pktps)( burst)?( stats)? bands=(type=.*)$`)
	band  = regexp.MustCompile(`^(?:drop|dscp_remark) rate=(\d+)(?: burst_size=(\d+))?( prec_level=(\d+))?$`)
)

// Message is a meter to add, as a switch is told.
type Message []byte

// Parse reads a meter of ovs-ofctl dump-meters, its bands behind it in one line.
// ok is false for words that are not of such a dump: ovs-ofctl knows more of them.
func Parse(text string) (m Message, ok bool) {
	words := meter.FindStringSubmatch(text)
	if words == nil {
		return nil, false
	}
	id, err := strconv.ParseUint(words[1], 10, 32)
	flags := uint16(1)
	if words[2] == "pktps" {
		flags = 2
	}
	if words[3] != "" {
		flags |= 4
	}
	if words[4] != "" {
		flags |= 8
	}
	m = make(Message, headerLen, 64)        // the header is written when it is sent
	m = binary.BigEndian.AppendUint16(m, 0) // add
	m = binary.BigEndian.AppendUint16(m, flags)
	m = binary.BigEndian.AppendUint32(m, uint32(id))
	for text := range strings.SplitSeq(words[5], " type=") {
		if m, ok = m.band(strings.TrimPrefix(text, "type=")); !ok {
			return nil, false
		}
	}
	return m, err == nil && len(m) <= math.MaxUint16
}

// band appends a band.
func (m Message) band(text string) (Message, bool) {
	words := band.FindStringSubmatch(text)
	remark := strings.HasPrefix(text, "dscp_remark")
	if words == nil || remark != (words[3] != "") {
		return nil, false
	}
	rate, wrongRate := strconv.ParseUint(words[1], 10, 32)
	burst, wrongBurst := strconv.ParseUint("0"+words[2], 10, 32)
	level, wrongLevel := strconv.ParseUint("0"+words[4], 10, 8)
	kind := uint16(1)
	if remark {
		kind = 2
	}
	m = binary.BigEndian.AppendUint16(m, kind)
	m = binary.BigEndian.AppendUint16(m, 16) // its length
	m = binary.BigEndian.AppendUint32(m, uint32(rate))
	m = binary.BigEndian.AppendUint32(m, uint32(burst))
	return append(m, byte(level), 0, 0, 0), errors.Join(wrongRate, wrongBurst, wrongLevel) == nil
}

// Add adds meters in their order, in an OpenFlow version ("OpenFlow13"), and
// returns which of them the switch refused.
func Add(ctx context.Context, socket, openflow string, meters []Message) (refused map[int]bool, err error) {
	if len(meters) == 0 {
		return nil, nil
	}
	version := map[string]byte{"OpenFlow13": 4, "OpenFlow14": 5, "OpenFlow15": 6}[openflow]
	if version == 0 {
		return nil, fmt.Errorf("%w that knows meters in %s", ErrUnreachable, openflow)
	}
	conn, err := dial(ctx, socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(all(version, meters))
		sent <- err
	}()
	refused, err = read(conn, len(meters))
	if err != nil {
		conn.Close() // whoever still writes is told
	}
	if wrote := <-sent; err == nil {
		err = wrote
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return refused, err
}

// all is everything that is said: a greeting, the meters, each with its place in
// the list as its number, and a barrier, which is answered when they are done.
func all(version byte, meters []Message) []byte {
	text := header(nil, version, hello, headerLen+8, uint32(len(meters))+1)
	text = append(text, 0, 1, 0, 8) // a bitmap of versions: this one
	text = binary.BigEndian.AppendUint32(text, 1<<version)
	for i, m := range meters {
		text = header(text, version, meterMod, len(m), uint32(i))
		text = append(text, m[headerLen:]...)
	}
	return header(text, version, barrier, headerLen, uint32(len(meters)))
}

func header(text []byte, version, kind byte, length int, number uint32) []byte {
	text = append(text, version, kind)
	text = binary.BigEndian.AppendUint16(text, uint16(length))
	return binary.BigEndian.AppendUint32(text, number)
}

// read takes what the switch says until it has done all of count.
func read(conn io.Reader, count int) (refused map[int]bool, err error) {
	refused = map[int]bool{}
	head := make([]byte, headerLen)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return nil, fmt.Errorf("the switch says nothing more: %w", err)
		}
		kind, length, number := head[1], int(binary.BigEndian.Uint16(head[2:])), binary.BigEndian.Uint32(head[4:])
		if length < headerLen {
			return nil, fmt.Errorf("the switch says a message of %d bytes", length)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(length-headerLen)); err != nil {
			return nil, fmt.Errorf("the switch says half a message: %w", err)
		}
		switch {
		case kind == barrierReply && number == uint32(count):
			return refused, nil
		case kind == errorMessage && number < uint32(count):
			refused[int(number)] = true
		}
	}
}

// dial connects to a socket. Its directory is opened first: an address holds no
// more than 107 bytes.
func dial(ctx context.Context, socket string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
}
