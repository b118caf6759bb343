package rules

import (
	"fmt"
	"hash/fnv"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
)

// The cookies of the flows that ovnkube-node writes into the bridge to the outside of a node, br-ex or
// breth0 (go-controller/pkg/node/types/const.go and gateway_shared_intf.go of ovn-kubernetes).
const (
	gatewayDefault  = 0xdeff105
	gatewayMTU      = 0x0304
	gatewayARP      = 0x0305
	gatewayETPLocal = 0xe745ecf105
)

// GatewayFlow is a flow of the bridge to the outside, with the names of ports.
type GatewayFlow struct {
	openflow.Key
	Actions string
	// Port returns the name of the port with a number.
	Port func(number string) string
}

// gateway knows what the flows of the bridge to the outside are made from.
type gateway struct {
	services  map[uint64]string // by the cookies of their flows
	addresses map[string]string // the services, by address and port
	networks  map[string]string // of localnet ports
}

// Gateway returns the stage of a flow that ovnkube-node wrote into the bridge to the outside of its node,
// and what it is for; ok is false for another flow.
func (n *Northbound) Gateway(f GatewayFlow) (stage, words string, ok bool) {
	switch f.Cookie {
	case gatewayDefault:
		words = n.gatewayWords(f)
	case gatewayMTU:
		words = "ICMP errors about the MTU of other nodes: dropped"
	case gatewayARP:
		words = "gratuitous ARP, until the databases of OVN are current"
	case gatewayETPLocal:
		words = "services with externalTrafficPolicy Local and endpoints on the node itself"
	default:
		words = n.gateway().services[f.Cookie]
	}
	return GatewayTable(f.Table), words, words != ""
}

// GatewayTable names a table of the bridge to the outside of a node of ovn-kubernetes, "" for an unknown one
// (go-controller/pkg/node/bridgeconfig/bridgeflows.go).
func GatewayTable(table int) string {
	return map[int]string{
		0: "by the port of input", 1: "from outside: by the connection", 2: "from the node to OVN", 3: "from OVN to the node",
		4: "from OVN to the node: address of the node", 5: "from the node to OVN: answers", 6: "from outside to endpoints on the node",
		7: "answers of endpoints on the node", 11: "from outside: by the length",
	}[table]
}

// gatewayWords names a flow that is there whatever services there are.
func (n *Northbound) gatewayWords(f GatewayFlow) string {
	in, _ := f.Field("in_port")
	switch f.Table {
	case 0:
		switch {
		case in == "":
			return "packets for the node's MAC address"
		case in == "LOCAL":
			return fromNode(f)
		}
		if network := n.networkOf(f.Port(in)); network != "" {
			return fromNetwork(f, network)
		}
		return fromOutside(f)
	case 1:
		if mark, _ := f.Field("ct_mark"); mark != "" {
			return "connections of " + n.receiverOf(f)
		}
		return "from outside, of no known connection"
	case 2:
		switch _, marked := f.Field("pkt_mark"); {
		case f.Actions == "drop":
			return "isolation of user-defined networks: services of other networks"
		case f.Priority == 300:
			return "services of the default network that user-defined networks may use"
		case marked:
			return "from the node to services of " + n.receiverOf(f)
		}
		return "from the node to services"
	}
	return GatewayTable(f.Table)
}

// fromNode names a flow for what the node itself sends.
func fromNode(f GatewayFlow) string {
	switch {
	case isTunnel(f):
		return "tunnels of the node to other nodes"
	case strings.Contains(f.Actions, "table=2") && f.Priority == 550:
		return "from the node to services, in user-defined networks"
	case strings.Contains(f.Actions, "table=2"):
		return "from the node to services"
	case strings.Contains(f.Actions, "table=5"):
		return "answers of the node to pods"
	}
	return "from the node to the outside"
}

// fromNetwork names a flow for what comes from a logical network.
func fromNetwork(f GatewayFlow, network string) string {
	_, marked := f.Field("pkt_mark")
	switch {
	case strings.Contains(f.Actions, "table=3"):
		return "answers of services in " + network + " to the node"
	case strings.Contains(f.Actions, "table=4"):
		return "from " + network + " to the node by a service"
	case f.Actions == "drop" && f.Priority == 115:
		return "from " + network + " to a service that has no such port: dropped"
	case f.Actions == "drop" && f.Priority == 103:
		return "from " + network + " with addresses of pods, which must not leave: dropped"
	case f.Actions == "drop":
		return "from " + network + " with another MAC address than the node's: dropped"
	case marked:
		return "EgressIP or EgressService of " + network
	}
	return "from " + network + " to the outside"
}

