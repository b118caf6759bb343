// Package host holds one node as the tracer needs it: its ports, tunnels, networks and
// recorded connections, and the ovs-vswitchd of its replica to ask. It reads a workdir
// and the replica's sockets, and knows no source and no runtime.
package host

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/iproute"
	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/odp"
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
	Conntrack conntrack.Node
	// Remarks are what was not recorded of the node, or can't be read.
	Remarks []string

	ports   map[string]*Port         // by name
	numbers map[string]*Port         // by datapath number; of the tunnels that share one, any
	ifaces  map[string]*Port         // by iface-id
	bridges map[string]map[int]*Port // by bridge and OpenFlow number
	uplinks map[string][]*Port       // by physical network
	tunnels []*Port
	links   []iproute.Link
	routes  []appctl.Route
	kernel  []iproute.Route                  // of the kernel, with their MTUs
	options map[string]map[odp.Option]string // of each bridge: the field of a Geneve option, whose Value is ""
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
	MTU     int // 0 if not recorded
}

// IsTunnel reports whether the port is an end of tunnels.
func (p *Port) IsTunnel() bool {
	switch p.Type {
	case "geneve", "vxlan", "gre", "ip6gre", "stt", "lisp", "erspan", "ip6erspan", "gtpu", "bareudp", "srv6":
		return true
	}
	return false
}

// isDevice reports whether the port may be a physical one.
func (p *Port) isDevice() bool {
	return !p.IsTunnel() && p.Type != "internal" && !p.isPatch() && p.IfaceID == "" && p.Name != p.Bridge
}

// isPatch reports whether the port leads to another bridge.
func (p *Port) isPatch() bool { return p.Type == "patch" }

// Port returns a port by its name.
func (h *Host) Port(name string) (p *Port, ok bool) {
	p, ok = h.ports[name]
	return p, ok
}

// Datapath returns a port by its number in the replica's datapath. Tunnels of one type
// share a number: the port is any of them.
func (h *Host) Datapath(number string) (p *Port, ok bool) {
	p, ok = h.numbers[number]
	return p, ok
}

// Ports returns all ports, by bridge and number.
func (h *Host) Ports() []*Port {
	var list []*Port
	for _, p := range h.ports {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Port) int {
		return cmp.Or(strings.Compare(a.Bridge, b.Bridge), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// Numbered returns a port of a bridge by its OpenFlow number.
func (h *Host) Numbered(bridge string, number int) (p *Port, ok bool) {
	p, ok = h.bridges[bridge][number]
	return p, ok
}

// Attached returns the port with an iface-id. Neutron's Open vSwitch agent gives that of the
// parent of a trunk to the patch ports of the trunk's bridge as well: then it is the port that
// is no patch port.
func (h *Host) Attached(ifaceID string) (p *Port, ok bool) {
	p, ok = h.ifaces[ifaceID]
	return p, ok
}

// HasEncap reports whether an address is one of the node's tunnel addresses.
func (h *Host) HasEncap(a netip.Addr) bool { return slices.Contains(h.Encaps, a) }

// Uplinks returns the physical ports of a network, by bridge and number.
func (h *Host) Uplinks(network string) []*Port { return h.uplinks[network] }

// NetworksOf returns the physical networks that a port leads to, none if it is no
// physical port of a bridge that is mapped to a network.
func (h *Host) NetworksOf(p *Port) []string {
	if !p.isDevice() {
		return nil
	}
	return h.Networks[p.Bridge]
}

// TunnelFrom returns the port that receives a tunnel's packets: its type fits, and its
// remote_ip is the sender's address or "flow". A port with the sender's address comes
// first, as in ofproto/tunnel.c.
func (h *Host) TunnelFrom(kind string, local, remote netip.Addr) (p *Port, ok bool) {
	var best *Port
	for _, p := range h.tunnels {
		if kind != "" && p.Type != kind || !accepts(p.Options["local_ip"], local) {
			continue
		}
		own, err := netip.ParseAddr(p.Options["remote_ip"])
		if err == nil && own == remote {
			return p, true
		}
		if p.Options["remote_ip"] == "flow" && best == nil {
			best = p
		}
	}
	return best, best != nil
}

// accepts reports whether a tunnel's option local_ip allows an address.
func accepts(option string, a netip.Addr) bool {
	if option == "" || option == "flow" || !a.IsValid() {
		return true
	}
	own, err := netip.ParseAddr(option)
	return err != nil || own == a
}

// TunnelTo returns the node's own address of a tunnel to a peer, from the option
// local_ip of the tunnel's port or from the node's only tunnel address.
func (h *Host) TunnelTo(kind string, remote netip.Addr) (local netip.Addr, ok bool) {
	for _, p := range h.tunnels {
		if own, err := netip.ParseAddr(p.Options["remote_ip"]); err != nil || own != remote || kind != "" && p.Type != kind {
			continue
		}
		if local, err := netip.ParseAddr(p.Options["local_ip"]); err == nil {
			return local, true
		}
	}
	for _, a := range h.Encaps {
		if a.Is4() == remote.Is4() {
			return a, true
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

// OptionField returns the field (tun_metadataN) that a bridge maps a Geneve option to.
func (h *Host) OptionField(bridge string, o odp.Option) (field string, ok bool) {
	o.Value = ""
	field, ok = h.options[bridge][o]
	return field, ok
}
