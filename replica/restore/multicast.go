package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/packet"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Multicast groups
//
// Cause: a bridge with multicast snooping sends a group's packets to the ports
// from which it heard members or a querier, and floods packets to unknown groups.
// No database holds this table, and no command adds to it.
//
// Remedy: the bridge receives the reports and queries again. Meanwhile a flow sets the
// input port of these packets to the number in their source address, so that they can
// come from any kind of port, and sends them to NORMAL. No bridge learns a multicast
// source address. Nothing is forwarded to patch ports, or to bonds, which would choose
// a member for each new kind of packet.
//
// Source: measured with OVS 3.1. A port that heard a querier accepts no groups any
// more, so the groups come first. mdb/show has neither the versions of IGMP and MLD nor
// the addresses of members, and no trace depends on them.

// restoreMulticast gives each bridge the groups and queriers that it knew.
func restoreMulticast(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	sent := false
	for _, bridge := range sw.Bridges {
		if !bridge.snoops {
			continue
		}
		text, err := rec.bridgeText(bridge, workdir.RecordedMDB)
		if err != nil {
			return err
		}
		if text == "" {
			outcome.Note(report.Unknown, "%s: no mdb/show was collected: multicast packets are flooded", bridge.Name)
			continue
		}
		table := &multicastTable{Bridge: bridge, sw: sw}
		for _, entry := range appctl.MulticastGroups(text) {
			if table.portOf(entry) == nil {
				outcome.Note(report.Unknown, "%s: %s: the port is not in the database", bridge.Name, describeMulticast(entry))
				continue
			}
			table.live = append(table.live, entry)
		}
		if len(table.live) == 0 {
			continue
		}
		sent = true
		if table.cvlans, err = rec.listed(workdir.RecordedListPort, "cvlans"); err != nil {
			return err
		}
		if err := table.restore(ctx, outcome); err != nil {
			return err
		}
	}
	if !sent {
		return nil
	}
	return sw.forgetPackets(ctx, outcome)
}

// multicastTable restores the multicast snooping table of a bridge.
type multicastTable struct {
	*Bridge
	sw      *Switch
	live    []appctl.MulticastEntry
	cvlans  map[string]string // of ports by name, as ovs-vsctl list port prints them
	version openflow.Version
	input   string                        // the device that receives our packets
	undo    []func(context.Context) error // functions that reverse the changes of begin
}

func describeMulticast(entry appctl.MulticastEntry) string {
	what := "a querier"
	if entry.Group.IsValid() {
		what = "group " + entry.Group.String()
	}
	return fmt.Sprintf("%s on port %s in VLAN %d", what, entry.Port, entry.VLAN)
}

