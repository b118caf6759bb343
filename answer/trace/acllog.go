package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/daemonlog"
	"ovs-offline/pkg/openflow/flow"
)

// Logged is a packet that an ACL logged. Lines counts the equal packets.
type Logged struct {
	Lines int       `json:"lines"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Name, Verdict, Severity and Direction are as logged (lib/acl-log.c of OVN). Name is "" for an ACL
	// without a name, and Direction is "" for OVN before 22.03.
	Name      string `json:"name,omitempty"`
	Verdict   string `json:"verdict"` // allow, drop, reject or pass
	Severity  string `json:"severity,omitempty"`
	Direction string `json:"direction,omitempty"` // from-lport or to-lport
	Flow      string `json:"flow"`                // the packet of the first line

	packet flow.Packet
}

// ACLLog is what a log holds of ACLs.
type ACLLog struct {
	Packets []*Logged
	Remarks []string
	Lost    bool // lines can't be read, or are left out
}

// ReadACLLog reads the lines that ACLs logged, out of the log of an ovn-controller. Lines that differ only in
// the port that a client chose are one packet.
func ReadACLLog(ctx context.Context, in io.Reader) (*ACLLog, error) {
	reader, err := daemonlog.NewReader(ctx, in, "ovn-controller", daemonlog.Options{})
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	found, known := &ACLLog{}, map[string]*Logged{}
	bad, more := 0, 0
	for {
		line, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		logged, ok := parseACLLine(line.Text)
		switch {
		case !ok:
			if bytes.Equal(line.Module, []byte("acl_log")) && !bytes.HasPrefix(line.Text, []byte("Dropped ")) {
				bad++
			}
			continue
		case known[logged.key()] != nil:
			logged = known[logged.key()]
		case len(found.Packets) == maxCaptured:
			more++
			continue
		default:
			known[logged.key()] = logged
			found.Packets = append(found.Packets, logged)
			logged.First = line.At
		}
		logged.Lines++
		logged.Last = line.At
	}
	found.describe(reader.Result(), bad, more)
	if len(found.Packets) == 0 {
		return nil, fmt.Errorf("%w: it has no line of an ACL (acl_log)", ErrQuestion)
	}
	return found, nil
}

func (l *ACLLog) describe(result daemonlog.Result, bad, more int) {
	lose := func(format string, args ...any) {
		l.Lost = true
		l.Remarks = append(l.Remarks, fmt.Sprintf(format, args...))
	}
	if result.Lost != "" {
		lose("the log can't be read beyond line %d: %s", result.Lines, result.Lost)
	}
	if bad > 0 {
		lose("%d lines of ACLs can't be read", bad)
	}
	if more > 0 {
		lose("%d lines are left out: the log has more than %d different packets", more, maxCaptured)
	}
}

// parseACLLine reads the message of a line: name="...", verdict=drop, severity=info, direction=to-lport: and
// the packet as ovs-ofctl prints flows.
func parseACLLine(text []byte) (*Logged, bool) {
	rest, ok := bytes.CutPrefix(text, []byte("name="))
	if !ok {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(rest))
	logged := &Logged{}
	if err := decoder.Decode(&logged.Name); err != nil {
		return nil, false
	}
	if logged.Name == "<unnamed>" {
		logged.Name = ""
	}
	words, packet, ok := strings.Cut(string(rest[decoder.InputOffset():]), ": ")
	if !ok {
		return nil, false
	}
	for _, word := range strings.Split(words, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		if field := map[string]*string{"verdict": &logged.Verdict, "severity": &logged.Severity, "direction": &logged.Direction}[key]; field != nil {
			*field = value
		}
	}
	var err error
	if logged.packet, err = flow.Parse(packet); err != nil || logged.Verdict == "" || !logged.packet.Has("dl_src") {
		return nil, false
	}
	logged.Flow = strings.TrimSpace(packet)
	for field, none := range map[string]string{"vlan_tci": "0x0000", "nw_frag": "no"} {
		if logged.packet.Get(field) == none {
			logged.packet.Delete(field)
		}
	}
	return logged, true
}

// key returns what lines about one packet have in common.
func (l *Logged) key() string {
	const ephemeral = 32768 // Linux and others choose the ports of clients from there
	packet := l.packet.Clone()
	src, dst := port(packet, "tp_src"), port(packet, "tp_dst")
	if src >= ephemeral && dst < ephemeral {
		packet.Delete("tp_src")
	}
	return fmt.Sprintf("%q %s %s %s", l.Name, l.Verdict, l.Direction, packet.Input())
}

// port returns the number of a port of a packet, 0 for none. Fields have the name of the protocol in some
// releases: tcp_src.
func port(packet flow.Packet, field string) int {
	for _, name := range []string{field, strings.Replace(field, "tp_", "tcp_", 1), strings.Replace(field, "tp_", "udp_", 1)} {
		if n, err := strconv.Atoi(packet.Get(name)); err == nil {
			return n
		}
	}
	return 0
}
