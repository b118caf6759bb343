package check_test

import (
	"fmt"
	"slices"
	"strings"
)

// openstackFaults are the faults of the set openstack.
func openstackFaults() []fault {
	return slices.Concat(flowFaults(), addressFaults(), routingFaults(), balancerFaults(), gatewayFaults(), matchFaults(),
		controlFaults(), nodeFaults(), lostFaults(), versionFaults())
}

func addressFaults() []fault {
	return []fault{
		{name: "an instance gets the MAC address of another", alone: true, rule: "duplicate-mac",
			says:  "port vm2 ({port vm2}) and port vm1 ({port vm1}) of switch blue",
			plant: `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:05 192.168.10.6 fd00:10::6\""`,
			undo:  `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.6 fd00:10::6\""`},
		{name: "an instance gets the IP address of another", rule: "duplicate-ip",
			says:  "have the same IP address 192.168.10.5",
			plant: `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.5 fd00:10::6\""`,
			undo:  `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.6 fd00:10::6\""`},
		{name: "an instance gets the IP address of its router", rule: "duplicate-ip", says: "router main (neutron-",
			plant: `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.1\""`,
			undo:  `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.6 fd00:10::6\""`},
		{name: "a second router has the MAC address of the first", rule: "duplicate-mac",
			says:  "have the same MAC address fa:16:3e:aa:00:10",
			plant: `nb lrp-add {router lone} lrp-second fa:16:3e:aa:00:10 172.24.4.99/24 -- lsp-add {net public} second -- lsp-set-type second router -- lsp-set-addresses second router -- lsp-set-options second router-port=lrp-second`,
			undo:  `nb lrp-del lrp-second -- lsp-del second`},
		{name: "the address of an instance changes, and its port security does not", rule: "port-security-excludes",
			says:  "does not allow its own address 192.168.10.88",
			plant: `nb set Logical_Switch_Port {port vm8} addresses="\"fa:16:3e:10:00:08 192.168.10.88 fd00:10::8\""`,
			undo:  `nb set Logical_Switch_Port {port vm8} addresses="\"fa:16:3e:10:00:08 192.168.10.8 fd00:10::8\""`},
		{name: "port security allows an instance no IPv6", rule: "port-security-excludes",
			says: "does not allow its own address fd00:20::6", beside: true,
			plant: `nb set Logical_Switch_Port {port vm5} port_security="\"fa:16:3e:20:00:06 192.168.20.6\""`,
			undo:  `nb set Logical_Switch_Port {port vm5} port_security="\"fa:16:3e:20:00:06 192.168.20.6 fd00:20::6\""`},
		{name: "two ports of a router have one network", rule: "overlapping-networks", says: "have overlapping networks",
			plant: `nb lrp-add {router lone} lrp-over fa:16:3e:bb:00:09 192.168.30.9/24`, undo: `nb lrp-del lrp-over`},
		{name: "a static MAC binding names a wrong MAC address", rule: "mac-binding-contradicts",
			says:  "has MAC address 02:00:00:00:00:99, but port vm1",
			plant: `nb create Static_MAC_Binding logical_port={lrp main-blue} ip=192.168.10.5 mac="\"02:00:00:00:00:99\""`,
			undo:  `nb destroy Static_MAC_Binding {nb Static_MAC_Binding ip=192.168.10.5 _uuid}`},
		{name: "another machine answers ARP for an instance", rule: "mac-binding-contradicts",
			says: "the learned MAC binding of 192.168.20.5", beside: true,
			plant: `sb create MAC_Binding logical_port={lrp main-green} ip=192.168.20.5 mac="\"02:00:00:00:00:98\"" datapath={sb Datapath_Binding external_ids:name2=main _uuid}`,
			undo:  `sb destroy MAC_Binding {sb MAC_Binding ip=192.168.20.5 _uuid}`},
		{name: "a router keeps the MAC address of a floating IP that moved", rule: "mac-binding-contradicts",
			says: "but floating ip 172.24.4.22 for 192.168.10.7 of router main",
			plant: `nb lrp-add {router lone} lrp-second fa:16:3e:bb:00:10 172.24.4.99/24 -- lsp-add {net public} second -- lsp-set-type second router -- lsp-set-addresses second router -- lsp-set-options second router-port=lrp-second
				nb --wait=sb sync
				sb --if-exists destroy MAC_Binding {sb MAC_Binding ip=172.24.4.22 _uuid} -- create MAC_Binding logical_port=lrp-second ip=172.24.4.22 mac="\"02:00:00:00:00:97\"" datapath={sb Datapath_Binding external_ids:name2=lone _uuid}`,
			undo: `nb lrp-del lrp-second -- lsp-del second`},
		{name: "an instance sends with the MAC address of another", rule: "fdb-contradicts",
			says:  "fa:16:3e:78:00:06 of port vm7",
			plant: `sb create FDB mac="\"fa:16:3e:78:00:06\"" dp_key={sb Datapath_Binding external_ids:name2=vlan120 tunnel_key} port_key={sb Port_Binding logical_port={port vm6} tunnel_key}`,
			undo:  `sb destroy FDB {sb FDB mac="fa:16:3e:78:00:06" _uuid}`},
		{name: "an instance sends with the MAC address of one on another node", rule: "fdb-contradicts", says: "of port vm12",
			beside: true,
			plant:  `sb create FDB mac="\"fa:16:3e:40:00:0c\"" dp_key={sb Datapath_Binding external_ids:name2=grey tunnel_key} port_key={sb Port_Binding logical_port={port vm10} tunnel_key}`,
			undo:   `sb destroy FDB {sb FDB mac="fa:16:3e:40:00:0c" _uuid}`},
		{name: "two floating IPs have one address", rule: "duplicate-floating-ip",
			says:  "floating ip 172.24.4.22 for 192.168.10.8",
			plant: `nb --id=@n create NAT type=dnat_and_snat external_ip=172.24.4.22 logical_ip=192.168.10.8 -- add Logical_Router {router main} nat @n`,
			undo:  `nb remove Logical_Router {router main} nat {nb NAT logical_ip=192.168.10.8 _uuid}`},
		{name: "a port outside has the address of a floating IP", rule: "duplicate-floating-ip",
			says:  "port thief of switch public",
			plant: `nb lsp-add {net public} thief -- lsp-set-addresses thief "02:00:00:00:00:21 172.24.4.22"`,
			undo:  `nb lsp-del thief`},
	}
}