// fromOutside names a flow for what comes by the node's interface.
func fromOutside(f GatewayFlow) string {
	if _, fragments := f.Field("nw_frag"); fragments {
		return "fragments from outside, to be put together"
	}
	if isTunnel(f) {
		return "tunnels of other nodes"
	}
	return "from outside"
}

func isTunnel(f GatewayFlow) bool {
	_, to := f.Field("tp_dst")
	return to && (f.Priority == 200 || f.Priority == 205)
}

// receiverOf names the network, or the node, to which a flow sends.
func (n *Northbound) receiverOf(f GatewayFlow) string {
	for action := range openflow.Tokens(f.Actions) {
		if to, is := strings.CutPrefix(action, "output:"); is {
			if network := n.networkOf(f.Port(to)); network != "" {
				return network
			}
		}
	}
	return "the node"
}

// networkOf names the logical network behind a patch port to the integration bridge, "" for another port.
// ovn-controller names patch ports by their localnet port (controller/patch.c).
func (n *Northbound) networkOf(port string) string {
	localnet, ok := strings.CutPrefix(port, "patch-")
	if !ok {
		return ""
	}
	localnet, _, _ = strings.Cut(localnet, "-to-")
	if network := n.gateway().networks[localnet]; network != "" {
		return "network " + network
	}
	return "the default network"
}

// ServiceAt returns the namespace and the name of the service of ovn-kubernetes with an address and a port ("10.96.0.7:80"),
// "" if there is none.
func (n *Northbound) ServiceAt(address string) string { return n.gateway().addresses[address] }

// readGateway reads the services and the networks.
func (n *Northbound) readGateway() gateway {
	g := gateway{services: map[uint64]string{}, addresses: map[string]string{}, networks: map[string]string{}}
	if n.nb == nil {
		return g
	}
	network := map[string]string{}                 // by the UUIDs of ports
	_ = ovn.EachSwitch(n.nb, func(s *ovn.Switch) { // flows of what can't be read have no names
		if id := s.IDs[ovn.NetworkID]; id != "" {
			for _, port := range s.PortUUIDs {
				network[port] = ovn.UserDefinedNetwork(id)
			}
		}
	})
	if len(network) > 0 {
		_ = ovn.EachSwitchPort(n.nb, func(p *ovn.SwitchPort) {
			if p.Type == "localnet" && network[p.UUID] != "" {
				g.networks[p.Name] = network[p.UUID]
			}
		})
	}
	_ = ovn.EachBalancer(n.nb, g.addService)
	return g
}

// addService adds the cookies that the flows of a service may have: of its node ports, of its addresses
// outside, and of the ports of its endpoints (svcToCookie in gateway_shared_intf.go).
func (g gateway) addService(b *ovn.Balancer) {
	namespace, name, ok := strings.Cut(b.Service(), "/")
	if !ok {
		return
	}
	words := "Service " + b.Service()
	for vip, endpoints := range b.VIPs {
		address, port := cutVIP(vip)
		g.addresses[vip] = b.Service()
		g.services[serviceCookie(namespace, name, address, port)] = words + " at " + vip
		for _, family := range []string{"", "6"} {
			g.services[serviceCookie(namespace, name, b.Protocol+family, port)] = fmt.Sprintf("%s, port %s", words, port)
			for endpoint := range strings.SplitSeq(endpoints, ",") {
				_, target := cutVIP(strings.TrimSpace(endpoint))
				if cookie := serviceCookie(namespace, name, b.Protocol+family, target); g.services[cookie] == "" {
					g.services[cookie] = fmt.Sprintf("%s, endpoints at port %s", words, target)
				}
			}
		}
	}
}

// serviceCookie returns the cookie of the flows of a service: the FNV-1a hash of its name with a protocol or an
// address, and a port.
func serviceCookie(namespace, name, token, port string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(namespace + name + token + port))
	return h.Sum64()
}
