package openflow

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// PortLocal is OFPP_LOCAL as OVS numbers it, the port of the bridge itself.
const PortLocal = 65534

// Port is a port as ovs-ofctl show prints it.
type Port struct {
	Number int
	Name   string // cut at 15 characters by OpenFlow
	MAC    string
	Config []string // PORT_DOWN, NO_FLOOD ...
	State  []string // LINK_DOWN, LIVE, STP_BLOCK ...
}

// Description is the output of ovs-ofctl show for a bridge.
type Description struct {
	DatapathID string // 16 hex digits
	Fragments  string // how IP fragments are handled: "normal", "drop" ...; "" if unknown
	Ports      []Port
	// HasNoFlood reports whether Config has NO_FLOOD, NO_STP and NO_RECV_STP if they are
	// set: newer versions than OpenFlow 1.0 do not have them.
	HasNoFlood bool
}

var (
	dpid     = lazyregexp.New(`\bdpid:([0-9a-f]{16})`)
	frags    = lazyregexp.New(`^OFPT_GET_CONFIG_REPLY .*\bfrags=(\S+)`)
	portHead = lazyregexp.New(`^\s*([0-9]+|LOCAL)\((.*)\): addr:([0-9a-f:]{17})`)
)

// maxPorts is the number of port numbers in OpenFlow 1.0.
const maxPorts = 1 << 16

// Show reads the output of ovs-ofctl show. If a port number occurs twice, the
// later one counts.
func Show(r io.Reader) Description {
	var d Description
	at := map[int]int{} // in d.Ports, by number
	last := -1          // the port whose lines follow
	for _, l := range lines(r) {
		if m := find(dpid, "dpid:", l.text); m != nil && d.DatapathID == "" {
			d.DatapathID = m[1]
			d.HasNoFlood = !strings.Contains(l.text, "(OF1.") // the name of a newer version
		}
		if m := find(frags, "frags=", l.text); m != nil {
			d.Fragments = m[1]
		}
		if m := find(portHead, "): addr:", l.text); m != nil {
			last = d.begin(at, m)
			continue
		}
		if last < 0 {
			continue
		}
		text := strings.TrimLeft(l.text, blankBytes) // web pages lose the indentation
		if flags, ok := strings.CutPrefix(text, "config:"); ok {
			d.Ports[last].Config = flagList(flags)
		} else if flags, ok := strings.CutPrefix(text, "state:"); ok {
			d.Ports[last].State = flagList(flags)
		}
	}
	return d
}

// begin adds the port of a port's first line, and returns its index in Ports, or
// -1 if the line is not valid.
func (d *Description) begin(at map[int]int, line []string) int {
	const maxName = 64 // bytes; OpenFlow allows 16
	number, err := portNumber(line[1])
	if err != nil || len(line[2]) > maxName {
		return -1
	}
	i, ok := at[number]
	if !ok {
		if i = len(d.Ports); i == maxPorts {
			return -1
		}
		at[number] = i
		d.Ports = append(d.Ports, Port{})
	}
	d.Ports[i] = Port{Number: number, Name: strings.Trim(line[2], `"`), MAC: line[3]}
	return i
}

// portNumber reads a port's number, which has 16 bits in OpenFlow 1.0 and 32 in
// later versions.
func portNumber(text string) (int, error) {
	if text == "LOCAL" {
		return PortLocal, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err
}

func flagList(text string) []string {
	const maxFlags = 4096 // bytes; all flags together take a few hundred bytes
	text = text[:min(len(text), maxFlags)]
	var flags []string
	for _, f := range strings.Fields(text) {
		if f != "0" && !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	return flags
}

// Down reports whether the port carried no packets, because it was set down or
// had no link.
func (p Port) Down() bool {
	return slices.Contains(p.Config, "PORT_DOWN") || slices.Contains(p.State, "LINK_DOWN")
}