func (m *multicastTable) restore(ctx context.Context, outcome *report.Outcome) (err error) {
	if m.version, err = m.sw.newest(ctx, m.Bridge); err != nil {
		return err
	}
	err = m.begin(ctx)
	if err == nil {
		err = m.send(ctx)
	}
	if err != nil {
		outcome.Note(report.Failed, "%s: multicast groups: %v", m.Name, err)
	}
	// The changes are reversed even if ctx has ended or begin failed.
	if err := m.end(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("%s: removing the flow and port flags for multicast groups: %w", m.Name, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return m.compare(ctx, outcome)
}

// ourMatch matches packets with our source address, whose last two bytes are a port
// number. ourActions sends them to NORMAL as if that port had received them.
const (
	ourMatch   = "priority=65535,dl_src=03:00:6f:76:00:00/ff:ff:ff:ff:00:00"
	ourActions = ",actions=move:NXM_OF_ETH_SRC[0..15]->NXM_OF_IN_PORT[],NORMAL"
)

// ourSource returns our source address for a port's number.
func ourSource(number int) packet.MAC {
	return packet.MAC{0x03, 0x00, 0x6f, 0x76, byte(number >> 8), byte(number)}
}

// begin chooses the input port, stops forwarding to patch ports and bonds, and
// adds our flow.
func (m *multicastTable) begin(ctx context.Context) error {
	show, err := m.sw.show(ctx, m.Bridge)
	if err != nil {
		return err
	}
	config := map[int][]string{}
	for _, port := range show.Ports {
		config[port.Number] = port.Config
	}
	for _, port := range m.Ports {
		for _, iface := range port.Interfaces {
			flags := config[m.number(iface)]
			if iface.isDevice() && !slices.Contains(flags, "NO_RECV") && (m.input == "" || iface.Name == m.Name) {
				m.input = iface.Name
			}
			if iface.Type != "patch" && len(port.Interfaces) == 1 {
				continue
			}
			for _, flag := range [][3]string{{"NO_FLOOD", "no-flood", "flood"}, {"NO_FWD", "no-forward", "forward"}} {
				if slices.Contains(flags, flag[0]) {
					continue
				}
				if err := m.sw.modPort(ctx, m.Bridge, m.number(iface), flag[1]); err != nil {
					return err
				}
				m.undo = append(m.undo, func(ctx context.Context) error { return m.sw.modPort(ctx, m.Bridge, m.number(iface), flag[2]) })
			}
		}
	}
	if m.input == "" {
		return errors.New("no port of the bridge can receive packets")
	}
	_, err = m.sw.ofctl(ctx, m.Bridge, m.version, "add-flow", ourMatch+ourActions)
	return err
}

// number returns an interface's OpenFlow port number.
func (m *multicastTable) number(iface *Interface) int {
	if iface.Name == m.Name {
		return openflow.PortLocal
	}
	return iface.OfPort
}

// end reverses begin.
func (m *multicastTable) end(ctx context.Context) error {
	_, err := m.sw.ofctlWith(ctx, []string{"--strict"}, m.Bridge, m.version, "del-flows", ourMatch)
	for _, undo := range m.undo {
		err = errors.Join(err, undo(ctx))
	}
	return err
}

// send makes the bridge receive the packets of missing entries, repeatedly if some were
// lost: a dummy device queues a hundred packets and drops the rest.
func (m *multicastTable) send(ctx context.Context) error {
	const attempts = 3
	missing := m.live
	for range attempts {
		for _, entry := range missing {
			for _, data := range m.packets(entry) {
				if err := m.sw.receive(ctx, m.input, data); err != nil {
					return err
				}
			}
		}
		err := retryUntil(ctx, func() (bool, error) {
			have, err := m.running(ctx)
			missing = m.entriesNotIn(m.live, have)
			return len(missing) == 0, err
		})
		if err != nil || len(missing) == 0 {
			return err
		}
	}
	return nil // compare reports what is missing
}

// packets returns the packets from which the bridge learns an entry: one for
// each member of a bond, since a bond accepts them from some members only.
func (m *multicastTable) packets(entry appctl.MulticastEntry) [][]byte {
	port := m.portOf(entry)
	tag := m.packetTag(port, entry.VLAN)
	var list [][]byte
	for _, iface := range port.Interfaces {
		source := ourSource(m.number(iface))
		if entry.Group.IsValid() {
			list = append(list, packet.MulticastReport(source, tag, entry.Group))
		} else {
			list = append(list, packet.IGMPQuery(source, tag))
		}
	}
	return list
}

// portOf returns the port of an entry, nil if the database does not have it.
func (m *multicastTable) portOf(entry appctl.MulticastEntry) *Port {
	name, ok := m.interfaceAt(entry.Port)
	i := slices.IndexFunc(m.Ports, func(port *Port) bool { return port.hasInterface(name) })
	if !ok || i < 0 {
		return nil
	}
	return m.Ports[i]
}

// running asks the replica for the bridge's table.
func (m *multicastTable) running(ctx context.Context) ([]appctl.MulticastEntry, error) {
	out, err := m.sw.appctl(ctx, "mdb/show", m.Name)
	return appctl.MulticastGroups(out), err
}

// entriesNotIn returns the entries of a list that another list lacks. A bond's entry
// has the number of any of its members.
func (m *multicastTable) entriesNotIn(list, other []appctl.MulticastEntry) []appctl.MulticastEntry {
	key := func(entry appctl.MulticastEntry) appctl.MulticastEntry {
		if port := m.portOf(entry); port != nil {
			entry.Port = port.UUID
		}
		return entry
	}
	others := map[appctl.MulticastEntry]bool{}
	for _, entry := range other {
		others[key(entry)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(entry appctl.MulticastEntry) bool { return others[key(entry)] })
}

// compare reads the table back.
func (m *multicastTable) compare(ctx context.Context, outcome *report.Outcome) error {
	have, err := m.running(ctx)
	if err != nil {
		return err
	}
	missing, extra := m.entriesNotIn(m.live, have), m.entriesNotIn(have, m.live)
	for _, entry := range missing {
		outcome.Note(report.Failed, "%s: %s: the replica has not learned it", m.Name, describeMulticast(entry))
	}
	for _, entry := range extra {
		outcome.Note(report.Failed, "%s: %s: the replica has learned it, the live node had not", m.Name, describeMulticast(entry))
	}
	if len(missing)+len(extra) == 0 {
		outcome.Note(report.Restored, "")
	}
	return nil
}

// packetTag returns the 802.1Q tag of a packet that a port receives into a VLAN; 0 means
// none.
func (m *multicastTable) packetTag(port *Port, vlan uint16) uint16 {
	if port.VLANMode == "dot1q-tunnel" { // it receives customers' packets, with a tag that the port admits
		var admitted []uint16
		if err := json.Unmarshal([]byte("["+strings.Trim(m.cvlans[port.Name], "[]")+"]"), &admitted); err == nil && len(admitted) > 0 {
			return admitted[0]
		}
		return 0
	}
	if int(vlan) == port.Tag { // the VLAN of an access port, or a native VLAN
		return 0
	}
	return vlan
}
