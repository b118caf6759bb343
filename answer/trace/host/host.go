// Package host holds one node as the tracer needs it: its ports, tunnels, networks and
// recorded connections, and the ovs-vswitchd of its replica to ask. It reads a workdir
// and the replica's sockets, and knows no source and no runtime.
package host

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/internal/iproute"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/snapshot/node"
)

// Host is a node. It does not change after Open and can be used concurrently.
type Host struct {
	Name    string
	Chassis string // system-id, "" if not recorded
	// Hostname is what the node calls itself.
	Hostname string
	// Encaps are the addresses of the node's tunnels.
	Encaps []netip.Addr
	// Networks names the physical networks of each bridge that has any.
	Networks map[string][]string
	// Zones names the owners of conntrack zones.
	Zones map[uint16]string
	// Conntrack holds the recorded connections.
	Conntrack conntrack.Tracker
	// UnknownPorts has the bridges of which the VLANs or the numbers of some ports were not recorded.
	UnknownPorts map[string]bool
	// Remarks are what was not recorded of the node, or can't be read.
	Remarks []string

	version    string                   // of Open vSwitch, "" if not recorded
	ports      map[string]*Port         // by name
	numbers    map[string]*Port         // by datapath number; of the tunnels that share one, any
	ifaces     map[string]*Port         // by iface-id
	bridges    map[string]map[int]*Port // by bridge and OpenFlow number
	uplinks    map[string][]*Port       // by physical network
	tunnels    []*Port
	links      []iproute.Link
	routes     []appctl.Route
	kernel     []iproute.Route                  // of the kernel, with their MTUs
	options    map[string]map[odp.Option]string // of each bridge: the field of a Geneve option, whose Value is ""
	namespaces namespaces
	asker
}

// Port is a port of a bridge.
type Port struct {
	Bridge  string
	Name    string
	Number  int    // OpenFlow
	Type    string // of the interface as recorded: "", "internal", "patch", "geneve" ...
	IfaceID string // of external_ids
	MAC     string // attached-mac of external_ids
	Options map[string]string
	MTU     int    // 0 if not recorded
	Tag     string // the VLAN of packets without one, "" for none
	Bond    string // the bond that it is a member of, "" for none
	Unknown string // what was not recorded: ovsdb.UnknownName, UnknownNumber, UnusedNumber or UnknownType, "" for none of these
}

// IsTunnel reports whether the port is an end of tunnels.
func (p *Port) IsTunnel() bool { return node.IsTunnel(p.Type) }

// IsOneWith reports whether a bridge takes the port and another for one: it is the same, or both are
// members of a bond.
func (p *Port) IsOneWith(other *Port) bool {
	return p == other || other != nil && p.Bond != "" && p.Bond == other.Bond && p.Bridge == other.Bridge
}

// isDevice reports whether the port may be a physical one.
func (p *Port) isDevice() bool {
	return !p.IsTunnel() && p.Type != "internal" && !p.isPatch() && p.IfaceID == "" && p.Name != p.Bridge
}

// isPatch reports whether the port leads to another bridge.
func (p *Port) isPatch() bool { return p.Type == "patch" }

// Port returns a port by its name.
func (h *Host) Port(name string) (port *Port, ok bool) {
	port, ok = h.ports[name]
	return port, ok
}

// Datapath returns a port by its number in the replica's datapath. Tunnels of one type
// share a number: the port is any of them.
func (h *Host) Datapath(number string) (port *Port, ok bool) {
	port, ok = h.numbers[number]
	return port, ok
}

