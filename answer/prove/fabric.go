package prove

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"

	"ovs-offline/answer/prove/symbolic"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/host"
	"ovs-offline/internal/interrupt"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// fabric is how the bridges of nodes are connected.
type fabric struct {
	nodes []trace.Node
	// peer returns the node at the other end of the tunnels of a node to an address, "" for none.
	peer func(node string, address netip.Addr) string
	// target is the port of the node targetOn that packets are to get to, with the values that their fields have there.
	target   *host.Port
	targetOn string
	wanted   map[string]string
}

// arrived is the end of the packets that get to the target.
const arrived = "target"

func (f *fabric) node(name string) (trace.Node, bool) {
	i := slices.IndexFunc(f.nodes, func(n trace.Node) bool { return n.Name == name })
	if i < 0 {
		return trace.Node{}, false
	}
	return f.nodes[i], true
}

// Bridge reads the recorded flows and groups of a bridge.
func (f *fabric) Bridge(ctx context.Context, at symbolic.Place) (found symbolic.Bridge, err error) {
	n, ok := f.node(at.Node)
	if !ok {
		return found, fmt.Errorf("the node was not collected")
	}
	found.Ports = map[string]int{}
	for _, port := range n.Ports() {
		if port.Bridge == at.Bridge {
			found.Ports[openflow.PortName(port.Name)] = port.Number
		}
	}
	dump, ok, err := n.Dir.Collected(n.Dir.DumpFile(at.Bridge, workdir.Groups))
	if err != nil {
		return found, err
	}
	if ok {
		groups, problems := openflow.Groups(interrupt.Reader(ctx, dump))
		dump.Close()
		if len(problems) > 0 {
			return found, fmt.Errorf("its groups: %s", problems[0])
		}
		found.Groups = groups
	}
	found.Flows = flowsOf(ctx, n.Dir, at.Bridge)
	return found, nil
}

// flowsOf yields the recorded flows of a bridge, with an error for a line that can't be read: it may be a flow that decides.
func flowsOf(ctx context.Context, wd *workdir.Dir, bridge string) iter.Seq2[openflow.Flow, error] {
	return func(yield func(openflow.Flow, error) bool) {
		dump, ok, err := wd.Collected(wd.DumpFile(bridge, workdir.Flows))
		if err == nil && !ok {
			err = fmt.Errorf("its flows were not collected")
		}
		if err != nil {
			yield(openflow.Flow{}, err)
			return
		}
		defer dump.Close()
		for flow, problem := range openflow.Flows(interrupt.Reader(ctx, dump)) {
			if problem != nil && problem.Lost {
				err = fmt.Errorf("its flows: %s", problem)
			}
			if problem != nil && err == nil {
				continue
			}
			if !yield(flow, err) || err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(openflow.Flow{}, err)
		}
	}
}

// Ports returns the ports of a bridge.
func (f *fabric) Ports(at symbolic.Place) (list []symbolic.Port) {
	n, _ := f.node(at.Node)
	for _, port := range n.Ports() {
		if port.Bridge == at.Bridge && port.Number > 0 {
			tag, _ := strconv.Atoi(port.Tag)
			list = append(list, symbolic.Port{Number: port.Number, Tag: tag})
		}
	}
	return list
}

// Links returns where a port leads, as trace follows packets.
func (f *fabric) Links(at symbolic.Place, number int, constant func(field string) (uint64, bool)) ([]symbolic.Link, error) {
	n, _ := f.node(at.Node)
	port, ok := n.Numbered(at.Bridge, number)
	switch {
	case !ok && n.UnknownPorts[at.Bridge]:
		return nil, fmt.Errorf("packets leave by port %d of bridge %s of node %s, which is not known", number, at.Bridge, at.Node)
	case !ok:
		return nil, nil // Open vSwitch drops what is sent to a port that does not exist
	case port.Unknown != "" && port.Unknown != ovsdb.UnusedNumber:
		return nil, fmt.Errorf("packets leave by port %s of bridge %s of node %s: its %s was not recorded", port.Name, at.Bridge, at.Node, port.Unknown)
	case port.Type == "patch":
		return f.patch(n, port)
	case port.IsTunnel():
		return f.tunnel(n, port, constant)
	}
	return f.outside(n, port), nil
}

// patch returns where a patch port leads.
func (f *fabric) patch(n trace.Node, port *host.Port) ([]symbolic.Link, error) {
	peer, ok := n.Port(port.Options["peer"])
	if !ok {
		return nil, nil
	}
	return []symbolic.Link{{To: symbolic.Place{Node: n.Name, Bridge: peer.Bridge}, Port: peer.Number}}, nil
}

// tunnel returns where a tunnel leads.
func (f *fabric) tunnel(n trace.Node, port *host.Port, constant func(field string) (uint64, bool)) ([]symbolic.Link, error) {
	remote, err := netip.ParseAddr(port.Options["remote_ip"])
	if err != nil {
		address, ok := constant("tun_dst")
		if !ok || address == 0 {
			return nil, fmt.Errorf("packets leave by the tunnel port %s of node %s for an address that their own bits choose", port.Name, n.Name)
		}
		remote = netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)})
	}
	peer, ok := f.node(f.peer(n.Name, remote))
	if !ok {
		return []symbolic.Link{{End: fmt.Sprintf("the node with the tunnel address %s, which was not collected", remote)}}, nil
	}
	local, _ := n.TunnelTo(port.Type, remote)
	in, ok := peer.TunnelFrom(port.Type, remote, local)
	if !ok {
		return nil, nil // trace: no tunnel from there
	}
	src, dst := "tun_src", "tun_dst"
	if remote.Is6() {
		src, dst = "tun_ipv6_src", "tun_ipv6_dst"
	}
	link := symbolic.Link{To: symbolic.Place{Node: peer.Name, Bridge: in.Bridge}, Port: in.Number, Kept: []string{"tun_metadata*"},
		Metadata: map[string]string{dst: remote.String()}}
	if local.IsValid() {
		link.Metadata[src] = local.String()
	}
	if key := port.Options["key"]; key == "flow" {
		link.Kept = append(link.Kept, "tun_id")
	} else if key != "" {
		link.Metadata["tun_id"] = key
	}
	return []symbolic.Link{link}, nil
}

// outside returns where a port leads that belongs to the node, a VM, a pod or a physical network.
func (f *fabric) outside(n trace.Node, port *host.Port) (links []symbolic.Link) {
	_, kernel := n.DeviceOf(port)
	if f.target != nil && n.Name == f.targetOn && port.IsOneWith(f.target) {
		links = append(links, symbolic.Link{End: arrived, Where: f.wanted, May: kernel && port.IfaceID == ""})
	}
	networks := n.NetworksOf(port)
	switch {
	case kernel:
		links = append(links, symbolic.Link{End: fmt.Sprintf("the kernel of node %s, by %s", n.Name, port.Name)})
	case len(networks) > 0:
		links = append(links, symbolic.Link{End: fmt.Sprintf("the physical network %s", networks[0])})
	case len(links) == 0:
		links = append(links, symbolic.Link{End: fmt.Sprintf("port %s of node %s", port.Name, n.Name)})
	}
	for _, network := range networks {
		for _, peer := range f.nodes {
			for _, uplink := range peer.Uplinks(network) {
				if peer.Name != n.Name || uplink.Bridge != port.Bridge {
					links = append(links, symbolic.Link{To: symbolic.Place{Node: peer.Name, Bridge: uplink.Bridge}, Port: uplink.Number, Metadata: map[string]string{}, May: true})
				}
			}
		}
	}
	return links
}
