package drift

import (
	"errors"
	"strings"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/internal/openflow"
)

// A packet that another chassis has routed may come through a localnet port with the MAC
// address of that chassis. For each router port of the switch, ovn-controller makes flows that
// replace it with the MAC address of the router port (put_replace_chassis_mac_flows in
// controller/physical.c). Those of several router ports have the same matches, and it installs
// those of the port that it sees first, which differs from run to run.

// routerPorts removes from a difference the altered flows that are those of another router
// port of the same switch, and returns them.
func (c *comparison) routerPorts(d *flowdiff.Diff) (either []flowdiff.Change, err error) {
	for _, change := range d.Changed {
		ofAnother, err := c.ofAnotherRouterPort(change)
		if err != nil {
			return nil, err
		}
		if ofAnother {
			either = append(either, change)
		}
	}
	accept(d, either)
	return either, nil
}

// ofAnotherRouterPort reports whether the recorded flow of a change is what ovn-controller
// makes for another router port than that of the computed flow.
func (c *comparison) ofAnotherRouterPort(change flowdiff.Change) (bool, error) {
	conjunctive := strings.Contains(change.A, "conj_id=") || strings.Contains(change.A, "actions=conjunction(")
	if change.Kind != flowdiff.KindFlow || !change.Cookie || !conjunctive {
		return false, nil
	}
	a, _, errA := c.recordedNames.Of(change.A)
	b, _, errB := c.computedNames.Of(change.B)
	if err := errors.Join(errA, errB); err != nil || a.Row != portBinding || b.Row != portBinding {
		return false, err
	}
	recorded, errA := c.routerPort(a.UUID)
	computed, errB := c.routerPort(b.UUID)
	if err := errors.Join(errA, errB); err != nil || recorded.peerSwitch == "" || recorded.peerSwitch != computed.peerSwitch {
		return false, err
	}
	actionsA, actionsB := openflow.Flow{Text: change.A}.Actions(), openflow.Flow{Text: change.B}.Actions()
	return actionsA == strings.ReplaceAll(actionsB, computed.mac, recorded.mac), nil
}

const portBinding = "Port_Binding"

// routerPort is a router port that is connected to a switch.
type routerPort struct {
	mac        string // as ovs-ofctl prints it
	peerSwitch string // the UUID of its datapath
}

// routerPort returns the router port of a row, the zero value for another port.
func (c *comparison) routerPort(uuid string) (routerPort, error) {
	row, _, err := c.sb.Row(portBinding, uuid, "mac", "options")
	if err != nil {
		return routerPort{}, err
	}
	mac, _, _ := strings.Cut(strings.Join(row.Strings("mac"), " "), " ")
	peer := row.Value("options", "peer")
	if mac == "" || peer == "" {
		return routerPort{}, nil
	}
	for other, err := range c.sb.Rows(portBinding, "logical_port", "datapath") {
		if err != nil {
			return routerPort{}, err
		}
		if other.String("logical_port") == peer {
			return routerPort{strings.ToLower(mac), strings.Join(other.UUIDs("datapath"), " ")}, nil
		}
	}
	return routerPort{}, nil
}
