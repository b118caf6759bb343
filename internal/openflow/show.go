package openflow

import (
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PortLocal is OFPP_LOCAL as OVS numbers it, the port of the bridge itself.
const PortLocal = 65534

// Port is a port as ovs-ofctl show tells it.
type Port struct {
	Number int
	Name   string // cut at 15 characters by OpenFlow
	MAC    string
	Config []string // PORT_DOWN, NO_FLOOD ...
	State  []string // LINK_DOWN, LIVE, STP_BLOCK ...
}

// Description is what ovs-ofctl show tells of a bridge.
type Description struct {
	DatapathID string // 16 hex digits
	Fragments  string // how IP fragments are handled: "normal", "drop" ...; "" where it isn't told
	Ports      []Port
}

var (
	dpid     = regexp.MustCompile(`\bdpid:([0-9a-f]{16})`)
	frags    = regexp.MustCompile(`^OFPT_GET_CONFIG_REPLY .*\bfrags=(\S+)`)
	portHead = regexp.MustCompile(`^ ([0-9]+|LOCAL)\((.*)\): addr:([0-9a-f:]{17})`)
)

// mostPorts is what a bridge has numbers for.
const mostPorts = 1 << 16

// Show reads the output of ovs-ofctl show. It tells of each port once: what else
// is told of one takes the place of what was.
func Show(r io.Reader) Description {
	var d Description
	at := map[int]int{} // in d.Ports, by number
	last := -1          // the port whose lines follow
	for _, l := range lines(r) {
		if m := find(dpid, "dpid:", l.text); m != nil && d.DatapathID == "" {
			d.DatapathID = m[1]
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
		if flags, ok := strings.CutPrefix(l.text, "     config:"); ok {
			d.Ports[last].Config = flagList(flags)
		} else if flags, ok := strings.CutPrefix(l.text, "     state:"); ok {
			d.Ports[last].State = flagList(flags)
		}
	}
	return d
}

// find searches for a pattern, which takes many times as long as for the word
// that is in all that it matches.
func find(pattern *regexp.Regexp, word, text string) []string {
	if !strings.Contains(text, word) {
		return nil
	}
	return pattern.FindStringSubmatch(text)
}

// begin takes a port's first line, and returns its place in the list; -1 for none.
func (d *Description) begin(at map[int]int, line []string) int {
	const longest = 64 // bytes of a name; OpenFlow has room for 16
	number, err := portNumber(line[1])
	if err != nil || len(line[2]) > longest {
		return -1
	}
	i, ok := at[number]
	if !ok {
		if i = len(d.Ports); i == mostPorts {
			return -1
		}
		at[number] = i
		d.Ports = append(d.Ports, Port{})
	}
	d.Ports[i] = Port{Number: number, Name: strings.Trim(line[2], `"`), MAC: line[3]}
	return i
}

// portNumber reads a port's number, of 16 bits in OpenFlow 1.0 and 32 since.
func portNumber(text string) (int, error) {
	if text == "LOCAL" {
		return PortLocal, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err
}

func flagList(text string) []string {
	const longest = 4096 // bytes; all flags together have some hundred
	text = text[:min(len(text), longest)]
	var flags []string
	for _, f := range strings.Fields(text) {
		if f != "0" && !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	return flags
}

// Down tells whether the port carried nothing: taken down, or without a link.
func (p Port) Down() bool {
	return slices.Contains(p.Config, "PORT_DOWN") || slices.Contains(p.State, "LINK_DOWN")
}