func routingFaults() []fault {
	return []fault{
		{name: "a route leads to an unknown network", rule: "route-without-path",
			says: "route 10.55.0.0/16 via 192.168.99.1 of router main", logs: true,
			plant: `nb lr-route-add {router main} 10.55.0.0/16 192.168.99.1`,
			undo:  `nb lr-route-del {router main} 10.55.0.0/16`},
		{name: "ovn-northd logs a route to an unknown network", rule: "northd-without-path",
			says: "has no path for the static route 10.55.0.0/16 via 192.168.99.1", beside: true},
		{name: "a route leaves by a port that the router lost", rule: "route-without-path",
			says:  "the router has no port lrp-gone",
			plant: `nb --id=@r create Logical_Router_Static_Route ip_prefix=10.56.0.0/16 nexthop=172.24.4.1 output_port=lrp-gone -- add Logical_Router {router main} static_routes @r`,
			undo:  `nb lr-route-del {router main} 10.56.0.0/16`},
		{name: "a policy leads to an unknown network", rule: "policy-without-path", says: "with next hop 192.168.99.9",
			beside: true,
			plant:  `nb lr-policy-add {router main} 160 "ip4.src == 192.168.20.6" reroute 192.168.99.9`,
			undo:   `nb lr-policy-del {router main} 160`},
		{name: "a network is connected to a router port that was deleted", rule: "router-port-missing",
			says:  "leads to router port lrp-gone",
			plant: `nb set Logical_Switch_Port {port lone-grey} options:router-port=lrp-gone`,
			undo:  `nb set Logical_Switch_Port {port lone-grey} options:router-port={lrp lone-grey}`},
		{name: "a router port has a peer that was deleted", rule: "router-port-missing", says: "port lrp-one of router lone",
			plant: `nb lrp-add {router lone} lrp-one 02:00:00:00:07:01 10.201.0.1/24 peer=lrp-gone`, undo: `nb lrp-del lrp-one`},
		{name: "a router port is connected to nothing", rule: "router-port-unconnected", says: "port lrp-lost of router lone",
			plant: `nb lrp-add {router lone} lrp-lost 02:00:00:00:07:02 10.200.0.1/24`, undo: `nb lrp-del lrp-lost`},
		{name: "a floating IP of IPv6 is for a port that was deleted", rule: "nat-without-port", says: "names port gone6",
			beside: true,
			plant:  `nb --id=@n create NAT type=dnat_and_snat external_ip="\"2001:db8:4::27\"" logical_ip="\"fd00:20::5\"" external_mac="\"fa:16:3e:ff:00:27\"" logical_port=gone6 -- add Logical_Router {router main} nat @n`,
			undo:   `nb remove Logical_Router {router main} nat {nb NAT logical_port=gone6 _uuid}`},
		{name: "a router translates addresses without a gateway", rule: "nat-without-gateway", says: "router lone (",
			plant: `nb lr-nat-add {router lone} snat 172.24.4.98 192.168.30.0/24`, undo: `nb lr-nat-del {router lone}`},
		{name: "the gateway of a router is removed", rule: "nat-without-gateway", says: "router main (",
			plant: `nb clear Logical_Router_Port {lrp main-public} gateway_chassis`,
			undo:  `nb --id=@g create Gateway_Chassis name={lrp main-public}_{sb Chassis hostname=gateway name} chassis_name="\"{sb Chassis hostname=gateway name}\"" priority=2 -- set Logical_Router_Port {lrp main-public} gateway_chassis=@g`},
		{name: "a floating IP is for a port that was deleted", rule: "nat-without-port", says: "names port gone",
			plant: `nb set NAT {nb NAT external_ip=172.24.4.25 _uuid} logical_port=gone`,
			undo:  `nb set NAT {nb NAT external_ip=172.24.4.25 _uuid} logical_port="\"{port vm5}\""`},
		{name: "a floating IP leads to the address of an instance that was deleted", rule: "nat-without-port",
			says: "leads to an address that no port of switch blue", also: true, beside: true,
			plant: `nb --id=@n create NAT type=dnat_and_snat external_ip=172.24.4.78 logical_ip=192.168.10.78 -- add Logical_Router {router main} nat @n`,
			undo:  `nb remove Logical_Router {router main} nat {nb NAT logical_ip=192.168.10.78 _uuid}`},
		{name: "the neighbour of a BFD session does not answer", rule: "bfd-session-down", says: "with 172.24.4.77 is down",
			plant: `nb --id=@b create BFD logical_port={lrp main-public} dst_ip=172.24.4.77 -- --id=@r create Logical_Router_Static_Route ip_prefix=10.57.0.0/16 nexthop=172.24.4.77 bfd=@b -- add Logical_Router {router main} static_routes @r
				nb wait-until BFD {nb BFD dst_ip=172.24.4.77 _uuid} status=down`,
			undo: `nb lr-route-del {router main} 10.57.0.0/16
				nb destroy BFD {nb BFD dst_ip=172.24.4.77 _uuid}`},
	}
}

