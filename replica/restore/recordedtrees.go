package restore

import (
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/packet"
	"ovs-offline/workdir"
)

// tree is a bridge's spanning tree as it was recorded.
type tree struct {
	bridge *Bridge
	rapid  bool       // RSTP
	ports  []treePort // none if their states were not recorded
	times  packet.TreeTimes
}

// treePort is a port of a spanning tree, with the contents of its neighbour's BPDUs.
type treePort struct {
	appctl.TreePort
	neighbour packet.TreePriority
}

// hearsNeighbour reports whether a port is in its role because of a neighbour's BPDUs.
func (p treePort) hearsNeighbour() bool {
	return p.Role == "root" || p.Role == "alternate" || p.Role == "backup"
}

// isTransient reports whether the port's state ends after a forward delay.
func (p treePort) isTransient() bool {
	return p.State == "listening" || p.State == "learning" || p.State == "discarding" && p.Role == "designated"
}

func (t *tree) protocol() string {
	if t.rapid {
		return "rstp"
	}
	return "stp"
}

// readTree reads a bridge's tree from rstp/show or stp/show where they were
// collected, else from ovs-vsctl list port, and for STP last from the flags of
// ovs-ofctl show, which has states but no roles. The contents of neighbours' BPDUs come
// from ovs-vsctl list port and list bridge in any case.
func readTree(rec *Recorded, bridge *Bridge, rapid bool) (*tree, error) {
	tree := &tree{bridge: bridge, rapid: rapid, times: packet.DefaultTreeTimes()}
	show, column := workdir.RecordedSTP, "status"
	if rapid {
		show, column = workdir.RecordedRSTP, "rstp_status"
	}
	for _, path := range []string{rec.dir.Recorded(show), rec.dir.BridgeRecorded(bridge.Name, show)} { // only a user can have added the first file
		text, err := rec.read(path)
		if err != nil {
			return nil, err
		}
		tree.readShow(text)
	}
	ports, err := rec.listed(workdir.RecordedListPort, column)
	if err != nil {
		return nil, err
	}
	bridges, err := rec.listed(workdir.RecordedListBridge, column)
	if err != nil {
		return nil, err
	}
	tree.readLists(ports, listedMap(bridges[bridge.Name]))
	if len(tree.ports) > 0 || rapid {
		return tree, nil
	}
	description, _, err := rec.show(bridge)
	tree.readFlags(description)
	return tree, err
}

// readShow takes the ports' states and the timers from stp/show or rstp/show.
func (t *tree) readShow(text string) {
	for shown := range appctl.SpanningTrees(text) {
		if shown.Bridge != t.bridge.Name {
			continue
		}
		t.times, t.ports = shown.Times, nil
		for _, port := range shown.Ports {
			t.ports = append(t.ports, treePort{TreePort: port})
		}
	}
}

// readLists takes the contents of neighbours' BPDUs from ovs-vsctl list port and list
// bridge, and the ports' states unless t already has them.
func (t *tree) readLists(ports map[string]string, bridge map[string]string) {
	role, state := "stp_role", "stp_state"
	if t.rapid {
		role, state = "rstp_port_role", "rstp_port_state"
	}
	shown := len(t.ports) > 0
	for _, p := range t.bridge.Ports {
		status := listedMap(ports[p.Name])
		port := treePort{TreePort: appctl.TreePort{Name: p.Name, Role: strings.ToLower(status[role]), State: strings.ToLower(status[state])}}
		if port.State != "" && !shown {
			t.ports = append(t.ports, port)
		}
		for i := range t.ports {
			if t.ports[i].Name == p.Name {
				t.ports[i].neighbour = t.receivedPriority(t.ports[i], i, status, bridge)
			}
		}
	}
}

// receivedPriority returns the contents of the BPDUs that a port received from its neighbour. RSTP
// records all of them. STP records only the root and the cost of the path to it: the
// neighbour of the root port is one link nearer to the root, and the neighbour of any
// other port is as near as this bridge, and takes precedence because of its identifier.
func (t *tree) receivedPriority(port treePort, index int, status, bridge map[string]string) packet.TreePriority {
	if t.rapid {
		return packet.TreePriority{Root: treeIdentifier(bridge["rstp_root_id"]), Cost: treeCost(status["rstp_designated_path_cost"]),
			Bridge: treeIdentifier(status["rstp_designated_bridge_id"]), Port: uint16(treeIdentifier(status["rstp_designated_port_id"]))}
	}
	priority := packet.TreePriority{Root: treeIdentifier(bridge["stp_designated_root"]), Cost: treeCost(bridge["stp_root_path_cost"]), Bridge: uint64(index) + 1, Port: 0x8001}
	if port.Role == "root" {
		const dummyLink = 2 // the cost of a dummy's link
		priority.Cost -= min(priority.Cost, dummyLink)
		if priority.Cost == 0 {
			priority.Bridge = priority.Root
		}
	}
	return priority
}

func treeCost(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32)
	return uint32(n)
}

// treeIdentifier reads "8000.525400000101" (STP) and "8.000.525400000103" (RSTP).
func treeIdentifier(text string) uint64 {
	n, _ := strconv.ParseUint(strings.ReplaceAll(text, ".", ""), 16, 64)
	return n
}

// readFlags takes the states of STP's ports from ovs-ofctl show, which has no
// roles: if a port is blocked, the first that forwards is assumed to be the root
// port. A listening port has no flag, like a port that does not take part in the tree.
func (t *tree) readFlags(show openflow.Description) {
	states := map[string]string{"STP_FORWARD": "forwarding", "STP_LEARN": "learning", "STP_BLOCK": "blocking"}
	const root, cost = 1, 2
	forwarding, blocked := -1, false
	for _, p := range show.Ports {
		name, ok := t.bridge.interfaceAt(portWord(p.Number))
		for _, flag := range p.State {
			state := states[flag]
			if !ok || state == "" {
				continue
			}
			port := treePort{TreePort: appctl.TreePort{Name: name, State: state}}
			if state == "blocking" {
				blocked = true
				port.Role = "alternate"
				port.neighbour = packet.TreePriority{Root: root, Cost: cost, Bridge: uint64(p.Number) + root, Port: 1}
			} else if state == "forwarding" && forwarding < 0 {
				forwarding = len(t.ports)
			}
			t.ports = append(t.ports, port)
		}
	}
	if blocked && forwarding >= 0 {
		t.ports[forwarding].Role = "root"
		t.ports[forwarding].neighbour = packet.TreePriority{Root: root, Bridge: root, Port: 1}
	}
}
