package restore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// restoreFDB adds the MAC addresses that the live bridges had learned, as static
// entries where this version has them, which don't age.
func restoreFDB(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	for _, bridge := range sw.Bridges {
		text, err := rec.bridgeText(bridge, workdir.RecordedFDB)
		if err != nil {
			return err
		}
		if text == "" {
			outcome.Note(report.Unknown, "%s: no fdb/show was collected: NORMAL floods", bridge.Name)
		}
		for mac := range appctl.LearnedMACs(text) {
			name, ok := bridge.interfaceAt(mac.Port)
			if !ok {
				outcome.Note(report.Unknown, "%s: MAC %s was learned on port %s, which is not in the database", bridge.Name, mac.MAC, mac.Port)
				continue
			}
			err := sw.addMAC(ctx, bridge, name, mac)
			if err := noteResult(ctx, outcome, err, "%s: MAC %s on %q", bridge.Name, mac.MAC, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// addMAC adds a learned address on an interface.
func (s *Switch) addMAC(ctx context.Context, bridge *Bridge, name string, mac appctl.LearnedMAC) error {
	_, err := s.appctl(ctx, "fdb/add", bridge.Name, name, mac.VLAN, mac.MAC)
	if err == nil || !strings.Contains(err.Error(), "is not a valid command") {
		return err
	}
	return s.teachMAC(ctx, bridge, name, mac)
}

// teachMAC makes a bridge learn an address from a packet to the address itself, which
// NORMAL does not forward: Open vSwitch before 2.16 has no fdb/add. The entry does not age
// because the clock stops.
//
// A bond accepts the packet only from a member that carries traffic, and fdb/show names
// any of its members, so the packet is sent from each until one is accepted. Bonds are
// restored before.
func (s *Switch) teachMAC(ctx context.Context, bridge *Bridge, name string, mac appctl.LearnedMAC) error {
	numbers, tag := []string{mac.Port}, 0
	if port := bridge.portOf(name); port != nil {
		tag = port.Tag
		for _, iface := range port.Interfaces {
			if number := strconv.Itoa(iface.OfPort); iface.OfPort != 0 && number != mac.Port {
				numbers = append(numbers, number)
			}
		}
	}
	fields := ",dl_src=" + mac.MAC + ",dl_dst=" + mac.MAC
	if mac.VLAN != "0" && mac.VLAN != strconv.Itoa(tag) {
		fields += ",dl_vlan=" + mac.VLAN
	}
	var first error
	for _, number := range numbers {
		out, err := s.appctl(ctx, "ofproto/trace-packet-out", "-generate", bridge.Name, "in_port="+number+fields, "NORMAL")
		if err == nil && strings.Contains(out, "learned that "+mac.MAC+" is on port") {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("this version has no fdb/add, and learned no address from a packet: %.300s", out)
		}
		first = cmp.Or(first, err)
	}
	return first
}

// portOf returns the port to which an interface belongs, nil for none.
func (b *Bridge) portOf(name string) *Port {
	for _, port := range b.Ports {
		for _, iface := range port.Interfaces {
			if iface.Name == name {
				return port
			}
		}
	}
	return nil
}