// Ports returns all ports, by bridge and number.
func (h *Host) Ports() []*Port {
	var list []*Port
	for _, port := range h.ports {
		list = append(list, port)
	}
	slices.SortFunc(list, func(a, b *Port) int {
		return cmp.Or(strings.Compare(a.Bridge, b.Bridge), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// Numbered returns a port of a bridge by its OpenFlow number.
func (h *Host) Numbered(bridge string, number int) (port *Port, ok bool) {
	port, ok = h.bridges[bridge][number]
	return port, ok
}

// Attached returns the port with an iface-id. Neutron's Open vSwitch agent gives the iface-id of
// the parent of a trunk to the patch ports of the trunk's bridge as well: then Attached returns
// the port that is not a patch port.
func (h *Host) Attached(ifaceID string) (port *Port, ok bool) {
	port, ok = h.ifaces[ifaceID]
	return port, ok
}

// HasEncap reports whether an address is one of the node's tunnel addresses.
func (h *Host) HasEncap(address netip.Addr) bool { return slices.Contains(h.Encaps, address) }

// Uplinks returns the physical ports of a network, by bridge and number.
func (h *Host) Uplinks(network string) []*Port { return h.uplinks[network] }

// NetworksOf returns the physical networks that a port leads to. Only the physical ports of a
// bridge that is mapped to a network lead to one.
func (h *Host) NetworksOf(port *Port) []string {
	if !port.isDevice() {
		return nil
	}
	return h.Networks[port.Bridge]
}

// Unwired returns the names of the bridges that have physical ports and no physical network. It leaves
// out bridges with logical ports or tunnels.
func (h *Host) Unwired() []string {
	leads := map[string]bool{}
	for _, port := range h.ports {
		if port.isDevice() && len(h.Networks[port.Bridge]) == 0 {
			leads[port.Bridge] = true
		}
	}
	for _, port := range h.ports {
		if port.IsTunnel() || port.IfaceID != "" {
			delete(leads, port.Bridge)
		}
	}
	return slices.Sorted(maps.Keys(leads))
}

// TunnelFrom returns the port that receives a tunnel's packets: its type fits, and its
// remote_ip is the sender's address or "flow". A port with the sender's address comes
// first, as in ofproto/tunnel.c.
func (h *Host) TunnelFrom(kind string, local, remote netip.Addr) (port *Port, ok bool) {
	var best *Port
	for _, port := range h.tunnels {
		if kind != "" && port.Type != kind || !accepts(port.Options["local_ip"], local) {
			continue
		}
		own, err := netip.ParseAddr(port.Options["remote_ip"])
		if err == nil && own == remote {
			return port, true
		}
		if port.Options["remote_ip"] == "flow" && best == nil {
			best = port
		}
	}
	return best, best != nil
}

// accepts reports whether a tunnel's option local_ip allows an address.
func accepts(option string, address netip.Addr) bool {
	if option == "" || option == "flow" || !address.IsValid() {
		return true
	}
	own, err := netip.ParseAddr(option)
	return err != nil || own == address
}

// TunnelTo returns the node's own address of a tunnel to a peer, from the option
// local_ip of the tunnel's port or from the node's only tunnel address.
func (h *Host) TunnelTo(kind string, remote netip.Addr) (local netip.Addr, ok bool) {
	for _, port := range h.tunnels {
		if own, err := netip.ParseAddr(port.Options["remote_ip"]); err != nil || own != remote || kind != "" && port.Type != kind {
			continue
		}
		if local, err := netip.ParseAddr(port.Options["local_ip"]); err == nil {
			return local, true
		}
	}
	for _, encap := range h.Encaps {
		if encap.Is4() == remote.Is4() {
			return encap, true
		}
	}
	return netip.Addr{}, false
}

// SourceTo returns the address from which the node sent packets to another one, as recorded;
// ok is false if it was not recorded.
func (h *Host) SourceTo(to netip.Addr) (source netip.Addr, ok bool) {
	r, _ := appctl.RouteTo(h.routes, to)
	return r.Source, r.Source.IsValid()
}

// HasRouteFor reports whether a packet with a mark (pkt_mark, a number as ofproto/trace prints it) may have
// a route: an unmarked packet, or one with the mark of a recorded route. Routes without a mark are for
// unmarked packets alone (lib/ovs-router.c, ovs_router_lookup).
func (h *Host) HasRouteFor(mark string) bool {
	value, err := strconv.ParseUint(mark, 0, 32)
	return err != nil || slices.ContainsFunc(h.routes, func(r appctl.Route) bool {
		has, err := strconv.ParseUint(cmp.Or(r.Mark, "0"), 0, 32)
		return err != nil || has == value
	})
}

// OptionField returns the field (tun_metadataN) that a bridge maps a Geneve option to.
func (h *Host) OptionField(bridge string, option odp.Option) (field string, ok bool) {
	option.Value = ""
	field, ok = h.options[bridge][option]
	return field, ok
}