func balancerFaults() []fault {
	return []fault{
		{name: "a load balancer loses its backends", rule: "balancer-without-backends",
			says:  "VIP 192.168.10.222:80 of load balancer idle",
			plant: `nb --id=@l create Load_Balancer name=idle vips:"\"192.168.10.222:80\""="\"\"" -- add Logical_Switch {net blue} load_balancer @l`,
			undo:  `nb lb-del idle`},
		{name: "nothing uses a load balancer", rule: "balancer-unused", says: "load balancer alone",
			plant: `nb lb-add alone 192.168.10.223:80 192.168.10.5:80`, undo: `nb lb-del alone`},
		{name: "two load balancers have one VIP", rule: "duplicate-vip", says: "VIP 192.168.10.100:80 of load balancer",
			beside: true,
			plant:  `nb lb-add second 192.168.10.100:80 192.168.10.6:8080 -- ls-lb-add {net blue} second`,
			undo:   `nb lb-del second`},
		{name: "a load balancer keeps the address of an instance that was deleted", rule: "balancer-backend-vacant",
			says: "no port has the address of 1 of 2 backends: 192.168.10.77:80", beside: true,
			plant: `nb lb-add stale 192.168.10.227:80 192.168.10.5:80,192.168.10.77:80 -- ls-lb-add {net blue} stale`,
			undo:  `nb lb-del stale`},
		{name: "a VIP is malformed", rule: "balancer-malformed",
			says:  "VIP 192.168.10.300:80 of load balancer bad is malformed",
			plant: `nb --id=@l create Load_Balancer name=bad vips:"\"192.168.10.300:80\""="\"192.168.10.5:80\"" -- add Logical_Switch {net blue} load_balancer @l`, undo: `nb lb-del bad`},
		{name: "a VIP has a backend of the other family", rule: "balancer-malformed", says: "its backend [fd00:10::5]:80",
			beside: true,
			plant:  `nb --id=@l create Load_Balancer name=mixed vips:"\"192.168.10.224:80\""="\"[fd00:10::5]:80\"" -- add Logical_Switch {net blue} load_balancer @l`, undo: `nb lb-del mixed`},
		{name: "a backend does not answer its health check", rule: "balancer-backend-down",
			says: "VIP 192.168.10.225:80 of load balancer checked: 1 of 1 backend down",
			plant: `nb --id=@c create Load_Balancer_Health_Check vip="\"192.168.10.225:80\"" options:interval=1 options:timeout=1 options:failure_count=1 options:success_count=1 -- --id=@l create Load_Balancer name=checked protocol=tcp vips:"\"192.168.10.225:80\""="\"192.168.10.5:80\"" ip_port_mappings:192.168.10.5="\"{port vm1}:192.168.10.251\"" health_check=@c -- add Logical_Switch {net blue} load_balancer @l
				nb --wait=hv sync
				sb wait-until Service_Monitor {sb Service_Monitor ip=192.168.10.5 _uuid} status=offline`,
			undo: `nb lb-del checked`},
		{name: "a health check has no port to probe", rule: "balancer-check-without-probe",
			says:  "does not probe 192.168.10.6:80",
			plant: `nb --id=@c create Load_Balancer_Health_Check vip="\"192.168.10.226:80\"" -- --id=@l create Load_Balancer name=unprobed vips:"\"192.168.10.226:80\""="\"192.168.10.6:80\"" health_check=@c -- add Logical_Switch {net blue} load_balancer @l`, undo: `nb lb-del unprobed`},
	}
}

func gatewayFaults() []fault {
	// A second gateway chassis has the nodes watch each other by BFD, for which the lab has no network.
	watched := []string{"tunnel-down", "gateway-unbound"}
	return []fault{
		{name: "the only gateway chassis is gone", rule: "gateway-unbound", says: "which is for chassis-gone",
			plant: `nb set Gateway_Chassis {nb Gateway_Chassis priority=2 _uuid} chassis_name=chassis-gone name={lrp main-public}_chassis-gone
				sb wait-until Port_Binding cr-{lrp main-public} chassis=[]`,
			undo: `nb set Gateway_Chassis {nb Gateway_Chassis priority=2 _uuid} chassis_name="\"{sb Chassis hostname=gateway name}\"" name={lrp main-public}_{sb Chassis hostname=gateway name}`},
		{name: "the second gateway chassis is gone", rule: "gateway-chassis-missing", says: "names chassis chassis-gone",
			causes: watched,
			plant:  `nb --id=@g create Gateway_Chassis name={lrp main-public}_chassis-gone chassis_name=chassis-gone priority=1 -- add Logical_Router_Port {lrp main-public} gateway_chassis @g`,
			undo:   `nb remove Logical_Router_Port {lrp main-public} gateway_chassis {nb Gateway_Chassis chassis_name=chassis-gone _uuid}`},
		{name: "a person adds a gateway chassis to neutron's router", rule: "gateway-chassis-name",
			says: "is not named as neutron names it", causes: watched,
			plant: `nb lrp-set-gateway-chassis {lrp main-public} {sb Chassis hostname=compute1 name} 1`,
			undo:  `nb lrp-del-gateway-chassis {lrp main-public} {sb Chassis hostname=compute1 name}`},
		{name: "a person makes a port of neutron's router distributed", rule: "gateway-chassis-name", says: "of router lone",
			causes: watched,
			plant:  `nb lrp-set-gateway-chassis {lrp lone-red} {sb Chassis hostname=compute2 name} 5`,
			undo:   `nb lrp-del-gateway-chassis {lrp lone-red} {sb Chassis hostname=compute2 name}`},
		{name: "a gateway moves again and again", rule: "gateway-moves", says: "at last cr-{lrp main-public}", logs: true,
			plant: strings.Repeat(`nb --wait=hv set Gateway_Chassis {nb Gateway_Chassis priority=2 _uuid} chassis_name="\"{sb Chassis hostname=compute1 name}\""
				nb --wait=hv set Gateway_Chassis {nb Gateway_Chassis priority=2 _uuid} chassis_name="\"{sb Chassis hostname=gateway name}\""
			`, 11)},
		{name: "a node loses its bridge to a physical network", alone: true, rule: "localnet-unmapped",
			says: "chassis compute2 has ports of switch vlan120",
			plant: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"\""
				sb wait-until Chassis {sb Chassis hostname=compute2 _uuid} other_config:ovn-bridge-mappings="\"\""`,
			undo: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet1:br-ex\""
				sb wait-until Chassis {sb Chassis hostname=compute2 _uuid} other_config:ovn-bridge-mappings="\"physnet1:br-ex\""`},
		{name: "a localnet port names no physical network", rule: "localnet-without-network", says: "{provnet vlan120}",
			plant: `nb clear Logical_Switch_Port {provnet vlan120} options`,
			undo:  `nb set Logical_Switch_Port {provnet vlan120} options:network_name=physnet1`},
	}
}

