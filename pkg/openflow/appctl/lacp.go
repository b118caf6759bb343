package appctl

import (
	"iter"
	"net"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/packet"
)

// LACP is a section of lacp/show: a port with LACP (lib/lacp.c, lacp_print_details).
type LACP struct {
	Name       string
	Negotiated bool
	Members    map[string]LACPMember
}

// LACPMember is a member of a port with LACP.
type LACPMember struct {
	Status    string // current; expired: its partner was lost less than three seconds ago; defaulted: it has none
	Attached  bool
	MayEnable bool
	Partner   packet.LACPInfo
}

// lacpMember matches "member: p1: current attached"; before OVS 2.15 it is "slave: p1: ...".
var lacpMember = lazyregexp.New(`^(?:member|slave): (.*): (current|expired|defaulted) (attached|detached)$`)

// LACPs yields the ports of lacp/show.
func LACPs(text string) iter.Seq[LACP] { return each(text, section, readLACP) }

func readLACP(found []string, body string) LACP {
	port := LACP{Name: found[1], Members: map[string]LACPMember{}}
	for label, value := range fields(body) {
		port.Negotiated = port.Negotiated || label == "status" && strings.HasSuffix(value, " negotiated")
	}
	for found, lines := range parts(body, lacpMember) {
		member := LACPMember{Status: found[2], Attached: found[3] == "attached"}
		for label, value := range fields(lines) {
			if label == "may_enable" {
				member.MayEnable = value == "true"
			} else if name, ok := strings.CutPrefix(label, "partner "); ok {
				readLACPInfo(&member.Partner, name, value)
			}
		}
		port.Members[found[1]] = member
	}
	return port
}

func readLACPInfo(info *packet.LACPInfo, name, value string) {
	number, _ := strconv.ParseUint(value, 10, 16)
	switch name {
	case "sys_id":
		if mac, err := net.ParseMAC(value); err == nil && len(mac) == len(info.System) {
			info.System = packet.MAC(mac)
		}
	case "sys_priority":
		info.SystemPriority = uint16(number)
	case "port_id":
		info.Port = uint16(number)
	case "port_priority":
		info.PortPriority = uint16(number)
	case "key":
		info.Key = uint16(number)
	case "state":
		info.State = 0
		for bit, word := range packet.LACPStates() {
			if strings.Contains(" "+value+" ", " "+word+" ") {
				info.State |= 1 << bit
			}
		}
	}
}
