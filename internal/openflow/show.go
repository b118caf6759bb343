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

// Show reads the output of ovs-ofctl show.
func Show(r io.Reader) Description {
	var d Description
	for _, l := range lines(r) {
		if m := dpid.FindStringSubmatch(l.text); m != nil && d.DatapathID == "" {
			d.DatapathID = m[1]
		}
		if m := frags.FindStringSubmatch(l.text); m != nil {
			d.Fragments = m[1]
		}
		if m := portHead.FindStringSubmatch(l.text); m != nil {
			if number, err := portNumber(m[1]); err == nil {
				d.Ports = append(d.Ports, Port{Number: number, Name: strings.Trim(m[2], `"`), MAC: m[3]})
			}
			continue
		}
		if len(d.Ports) == 0 {
			continue
		}
		last := &d.Ports[len(d.Ports)-1]
		if flags, ok := strings.CutPrefix(l.text, "     config:"); ok {
			last.Config = flagList(flags)
		} else if flags, ok := strings.CutPrefix(l.text, "     state:"); ok {
			last.State = flagList(flags)
		}
	}
	return d
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
		if f != "0" {
			flags = append(flags, f)
		}
	}
	return flags
}

// Down tells whether the port carried nothing: taken down, or without a link.
func (p Port) Down() bool {
	return slices.Contains(p.Config, "PORT_DOWN") || slices.Contains(p.State, "LINK_DOWN")
}