func matchFaults() []fault {
	acl := func(match string) (plant, undo string) {
		return `nb acl-add {pg web} to-lport 1100 "` + match + `" allow-related`,
			`nb acl-del {pg web} to-lport 1100 "` + match + `"`
	}
	var faults []fault
	for i, c := range []struct{ name, match, rule, says string }{
		{"an ACL names a field of Open vSwitch", "outport == @{pg web} && tcp_dst == 8080", "match-malformed",
			"there is no field `tcp_dst'"},
		{"an ACL lacks a parenthesis", "outport == @{pg web} && (tcp.dst == 8080", "match-malformed",
			"it ends where ) is expected"},
		{"an ACL matches an invalid network", "outport == @{pg web} && ip4.src == 192.168.10.0/33", "match-malformed",
			"`192.168.10.0/33' is no address"},
		{"an ACL names a port without quotes", "outport == vm1 && ip4", "match-malformed", "a constant is expected at `vm1'"},
		{"an ACL excludes a protocol", "outport == @{pg web} && ip4 && ip.proto != 6", "match-malformed",
			"field `ip.proto' may only be tested for equality"},
		{"an ACL joins and with or", "outport == @{pg web} && tcp.dst == 1 || udp.dst == 1", "match-malformed",
			"&& and || must be in parentheses"},
		{"the address set of an ACL was deleted", `outport == @{pg web} && ip4.src == $gone_ip4`, "match-refers-to-nothing",
			"address set gone_ip4"},
		{"the port group of an ACL was deleted", "outport == @gone && ip4", "match-refers-to-nothing", "port group gone"},
	} {
		plant, undo := acl(c.match)
		faults = append(faults, fault{name: c.name, rule: c.rule, says: c.says, plant: plant, undo: undo, logs: i == 0,
			beside: i > 0 && i%2 == 0})
		if i == 0 { // it logs one in a minute
			faults = append(faults, fault{name: "ovn-controller logs a match that it can't read",
				rule: "logical-flow-not-compiled", says: "could not read the match of a logical flow: Syntax error at `tcp_dst'",
				beside: true})
		}
	}
	return append(faults,
		fault{name: "a policy route is malformed", rule: "match-malformed", says: "policy route priority 161",
			plant: `nb lr-policy-add {router main} 161 "ip4.src = 192.168.20.6" drop`,
			undo:  `nb lr-policy-del {router main} 161`},
		fault{name: "a QoS rule is malformed", rule: "match-malformed", says: "QoS rule", beside: true,
			plant: `nb qos-add {net blue} to-lport 100 "outport == 5" rate=1000`, undo: `nb qos-del {net blue}`},
		fault{name: "an ACL logs with a meter that was deleted", rule: "meter-missing", says: "logs with meter gone",
			plant: `nb --id=@a create ACL direction=to-lport priority=1101 match="\"outport == @{pg web} && udp\"" action=drop log=true meter=gone -- add Port_Group {pg web} acls @a`,
			undo:  `nb acl-del {pg web} to-lport 1101 "outport == @{pg web} && udp"`},
	)
}

