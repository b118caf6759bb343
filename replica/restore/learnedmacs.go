package restore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreFDB adds the MAC addresses that the live bridges had learned, as static
// entries where this version has them, which don't age.
func restoreFDB(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	for _, b := range s.Bridges {
		text, err := rec.bridgeText(b, workdir.RecordedFDB)
		if err != nil {
			return err
		}
		if text == "" {
			o.Note(report.Unknown, "%s: no fdb/show was collected: NORMAL floods", b.Name)
		}
		for e := range appctl.LearnedMACs(text) {
			name, ok := b.interfaceAt(e.Port)
			if !ok {
				o.Note(report.Unknown, "%s: MAC %s was learned on port %s, which is not in the database", b.Name, e.MAC, e.Port)
				continue
			}
			err := s.addMAC(ctx, b, name, e)
			if err := noteResult(ctx, o, err, "%s: MAC %s on %q", b.Name, e.MAC, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// addMAC adds a learned address on an interface.
func (s *Switch) addMAC(ctx context.Context, b *Bridge, name string, e appctl.LearnedMAC) error {
	_, err := s.appctl(ctx, "fdb/add", b.Name, name, e.VLAN, e.MAC)
	if err == nil || !strings.Contains(err.Error(), "is not a valid command") {
		return err
	}
	return s.teachMAC(ctx, b, name, e)
}

// teachMAC makes a bridge learn an address from a packet to the address itself, which
// NORMAL does not forward: Open vSwitch before 2.16 has no fdb/add. The entry does not age
// because the clock stops.
//
// A bond accepts the packet only from a member that carries traffic, and fdb/show names
// any of its members, so the packet is sent from each until one is accepted. Bonds are
// restored before.
func (s *Switch) teachMAC(ctx context.Context, b *Bridge, name string, e appctl.LearnedMAC) error {
	numbers, tag := []string{e.Port}, 0
	if p := b.portOf(name); p != nil {
		tag = p.Tag
		for _, i := range p.Interfaces {
			if number := strconv.Itoa(i.OfPort); i.OfPort != 0 && number != e.Port {
				numbers = append(numbers, number)
			}
		}
	}
	fields := ",dl_src=" + e.MAC + ",dl_dst=" + e.MAC
	if e.VLAN != "0" && e.VLAN != strconv.Itoa(tag) {
		fields += ",dl_vlan=" + e.VLAN
	}
	var first error
	for _, number := range numbers {
		out, err := s.appctl(ctx, "ofproto/trace-packet-out", "-generate", b.Name, "in_port="+number+fields, "NORMAL")
		if err == nil && strings.Contains(out, "learned that "+e.MAC+" is on port") {
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
	for _, p := range b.Ports {
		for _, i := range p.Interfaces {
			if i.Name == name {
				return p
			}
		}
	}
	return nil
}
