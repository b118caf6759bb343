package restore

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
)

// vector is what a bridge says of itself in a BPDU (IEEE 802.1D-2004, 9.3).
type vector struct {
	root   uint64
	cost   uint32
	bridge uint64
	port   uint16
}

// treeTimes are in seconds; all bridges take those of the root.
type treeTimes struct{ maxAge, hello, forwardDelay uint16 }

func defaultTimes() treeTimes { return treeTimes{maxAge: 20, hello: 2, forwardDelay: 15} }

// bpdu is the frame in which a neighbour says v: a Configuration BPDU, or an
// RST BPDU of a designated port that learns, forwards and agrees.
func (t *tree) bpdu(v vector) []byte {
	const units = 256 // times are told in 1/256 s
	content := []byte{0x42, 0x42, 0x03, 0, 0, 0, 0, 0}
	if t.rapid {
		content = []byte{0x42, 0x42, 0x03, 0, 0, 2, 2, 0x7c}
	}
	content = binary.BigEndian.AppendUint64(content, v.root)
	content = binary.BigEndian.AppendUint32(content, v.cost)
	content = binary.BigEndian.AppendUint64(content, v.bridge)
	for _, field := range []uint16{v.port, 0, t.times.maxAge * units, t.times.hello * units, t.times.forwardDelay * units} {
		content = binary.BigEndian.AppendUint16(content, field)
	}
	if t.rapid {
		content = append(content, 0) // of version 1: nothing
	}
	frame := []byte("\x01\x80\xc2\x00\x00\x00\x02\x00\x00\x00\x00\x01")
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(content)))
	frame = append(frame, content...)
	const smallest = 60
	return append(frame, make([]byte, smallest-len(frame))...)
}

var (
	// treeRow matches a port of stp/show and rstp/show: name, role, state, cost, priority.number.
	treeRow = regexp.MustCompile(`^  (.*\S) +([A-Za-z]+) +([A-Za-z]+) +(\d+) +\d+\.\d+$`)
	// treeTime matches "  stp-max-age     20s".
	treeTime = regexp.MustCompile(`^  stp-(hello-time|max-age|fwd-delay)\s+(\d+)s$`)
)

// readShow reads stp/show or rstp/show.
func (t *tree) readShow(text string) {
	ofRoot := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		switch {
		case line == "Root ID:":
			ofRoot = true
		case line == "Bridge ID:":
			ofRoot = false
		}
		if m := treeTime.FindStringSubmatch(line); m != nil && ofRoot {
			t.times.read(m[1], m[2])
		}
		if m := treeRow.FindStringSubmatch(line); m != nil {
			t.source = t.protocol() + "/show"
			t.ports = append(t.ports, treePort{name: m[1], role: strings.ToLower(m[2]), state: strings.ToLower(m[3])})
		}
	}
}

func (t *treeTimes) read(field, value string) {
	seconds, err := strconv.ParseUint(value, 10, 8)
	if err != nil {
		return
	}
	switch field {
	case "hello-time":
		t.hello = uint16(seconds)
	case "max-age":
		t.maxAge = uint16(seconds)
	case "fwd-delay":
		t.forwardDelay = uint16(seconds)
	}
}

// pair matches one of a map as ovs-vsctl prints it.
var pair = regexp.MustCompile(`(\w+)=(?:"([^"]*)"|([^",}]*))`)

func pairs(text string) map[string]string {
	m := map[string]string{}
	for _, found := range pair.FindAllStringSubmatch(text, -1) {
		m[found[1]] = found[2] + found[3]
	}
	return m
}

// readLists takes from ovs-vsctl list port and list bridge what neighbours said,
// and the ports' states where stp/show or rstp/show was not collected.
func (t *tree) readLists(ports map[string]string, bridge map[string]string) {
	names := map[bool][2]string{false: {"stp_role", "stp_state"}, true: {"rstp_port_role", "rstp_port_state"}}[t.rapid]
	shown := t.source != ""
	for _, p := range t.bridge.Ports {
		status := pairs(ports[p.Name])
		port := treePort{name: p.Name, role: strings.ToLower(status[names[0]]), state: strings.ToLower(status[names[1]])}
		if port.state != "" && !shown {
			t.source = "ovs-vsctl list port"
			t.ports = append(t.ports, port)
		}
		for i := range t.ports {
			if t.ports[i].name == p.Name {
				t.ports[i].neighbor = t.heard(t.ports[i], i, status, bridge)
			}
		}
	}
}

// heard is what a port had last heard. RSTP records it whole. Of STP only the
// root and the cost of the way there are known: the neighbour of the root port
// stands one port nearer to the root, that of any other as near as we, and wins
// by its number.
func (t *tree) heard(p treePort, index int, status, bridge map[string]string) vector {
	if t.rapid {
		return vector{root: identifier(bridge["rstp_root_id"]), cost: uint32(decimal(status["rstp_designated_path_cost"])),
			bridge: identifier(status["rstp_designated_bridge_id"]), port: uint16(identifier(status["rstp_designated_port_id"]))}
	}
	v := vector{root: identifier(bridge["stp_designated_root"]), cost: uint32(decimal(bridge["stp_root_path_cost"])), bridge: uint64(index) + 1, port: 0x8001}
	if p.role == "root" {
		const fastest = 2 // what a dummy's link costs
		v.cost -= min(v.cost, fastest)
		if v.cost == 0 {
			v.bridge = v.root
		}
	}
	return v
}

func decimal(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 32)
	return n
}

// identifier reads "8000.525400000101" (STP) and "8.000.525400000103" (RSTP).
func identifier(text string) uint64 {
	n, _ := strconv.ParseUint(strings.ReplaceAll(text, ".", ""), 16, 64)
	return n
}

// readFlags takes the states of STP's ports from ovs-ofctl show, which tells no
// roles: where a port is blocked, the first that forwards is taken for the way
// to the root. A listening port has no flag there, as one that is in no tree.
func (t *tree) readFlags(show openflow.Description) {
	states := map[string]string{"STP_FORWARD": "forwarding", "STP_LEARN": "learning", "STP_BLOCK": "blocking"}
	const root, cost = 1, 2
	way, blocked := -1, false
	for _, p := range show.Ports {
		name, ok := t.bridge.portName(strconv.Itoa(p.Number))
		for _, flag := range p.State {
			state := states[flag]
			if !ok || state == "" {
				continue
			}
			t.source = "ovs-ofctl show"
			port := treePort{name: name, state: state}
			if state == "blocking" {
				blocked = true
				port.role = "alternate"
				port.neighbor = vector{root: root, cost: cost, bridge: uint64(p.Number) + root, port: 1}
			} else if state == "forwarding" && way < 0 {
				way = len(t.ports)
			}
			t.ports = append(t.ports, port)
		}
	}
	if blocked && way >= 0 {
		t.ports[way].role = "root"
		t.ports[way].neighbor = vector{root: root, bridge: root, port: 1}
	}
}