func controlFaults() []fault {
	return []fault{
		{name: "an instance is for a node that has another name", rule: "requested-chassis-missing",
			says:  "port vm11 ({port vm11}) is for chassis compute1.example.org",
			plant: `nb lsp-set-options {port vm11} requested-chassis=compute1.example.org`,
			undo:  `nb clear Logical_Switch_Port {port vm11} options`},
		{name: "the DHCP options of an instance are of another network", rule: "dhcp-unusable",
			says:  "has no address in 192.168.10.0/24",
			plant: `nb set Logical_Switch_Port {port vm4} dhcpv4_options={nb DHCP_Options cidr=192.168.10.0/24 _uuid}`,
			undo:  `nb clear Logical_Switch_Port {port vm4} dhcpv4_options`},
		{name: "the DHCP options lack the lease time", rule: "dhcp-unusable", says: "they lack lease_time",
			plant: `nb remove DHCP_Options {nb DHCP_Options cidr=192.168.10.0/24 _uuid} options lease_time`,
			undo:  `nb set DHCP_Options {nb DHCP_Options cidr=192.168.10.0/24 _uuid} options:lease_time=43200`},
		{name: "two chassis have one tunnel address", rule: "tunnel-address-twice",
			says:  "have the same tunnel address 192.168.24.12",
			plant: `sb chassis-add ghost vxlan 192.168.24.12`, undo: `sb chassis-del ghost`, sync: "sb"},
		{name: "two chassis have one tunnel address, and all other nodes lead there", rule: "chassis-twice",
			says: "have the tunnel address 192.168.24.12", beside: true},
		{name: "the private data of a chassis stay behind", rule: "chassis-private-alone", says: "chassis ghost",
			plant: `sb create Chassis_Private name=ghost`, undo: `sb destroy Chassis_Private ghost`, sync: "sb"},
		{name: "a node does not follow the southbound database", rule: "chassis-behind", says: "compute2", sync: "none",
			plant: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
				nb --wait=sb sync`,
			later: `sb set SB_Global . external_ids:seen=later`,
			undo:  `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/central/ovn/ovnsb_db.sock\""`},
		{name: "ovn-northd does not follow a deletion", rule: "stale-southbound", says: "switch neutron-old", beside: true,
			plant: `nb --wait=sb ls-add neutron-old
				northd pause
				nb ls-del neutron-old`,
			later: `sb set SB_Global . external_ids:seen=later`,
			undo: `northd resume
				sb remove SB_Global . external_ids seen`},
		{name: "ovn-northd does not follow a new port", rule: "northd-behind", says: "", sync: "none",
			plant: `northd pause
				nb lsp-add {net blue} late -- lsp-set-addresses late "02:00:00:00:09:01 192.168.10.91"
				sb get SB_Global . nb_cfg`,
			undo: `nb lsp-del late
				northd resume`},
		{name: "the southbound database has a host twice", rule: "chassis-twice", says: "compute1", sync: "sb",
			plant: `sb chassis-add twin geneve 192.168.24.99 -- set Chassis twin hostname=compute1`,
			undo:  `sb chassis-del twin`},
	}
}

// nodeFaults are faults of single nodes.
func nodeFaults() []fault {
	return []fault{
		{name: "neutron's agent leaves a port in its dead VLAN", rule: "port-in-dead-vlan",
			says:  "port tapdead is in the dead VLAN",
			plant: `vsctl@compute1 add-port br-int tapdead tag=4095 -- set Interface tapdead type=internal`,
			undo:  `vsctl@compute1 del-port br-int tapdead`},
		{name: "a port is moved into the dead VLAN", rule: "port-in-dead-vlan", says: "port tapoff is in the dead VLAN",
			beside: true,
			plant:  `vsctl@gateway add-port br-int tapoff -- set Port tapoff tag=4095 -- set Interface tapoff type=internal`,
			undo:   `vsctl@gateway del-port br-int tapoff`},
		{name: "an interface has a type that does not exist", rule: "interface-without-port-number",
			says: "interface tapbad could not be added", logs: true,
			plant: `vsctl@compute1 add-port br-int tapbad -- set Interface tapbad type=bogus`,
			undo:  `vsctl@compute1 del-port br-int tapbad`},
		{name: "ovs-vswitchd logs an interface of a type that does not exist", rule: "port-not-added",
			says: "could not add port tapbad: Address family not supported by protocol", beside: true},
		{name: "an instance was left on its former node", rule: "port-requested-elsewhere",
			says:  "compute1: interface tapold is of port vm2",
			plant: `vsctl@compute1 add-port br-int tapold -- set Interface tapold external_ids:iface-id={port vm2}`,
			undo:  `vsctl@compute1 del-port br-int tapold`},
		{name: "an instance of a network without routers was left on the gateway", rule: "port-requested-elsewhere",
			says: "gateway: interface tapkept is of port vm7", beside: true,
			plant: `vsctl@gateway add-port br-int tapkept -- set Interface tapkept type=internal external_ids:iface-id={port vm7}`, undo: `vsctl@gateway del-port br-int tapkept`},
		{name: "two interfaces have the port of one instance", rule: "logical-port-twice", says: "vm1",
			plant: `vsctl@compute1 add-port br-int taptwo -- set Interface taptwo external_ids:iface-id={port vm1}`,
			undo:  `vsctl@compute1 del-port br-int taptwo`},
		{name: "an interface names a port that was deleted", rule: "interface-without-logical-port", says: "tapnone",
			beside: true,
			plant:  `vsctl@compute1 add-port br-int tapnone -- set Interface tapnone external_ids:iface-id=gone`,
			undo:   `vsctl@compute1 del-port br-int tapnone`},
		{name: "the device of an instance is down", rule: "interface-down", says: "{tap vm1}",
			plant: `appctl@compute1 netdev-dummy/set-admin-state {tap vm1} down
				vsctl@compute1 wait-until Interface {tap vm1} link_state=down`,
			undo: `appctl@compute1 netdev-dummy/set-admin-state {tap vm1} up`},
		{name: "a patch port has no peer", rule: "patch-without-peer", says: "patch-lost",
			plant: `vsctl@compute1 add-port br-ex patch-lost -- set Interface patch-lost type=patch options:peer=gone`,
			undo:  `vsctl@compute1 del-port br-ex patch-lost`},
		{name: "a patch port has the peer of another", rule: "patch-without-peer",
			says:  "patch-third of bridge br-ex names the peer patch-one, whose own peer is patch-two",
			plant: `vsctl@compute2 add-port br-ex patch-two -- set Interface patch-two type=patch options:peer=patch-one -- add-port br-int patch-one -- set Interface patch-one type=patch options:peer=patch-two -- add-port br-ex patch-third -- set Interface patch-third type=patch options:peer=patch-one`,
			undo:  `vsctl@compute2 del-port br-ex patch-third -- del-port br-ex patch-two -- del-port br-int patch-one`},
		{name: "the bridge of a physical network does not exist", rule: "mapped-bridge-missing", says: "br-gone",
			plant: `vsctl@compute1 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet1:br-ex,physnet2:br-gone\""`,
			undo:  `vsctl@compute1 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet1:br-ex\""`},
		{name: "a tunnel leads to no chassis", rule: "tunnel-to-nowhere", says: "192.168.24.66",
			plant: `vsctl@compute1 add-port br-int gennone -- set Interface gennone type=geneve options:remote_ip=192.168.24.66 options:key=flow`, undo: `vsctl@compute1 del-port br-int gennone`},
		{name: "a tunnel over IPv6 leads to no chassis", rule: "tunnel-to-nowhere",
			says: "gateway: the tunnel vxnone leads to fd00:24::66", beside: true,
			plant: `vsctl@gateway add-port br-int vxnone -- set Interface vxnone type=vxlan options:remote_ip="\"fd00:24::66\"" options:key=flow`, undo: `vsctl@gateway del-port br-int vxnone`},
		{name: "BFD of a tunnel is down", rule: "tunnel-down",
			says: "BFD of the tunnel watched to compute1 (192.168.24.11) is down",
			plant: `vsctl@gateway add-port br-int watched -- set Interface watched type=vxlan options:remote_ip=192.168.24.11 options:key=77 bfd:enable=true
				vsctl@gateway wait-until Interface watched bfd_status:state=down`, undo: `vsctl@gateway del-port br-int watched`},
		{name: "the controller of a bridge does not answer", rule: "controller-not-connected",
			says: "unix:/nonexistent/of.sock of bridge br-ex", outputs: true,
			plant: `vsctl@compute1 set-controller br-ex unix:/nonexistent/of.sock`,
			undo:  `vsctl@compute1 del-controller br-ex`},
		{name: "the manager of a database does not answer", rule: "controller-not-connected",
			says: "compute2: the OVSDB manager tcp:192.0.2.1:6640 is not connected", beside: true,
			plant: `vsctl@compute2 set-manager tcp:192.0.2.1:6640`, undo: `vsctl@compute2 del-manager`},
		{name: "the MAC table of a bridge is full", rule: "fdb-full",
			says: "compute1: the table of MAC addresses of bridge br-ex is full", outputs: true,
			plant: `vsctl@compute1 set Bridge br-ex other_config:mac-table-size=10
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:01
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:02
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:03
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:04
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:05
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:06
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:07
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:08
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:09
				appctl@compute1 fdb/add br-ex eth1 0 02:00:00:00:0a:0a`,
			undo: `appctl@compute1 fdb/flush br-ex
				vsctl@compute1 remove Bridge br-ex other_config mac-table-size`},
		{name: "more machines than a bridge knows send packets", rule: "fdb-full",
			says: "gateway: the table of MAC addresses of bridge br-eth0 is full: 10 of 10", beside: true,
			plant: `vsctl@gateway set Bridge br-eth0 other_config:mac-table-size=10
				` + strangers("gateway", "eth0", 12) + `await " 10/10" appctl@gateway fdb/stats-show br-eth0`,
			undo: `appctl@gateway fdb/flush br-eth0
				vsctl@gateway remove Bridge br-eth0 other_config mac-table-size`},
		{name: "a node loses its chassis", rule: "chassis-missing", says: "compute2", sync: "sb",
			plant: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
				awaitlog@compute2 ovn-controller "unix:/nonexistent/sb.sock: connection attempt failed"
				sb chassis-del {sb Chassis hostname=compute2 name}`,
			undo: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/central/ovn/ovnsb_db.sock\""
				sb wait-until Chassis 4c4c4544-0000-4000-8000-000000000012 hostname=compute2
				sb wait-until Port_Binding {port vm2} chassis!=[]`},
	}
}

// strangers sends packets of new machines into a port of a node.
func strangers(node, port string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "appctl@%s netdev-dummy/receive %s in_port(1),eth(src=02:00:00:00:0e:%02x,dst=02:00:00:00:0f:01),eth_type(0x88b5)\n", node, port, i)
	}
	return all.String()
}

// lostFaults are faults of nodes that are cut off from the southbound database, of which ovn-controller
// would mend some.
func lostFaults() []fault {
	const cut, joined = `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
		awaitlog@compute2 ovn-controller "unix:/nonexistent/sb.sock: connection attempt failed"
		`, `
		vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/central/ovn/ovnsb_db.sock\""
		awaitlog@compute2 ovn-controller "ovnsb_db.sock: connected"`
	return []fault{
		{name: "an instance runs on a node that can't claim it", rule: "port-not-claimed",
			says: "compute2: port vm11 ({port vm11}) has interface tapcut here, and no chassis has claimed it", sync: "none",
			plant: cut + `vsctl@compute2 add-port br-int tapcut -- set Interface tapcut external_ids:iface-id={port vm11}
				vsctl@compute2 wait-until Interface tapcut ofport>0`,
			undo: `vsctl@compute2 del-port br-int tapcut` + joined},
		{name: "the flows of an instance were not installed", rule: "port-not-claimed",
			says: "compute2: port vm2 ({port vm2}) is bound to this node with interface {tap vm2}, and is not up", beside: true,
			plant: `sb set Port_Binding {port vm2} up=false`, undo: `sb set Port_Binding {port vm2} up=true`},
		{name: "an instance moved, and its former node does not know", rule: "port-bound-elsewhere",
			says: "compute2: interface tapcut is of port vm11 ({port vm11}), which is bound to chassis compute1", sync: "none",
			plant: cut + `vsctl@compute2 add-port br-int tapcut -- set Interface tapcut external_ids:iface-id={port vm11}
				vsctl@compute1 add-port br-int tapnew -- set Interface tapnew external_ids:iface-id={port vm11}
				sb wait-until Port_Binding {port vm11} chassis!=[]`,
			undo: `vsctl@compute1 del-port br-int tapnew
				vsctl@compute2 del-port br-int tapcut` + joined},
		{name: "a port is bound to a chassis that is switched off", rule: "port-bound-elsewhere",
			says: "compute2: interface tapoff is of port off, which is bound to chassis off.example.org", sync: "none",
			plant: cut + `nb --wait=sb lsp-add {net grey} off -- lsp-set-addresses off "02:00:00:00:09:02 192.168.40.92"
				sb chassis-add off geneve 192.168.24.97 -- set Chassis off hostname=off.example.org -- lsp-bind off off
				vsctl@compute2 add-port br-int tapoff -- set Interface tapoff external_ids:iface-id=off
				vsctl@compute2 wait-until Interface tapoff ofport>0`,
			undo: `vsctl@compute2 del-port br-int tapoff
				nb lsp-del off
				sb chassis-del off` + joined},
		{name: "a node does not make the tunnel to a new one", rule: "tunnel-missing",
			says: "compute2: there is no tunnel to chassis fresh (geneve 192.168.24.96)", sync: "none",
			plant: cut + `sb chassis-add fresh geneve 192.168.24.96
				await fresh vsctl@compute1 --bare --columns=options,name find Interface options:remote_ip=192.168.24.96
				await fresh vsctl@gateway --bare --columns=options,name find Interface options:remote_ip=192.168.24.96`, // or the finding is about them too
			undo: `sb chassis-del fresh` + joined},
	}
}

// versionFaults are faults of the versions and the processors of daemons.
func versionFaults() []fault {
	return []fault{
		{name: "an upgrade of OVN has begun", rule: "northd-version-mismatch",
			says: "does not go with ovn-northd 99.09.0-20.99.0-99.9", sync: "none", logs: true,
			plant: `northd pause
				vsctl@compute1 set Open_vSwitch . external_ids:ovn-match-northd-version=true
				sb set SB_Global . options:northd_internal_version=99.09.0-20.99.0-99.9
				awaitlog@compute1 ovn-controller "mismatch with northd version"`,
			undo: `vsctl@compute1 remove Open_vSwitch . external_ids ovn-match-northd-version
				northd resume`},
		{name: "a node waits for ovn-northd in upgrades", rule: "match-northd-version",
			says: "compute1: external_ids:ovn-match-northd-version is set", beside: true},
		{name: "Open vSwitch uses DPDK without processors of its own", rule: "dpdk-cores",
			says:  "compute1: Open vSwitch uses DPDK, and other_config lacks pmd-cpu-mask and dpdk-lcore-mask",
			plant: `vsctl@compute1 set Open_vSwitch . other_config:dpdk-init=try`,
			undo:  `vsctl@compute1 remove Open_vSwitch . other_config dpdk-init`},
		{name: "two kinds of threads of DPDK have one processor", rule: "dpdk-cores",
			says: "gateway: pmd-cpu-mask and dpdk-lcore-mask have the same processors: 2", beside: true,
			plant: `vsctl@gateway set Open_vSwitch . other_config:dpdk-init=try other_config:pmd-cpu-mask=0x0c other_config:dpdk-lcore-mask=0x5`,
			undo:  `vsctl@gateway remove Open_vSwitch . other_config dpdk-init -- remove Open_vSwitch . other_config pmd-cpu-mask -- remove Open_vSwitch . other_config dpdk-lcore-mask`},
		{name: "the southbound database refuses what a node writes", rule: "database-permission-denied",
			says: "permits a client without a certificate no such change of table Chassis", sync: "none", logs: true,
			plant: `sb set-connection role=ovn-controller punix:{folder}/role.sock
				sbserver ovsdb-server/add-remote db:OVN_Southbound,SB_Global,connections
				vsctl@compute1 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/role.sock\""
				awaitlog@compute1 ovn-controller "role.sock: connected"
				vsctl@compute1 set Open_vSwitch . external_ids:ovn-cms-options=refused
				awaitlog@compute1 ovn-controller "permission error"`,
			undo: `vsctl@compute1 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/central/ovn/ovnsb_db.sock\"" -- remove Open_vSwitch . external_ids ovn-cms-options
				sbserver ovsdb-server/remove-remote db:OVN_Southbound,SB_Global,connections
				sb del-connection`},
	}
}

// flowFaults are faults of the flows of nodes.
func flowFaults() []fault {
	return []fault{
		{name: "a person adds a flow", rule: "flows-of-no-row",
			says: "compute1: the integration bridge has 1 flow with a cookie that no row", sync: "none", quiet: true,
			dumps: true, causes: []string{"drift"},
			plant: `ofctl@compute1 add-flow br-int cookie=0xdeadbeef,table=9,priority=60000,udp,tp_dst=9999,actions=drop`,
			undo:  `ofctl@compute1 del-flows br-int cookie=0xdeadbeef/-1`},
		{name: "a script adds flows", rule: "flows-of-no-row",
			says: "gateway: the integration bridge has 2 flows with a cookie", beside: true,
			plant: `ofctl@gateway add-flow br-int cookie=0x1234567,table=0,priority=60000,dl_type=0x88b5,actions=drop
				ofctl@gateway add-flow br-int cookie=0x1234567,table=9,priority=60000,ipv6,actions=resubmit(,10)`,
			undo: `ofctl@gateway del-flows br-int cookie=0x1234567/-1`},
		{name: "a security group has a rule twice", rule: "rule-twice", says: "2 rules have one match at one priority",
			beside: true,
			plant:  `nb acl-add {pg web} to-lport 1234 "outport == @{pg web} && udp.dst == 1234" allow-related -- --id=@a create ACL direction=to-lport priority=1234 match="\"outport == @{pg web} && udp.dst == 1234\"" action=drop -- add Port_Group {pg web} acls @a`,
			undo: `nb acl-del {pg web} to-lport 1234 "outport == @{pg web} && udp.dst == 1234"
				nb acl-del {pg web} to-lport 1234 "outport == @{pg web} && udp.dst == 1234"`},
		{name: "a rule of a security group multiplies out", rule: "rule-multiplies-out",
			says: "became 1200 flows: 40 nw_src x 30 tp_dst", beside: true, causes: []string{"drift"},
			plant: `multiply@gateway br-int {nb ACL name=snmp _uuid}`,
			undo:  `ofctl@gateway del-flows br-int table=44,tcp,nw_src=10.66.0.0/16`},
		{name: "a person adds a flow without a cookie", rule: "foreign-flow", dumps: true, here: true,
			says:  "compute2: someone added 1 flow to br-int: cookie=0x0,table=9,priority=60000,udp,tp_dst=9999 actions=drop",
			plant: `ofctl@compute2 add-flow br-int table=9,priority=60000,udp,tp_dst=9999,actions=drop`,
			undo:  `ofctl@compute2 --strict del-flows br-int table=9,priority=60000,udp,tp_dst=9999`},
		{name: "a script adds flows without a cookie", rule: "foreign-flow", beside: true, here: true,
			says: "gateway: someone added 2 flows to br-int: cookie=0x0",
			plant: `ofctl@gateway add-flow br-int table=9,priority=60000,dl_type=0x88b6,actions=drop
				ofctl@gateway add-flow br-int table=9,priority=60001,ipv6,actions=resubmit(,10)`,
			undo: `ofctl@gateway --strict del-flows br-int table=9,priority=60000,dl_type=0x88b6
				ofctl@gateway --strict del-flows br-int table=9,priority=60001,ipv6`},
		{name: "flows make a loop", rule: "recursion-too-deep",
			says: "packets of bridge br-ex went through more than 64 resubmits", logs: true,
			plant: `ofctl@compute1 add-flow br-ex priority=9,dl_type=0x88b5,actions=resubmit(,0)
				awaitlog@compute1 ovs-vswitchd "over max translation depth" ` + strangers("compute1", "eth1", 1),
			undo: `ofctl@compute1 del-flows br-ex dl_type=0x88b5`},
		{name: "flows copy a packet again and again", rule: "resubmit-limit",
			says: "packets of bridge br-ex needed more than 4096 resubmits", beside: true,
			plant: `ofctl@gateway add-flow br-ex table=0,priority=9,dl_type=0x88b5,actions=resubmit(,1)` + strings.Repeat(",resubmit(,1)", 70) + `
				ofctl@gateway add-flow br-ex table=1,actions=resubmit(,2)` + strings.Repeat(",resubmit(,2)", 70) + `
				awaitlog@gateway ovs-vswitchd "resubmit actions on bridge" ` + strangers("gateway", "eth1", 1),
			undo: `ofctl@gateway del-flows br-ex dl_type=0x88b5
				ofctl@gateway del-flows br-ex table=1`},
		{name: "a person deletes the flow to an instance", rule: "drift", says: "compute1: br-int lacks", dumps: true,
			here:  true,
			plant: `ofctl@compute1 del-flows br-int table=65,reg15={sb Port_Binding logical_port={port vm1} tunnel_key},metadata={sb Datapath_Binding external_ids:name2=blue tunnel_key}`,
			undo: `vsctl@compute1 set Bridge br-int other_config:datapath-id=00000000000000a1
				awaitflow@compute1 br-int table=65,reg15={sb Port_Binding logical_port={port vm1} tunnel_key},metadata={sb Datapath_Binding external_ids:name2=blue tunnel_key} output`},
		{name: "a person changes the flow to a physical network", rule: "drift",
			says: "gateway: br-int has altered 1 flow of port {provnet public}", beside: true, here: true,
			plant: `ofctl@gateway mod-flows br-int table=65,reg15={sb Port_Binding logical_port={provnet public} tunnel_key},metadata={sb Datapath_Binding external_ids:name2=public tunnel_key},actions=drop`,
			undo: `vsctl@gateway set Bridge br-int other_config:datapath-id=00000000000000a2
				awaitflow@gateway br-int table=65,reg15={sb Port_Binding logical_port={provnet public} tunnel_key},metadata={sb Datapath_Binding external_ids:name2=public tunnel_key} output`},
		{name: "a bridge loses its flows", rule: "bridge-without-flows", says: "compute1: bridge br-ex has no flows",
			dumps: true, beside: true,
			plant: `ofctl@compute1 del-flows br-ex`, undo: `ofctl@compute1 add-flow br-ex actions=NORMAL`},
		{name: "a person resets the integration bridge", rule: "bridge-without-flows", also: true, alone: true, here: true,
			says: "compute1: br-int, the integration bridge of OVN, has one flow, with the action NORMAL", dumps: true,
			causes: []string{"drift"},
			plant: `ofctl@compute1 del-flows br-int
				ofctl@compute1 add-flow br-int actions=NORMAL`,
			undo: `vsctl@compute1 set Bridge br-int other_config:datapath-id=00000000000000a3
				awaitflow@compute1 br-int table=0,in_port={tap vm1} resubmit`},
		{name: "a flow sends packets to a port that was deleted", rule: "output-to-missing-port",
			says: "compute2: bridge br-ex has no port 77: packets are sent there by 2 flows (0 packets)", dumps: true,
			beside: true,
			plant: `vsctl@compute2 add-port br-ex gone0 -- set Interface gone0 type=internal ofport_request=77
				ofctl@compute2 add-flow br-ex table=5,priority=9,dl_type=0x88b5,actions=output:77
				ofctl@compute2 add-flow br-ex table=6,priority=9,dl_type=0x88b5,actions=set_field:1->reg0,clone(enqueue:77:1)
				vsctl@compute2 del-port br-ex gone0`,
			undo: `ofctl@compute2 del-flows br-ex table=5
				ofctl@compute2 del-flows br-ex table=6`},
		{name: "a bucket of a group sends packets to a port that never was", rule: "output-to-missing-port",
			says: "gateway: bridge br-ex has no port 4711: packets are sent there by group 9", beside: true,
			plant: `ofctl@gateway add-group br-ex group_id=9,type=select,bucket=weight:1,actions=output:LOCAL,bucket=weight:1,actions=4711`,
			undo:  `ofctl@gateway del-groups br-ex group_id=9`},
		{name: "a new bridge waits for its controller", rule: "bridge-without-flows",
			says: "gateway: bridge br-new has no flows", beside: true,
			plant: `vsctl@gateway add-br br-new -- set Bridge br-new datapath_type=system fail_mode=secure -- add-port br-new new0 -- set Interface new0 type=internal`, undo: `vsctl@gateway del-br br-new`},
		// After each refusal ovn-controller connects anew, and does not confirm that it follows. Newer ones have settings of
		// tables of their own.
		{name: "a table of flows is full", rule: "flow-refused", says: "OFPFMFC_TABLE_FULL", sync: "none", logs: true,
			here: true,
			plant: `vsctl@compute1 -- --id=@t create Flow_Table flow_limit=10 overflow_policy=refuse -- set Bridge br-int flow_tables:0=@t
				nb lsp-add {net grey} late -- lsp-set-addresses late "02:00:00:00:09:03 192.168.40.93"
				vsctl@compute1 add-port br-int taplate -- set Interface taplate external_ids:iface-id=late
				awaitlog@compute1 ovn-controller "OpenFlow error"`,
			undo: `vsctl@compute1 clear Bridge br-int flow_tables -- del-port br-int taplate
				nb lsp-del late`},
	}
}
