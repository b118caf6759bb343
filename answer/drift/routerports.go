package drift

import (
	"errors"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
)

// A packet that another chassis has routed may come through a localnet port with the MAC
// address of that chassis. For each router port of the switch, ovn-controller makes flows that
// replace it with the MAC address of the router port (put_replace_chassis_mac_flows in
// controller/physical.c). The flows of several router ports have the same matches, and it installs
// the flows of the port that it sees first, which differs from run to run.

// settleRouterPorts removes from a difference the altered flows that are right for another router
// port of the same switch, and returns them.
func (c *comparison) settleRouterPorts(diff *flowdiff.Diff) (either []flowdiff.Change, err error) {
	for _, change := range diff.Changed {
		ofAnother, err := c.ofAnotherRouterPort(change)
		if err != nil {
			return nil, err
		}
		if ofAnother {
			either = append(either, change)
		}
	}
	accept(diff, either)
	return either, nil
}

// ofAnotherRouterPort reports whether ovn-controller makes the recorded flow of a change for another
// router port than the computed flow.
func (c *comparison) ofAnotherRouterPort(change flowdiff.Change) (bool, error) {
	conjunctive := strings.Contains(change.A, "conj_id=") || strings.Contains(change.A, "actions=conjunction(")
	if change.Kind != flowdiff.KindFlow || !change.Cookie || !conjunctive {
		return false, nil
	}
	was, _, errA := c.recordedNames.CauseOf(change.A)
	is, _, errB := c.computedNames.CauseOf(change.B)
	if err := errors.Join(errA, errB); err != nil || was.Row != ovn.BindingTable || is.Row != ovn.BindingTable {
		return false, err
	}
	ports, err := c.routerPorts()
	recorded, computed := ports[was.UUID], ports[is.UUID]
	if err != nil || recorded.peerSwitch == "" || recorded.peerSwitch != computed.peerSwitch {
		return false, err
	}
	actionsA, actionsB := openflow.Flow{Text: change.A}.Actions(), openflow.Flow{Text: change.B}.Actions()
	return actionsA == strings.ReplaceAll(actionsB, computed.mac, recorded.mac), nil
}

// routerPort is a router port that is connected to a switch.
type routerPort struct {
	mac        string // as ovs-ofctl prints it
	peerSwitch string // the UUID of its datapath
}

// readRouterPorts returns the router ports by the UUIDs of their rows.
func readRouterPorts(sb *file.Index) (map[string]routerPort, error) {
	datapaths, peers, ports := map[string]string{}, map[string]string{}, map[string]routerPort{}
	err := ovn.EachBinding(sb, func(b ovn.Binding) {
		datapaths[b.Port] = b.Datapath
		if mac, _, _ := strings.Cut(strings.Join(b.Addresses, " "), " "); mac != "" && b.Options["peer"] != "" {
			peers[b.UUID], ports[b.UUID] = b.Options["peer"], routerPort{mac: strings.ToLower(mac)}
		}
	})
	for uuid, port := range ports {
		port.peerSwitch = datapaths[peers[uuid]]
		ports[uuid] = port
	}
	return ports, err
}
