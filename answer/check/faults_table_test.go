package check_test

import "strings"

// openstackFaults are the faults of the set openstack.
func openstackFaults() []fault {
	return append(addressFaults(), append(routingFaults(), append(balancerFaults(), append(gatewayFaults(), append(matchFaults(), append(controlFaults(), nodeFaults()...)...)...)...)...)...)
}

func addressFaults() []fault {
	return []fault{
		{name: "an instance gets the MAC address of another", rule: "duplicate-mac", says: "port vm2 ({port vm2}) and port vm1 ({port vm1}) of switch blue",
			plant: `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:05 192.168.10.6 fd00:10::6\""`,
			undo:  `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.6 fd00:10::6\""`},
		{name: "an instance gets the IP address of another", rule: "duplicate-ip", says: "have the same IP address 192.168.10.5",
			plant: `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.5 fd00:10::6\""`,
			undo:  `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.6 fd00:10::6\""`},
		{name: "an instance gets the IP address of its router", rule: "duplicate-ip", says: "router main (neutron-",
			plant: `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.1\""`,
			undo:  `nb set Logical_Switch_Port {port vm2} addresses="\"fa:16:3e:10:00:06 192.168.10.6 fd00:10::6\""`},
		{name: "a second router has the MAC address of the first", rule: "duplicate-mac", says: "have the same MAC address fa:16:3e:aa:00:10",
			plant: `nb lrp-add {router lone} lrp-second fa:16:3e:aa:00:10 172.24.4.99/24 -- lsp-add {net public} second -- lsp-set-type second router -- lsp-set-addresses second router -- lsp-set-options second router-port=lrp-second`,
			undo:  `nb lrp-del lrp-second -- lsp-del second`},
		{name: "the address of an instance changes, and its port security does not", rule: "port-security-excludes", says: "does not allow its own address 192.168.10.88",
			plant: `nb set Logical_Switch_Port {port vm8} addresses="\"fa:16:3e:10:00:08 192.168.10.88 fd00:10::8\""`,
			undo:  `nb set Logical_Switch_Port {port vm8} addresses="\"fa:16:3e:10:00:08 192.168.10.8 fd00:10::8\""`},
		{name: "two ports of a router have one network", rule: "overlapping-networks", says: "have overlapping networks",
			plant: `nb lrp-add {router lone} lrp-over fa:16:3e:bb:00:09 192.168.30.9/24`, undo: `nb lrp-del lrp-over`},
		{name: "a static MAC binding names a wrong MAC address", rule: "mac-binding-contradicts", says: "has MAC address 02:00:00:00:00:99, but port vm1",
			plant: `nb create Static_MAC_Binding logical_port={lrp main-blue} ip=192.168.10.5 mac="\"02:00:00:00:00:99\""`,
			undo:  `nb destroy Static_MAC_Binding {nb Static_MAC_Binding ip=192.168.10.5 _uuid}`},
		{name: "another machine answers ARP for an instance", rule: "mac-binding-contradicts", says: "the learned MAC binding of 192.168.20.5",
			plant: `sb create MAC_Binding logical_port={lrp main-green} ip=192.168.20.5 mac="\"02:00:00:00:00:98\"" datapath={sb Datapath_Binding external_ids:name2=main _uuid}`,
			undo:  `sb destroy MAC_Binding {sb MAC_Binding ip=192.168.20.5 _uuid}`},
		{name: "a router keeps the MAC address of a floating IP that moved", rule: "mac-binding-contradicts", says: "but floating ip 172.24.4.22 for 192.168.10.7 of router main",
			plant: `nb lrp-add {router lone} lrp-second fa:16:3e:bb:00:10 172.24.4.99/24 -- lsp-add {net public} second -- lsp-set-type second router -- lsp-set-addresses second router -- lsp-set-options second router-port=lrp-second
				nb --wait=sb sync
				sb --if-exists destroy MAC_Binding {sb MAC_Binding ip=172.24.4.22 _uuid} -- create MAC_Binding logical_port=lrp-second ip=172.24.4.22 mac="\"02:00:00:00:00:97\"" datapath={sb Datapath_Binding external_ids:name2=lone _uuid}`,
			undo: `nb lrp-del lrp-second -- lsp-del second`},
		{name: "an instance sends with the MAC address of another", rule: "fdb-contradicts", says: "fa:16:3e:78:00:06 of port vm7",
			plant: `sb create FDB mac="\"fa:16:3e:78:00:06\"" dp_key={sb Datapath_Binding external_ids:name2=vlan120 tunnel_key} port_key={sb Port_Binding logical_port={port vm6} tunnel_key}`,
			undo:  `sb destroy FDB {sb FDB mac="fa:16:3e:78:00:06" _uuid}`},
		{name: "two floating IPs have one address", rule: "duplicate-floating-ip", says: "floating ip 172.24.4.22 for 192.168.10.8",
			plant: `nb --id=@n create NAT type=dnat_and_snat external_ip=172.24.4.22 logical_ip=192.168.10.8 -- add Logical_Router {router main} nat @n`,
			undo:  `nb remove Logical_Router {router main} nat {nb NAT logical_ip=192.168.10.8 _uuid}`},
		{name: "a port outside has the address of a floating IP", rule: "duplicate-floating-ip", says: "port thief of switch public",
			plant: `nb lsp-add {net public} thief -- lsp-set-addresses thief "02:00:00:00:00:21 172.24.4.22"`, undo: `nb lsp-del thief`},
	}
}

func routingFaults() []fault {
	return []fault{
		{name: "a route leads to an unknown network", rule: "route-without-path", says: "route 10.55.0.0/16 via 192.168.99.1 of router main",
			plant: `nb lr-route-add {router main} 10.55.0.0/16 192.168.99.1`, undo: `nb lr-route-del {router main} 10.55.0.0/16`},
		{name: "a route leaves by a port that the router lost", rule: "route-without-path", says: "the router has no port lrp-gone",
			plant: `nb --id=@r create Logical_Router_Static_Route ip_prefix=10.56.0.0/16 nexthop=172.24.4.1 output_port=lrp-gone -- add Logical_Router {router main} static_routes @r`,
			undo:  `nb lr-route-del {router main} 10.56.0.0/16`},
		{name: "a policy leads to an unknown network", rule: "policy-without-path", says: "with next hop 192.168.99.9",
			plant: `nb lr-policy-add {router main} 160 "ip4.src == 192.168.20.6" reroute 192.168.99.9`, undo: `nb lr-policy-del {router main} 160`},
		{name: "a network is connected to a router port that was deleted", rule: "router-port-missing", says: "leads to router port lrp-gone",
			plant: `nb set Logical_Switch_Port {port lone-grey} options:router-port=lrp-gone`, undo: `nb set Logical_Switch_Port {port lone-grey} options:router-port={lrp lone-grey}`},
		{name: "a router port has a peer that was deleted", rule: "router-port-missing", says: "port lrp-one of router lone",
			plant: `nb lrp-add {router lone} lrp-one 02:00:00:00:07:01 10.201.0.1/24 peer=lrp-gone`, undo: `nb lrp-del lrp-one`},
		{name: "a router port is connected to nothing", rule: "router-port-unconnected", says: "port lrp-lost of router lone",
			plant: `nb lrp-add {router lone} lrp-lost 02:00:00:00:07:02 10.200.0.1/24`, undo: `nb lrp-del lrp-lost`},
		{name: "a router translates addresses without a gateway", rule: "nat-without-gateway", says: "router lone (",
			plant: `nb lr-nat-add {router lone} snat 172.24.4.98 192.168.30.0/24`, undo: `nb lr-nat-del {router lone}`},
		{name: "the gateway of a router is removed", rule: "nat-without-gateway", says: "router main (",
			plant: `nb clear Logical_Router_Port {lrp main-public} gateway_chassis`,
			undo:  `nb --id=@g create Gateway_Chassis name={lrp main-public}_{sb Chassis hostname=gateway name} chassis_name="\"{sb Chassis hostname=gateway name}\"" priority=2 -- set Logical_Router_Port {lrp main-public} gateway_chassis=@g`},
		{name: "a floating IP is for a port that was deleted", rule: "nat-without-port", says: "names port gone",
			plant: `nb set NAT {nb NAT external_ip=172.24.4.25 _uuid} logical_port=gone`,
			undo:  `nb set NAT {nb NAT external_ip=172.24.4.25 _uuid} logical_port="\"{port vm5}\""`},
		{name: "the neighbour of a BFD session does not answer", rule: "bfd-session-down", says: "with 172.24.4.77 is down",
			plant: `nb --id=@b create BFD logical_port={lrp main-public} dst_ip=172.24.4.77 -- --id=@r create Logical_Router_Static_Route ip_prefix=10.57.0.0/16 nexthop=172.24.4.77 bfd=@b -- add Logical_Router {router main} static_routes @r
				nb wait-until BFD {nb BFD dst_ip=172.24.4.77 _uuid} status=down`,
			undo: `nb lr-route-del {router main} 10.57.0.0/16
				nb destroy BFD {nb BFD dst_ip=172.24.4.77 _uuid}`},
	}
}

func balancerFaults() []fault {
	return []fault{
		{name: "a load balancer loses its backends", rule: "balancer-without-backends", says: "VIP 192.168.10.222:80 of load balancer idle",
			plant: `nb --id=@l create Load_Balancer name=idle vips:"\"192.168.10.222:80\""="\"\"" -- add Logical_Switch {net blue} load_balancer @l`,
			undo:  `nb lb-del idle`},
		{name: "nothing uses a load balancer", rule: "balancer-unused", says: "load balancer alone",
			plant: `nb lb-add alone 192.168.10.223:80 192.168.10.5:80`, undo: `nb lb-del alone`},
		{name: "two load balancers have one VIP", rule: "duplicate-vip", says: "VIP 192.168.10.100:80 of load balancer",
			plant: `nb lb-add second 192.168.10.100:80 192.168.10.6:8080 -- ls-lb-add {net blue} second`, undo: `nb lb-del second`},
		{name: "a VIP is malformed", rule: "balancer-malformed", says: "VIP 192.168.10.300:80 of load balancer bad is malformed",
			plant: `nb --id=@l create Load_Balancer name=bad vips:"\"192.168.10.300:80\""="\"192.168.10.5:80\"" -- add Logical_Switch {net blue} load_balancer @l`, undo: `nb lb-del bad`},
		{name: "a VIP has a backend of the other family", rule: "balancer-malformed", says: "its backend [fd00:10::5]:80",
			plant: `nb --id=@l create Load_Balancer name=mixed vips:"\"192.168.10.224:80\""="\"[fd00:10::5]:80\"" -- add Logical_Switch {net blue} load_balancer @l`, undo: `nb lb-del mixed`},
		{name: "a backend does not answer its health check", rule: "balancer-backend-down", says: "VIP 192.168.10.225:80 of load balancer checked: 1 of 1 backend down",
			plant: `nb --id=@c create Load_Balancer_Health_Check vip="\"192.168.10.225:80\"" options:interval=1 options:timeout=1 options:failure_count=1 options:success_count=1 -- --id=@l create Load_Balancer name=checked protocol=tcp vips:"\"192.168.10.225:80\""="\"192.168.10.5:80\"" ip_port_mappings:192.168.10.5="\"{port vm1}:192.168.10.251\"" health_check=@c -- add Logical_Switch {net blue} load_balancer @l
				nb --wait=hv sync
				sb wait-until Service_Monitor {sb Service_Monitor ip=192.168.10.5 _uuid} status=offline`,
			undo: `nb lb-del checked`},
		{name: "a health check has no port to probe", rule: "balancer-check-without-probe", says: "does not probe 192.168.10.6:80",
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
		{name: "the second gateway chassis is gone", rule: "gateway-chassis-missing", says: "names chassis chassis-gone", causes: watched,
			plant: `nb --id=@g create Gateway_Chassis name={lrp main-public}_chassis-gone chassis_name=chassis-gone priority=1 -- add Logical_Router_Port {lrp main-public} gateway_chassis @g`,
			undo:  `nb remove Logical_Router_Port {lrp main-public} gateway_chassis {nb Gateway_Chassis chassis_name=chassis-gone _uuid}`},
		{name: "a person adds a gateway chassis to neutron's router", rule: "gateway-chassis-name", says: "is not named as neutron names it", causes: watched,
			plant: `nb lrp-set-gateway-chassis {lrp main-public} {sb Chassis hostname=compute1 name} 1`, undo: `nb lrp-del-gateway-chassis {lrp main-public} {sb Chassis hostname=compute1 name}`},
		{name: "a node loses its bridge to a physical network", rule: "localnet-unmapped", says: "chassis compute2 has ports of switch vlan120",
			plant: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"\""
				sb wait-until Chassis {sb Chassis hostname=compute2 _uuid} other_config:ovn-bridge-mappings="\"\""`,
			undo: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet1:br-ex\""
				sb wait-until Chassis {sb Chassis hostname=compute2 _uuid} other_config:ovn-bridge-mappings="\"physnet1:br-ex\""`},
		{name: "a localnet port names no physical network", rule: "localnet-without-network", says: "{provnet vlan120}",
			plant: `nb clear Logical_Switch_Port {provnet vlan120} options`, undo: `nb set Logical_Switch_Port {provnet vlan120} options:network_name=physnet1`},
	}
}

func matchFaults() []fault {
	acl := func(match string) (plant, undo string) {
		return `nb acl-add {pg web} to-lport 1100 "` + match + `" allow-related`, `nb acl-del {pg web} to-lport 1100 "` + match + `"`
	}
	var faults []fault
	for _, c := range []struct{ name, match, rule, says string }{
		{"an ACL names a field of Open vSwitch", "outport == @{pg web} && tcp_dst == 8080", "match-malformed", "there is no field `tcp_dst'"},
		{"an ACL lacks a parenthesis", "outport == @{pg web} && (tcp.dst == 8080", "match-malformed", "it ends where ) is expected"},
		{"an ACL has a network that is none", "outport == @{pg web} && ip4.src == 192.168.10.0/33", "match-malformed", "`192.168.10.0/33' is no address"},
		{"an ACL names a port without quotes", "outport == vm1 && ip4", "match-malformed", "a constant is expected at `vm1'"},
		{"an ACL excludes a protocol", "outport == @{pg web} && ip4 && ip.proto != 6", "match-malformed", "field `ip.proto' may only be tested for equality"},
		{"an ACL joins and with or", "outport == @{pg web} && tcp.dst == 1 || udp.dst == 1", "match-malformed", "&& and || must be in parentheses"},
		{"the address set of an ACL was deleted", `outport == @{pg web} && ip4.src == $gone_ip4`, "match-refers-to-nothing", "address set gone_ip4"},
		{"the port group of an ACL was deleted", "outport == @gone && ip4", "match-refers-to-nothing", "port group gone"},
	} {
		plant, undo := acl(c.match)
		faults = append(faults, fault{name: c.name, rule: c.rule, says: c.says, plant: plant, undo: undo})
	}
	return append(faults,
		fault{name: "a policy route is malformed", rule: "match-malformed", says: "policy route priority 161",
			plant: `nb lr-policy-add {router main} 161 "ip4.src = 192.168.20.6" drop`, undo: `nb lr-policy-del {router main} 161`},
		fault{name: "a QoS rule is malformed", rule: "match-malformed", says: "QoS rule",
			plant: `nb qos-add {net blue} to-lport 100 "outport == 5" rate=1000`, undo: `nb qos-del {net blue}`},
		fault{name: "an ACL logs with a meter that was deleted", rule: "meter-missing", says: "logs with meter gone",
			plant: `nb --id=@a create ACL direction=to-lport priority=1101 match="\"outport == @{pg web} && udp\"" action=drop log=true meter=gone -- add Port_Group {pg web} acls @a`,
			undo:  `nb acl-del {pg web} to-lport 1101 "outport == @{pg web} && udp"`},
	)
}

func controlFaults() []fault {
	return []fault{
		{name: "an instance is for a node that has another name", rule: "requested-chassis-missing", says: "port vm11 ({port vm11}) is for chassis compute1.example.org",
			plant: `nb lsp-set-options {port vm11} requested-chassis=compute1.example.org`, undo: `nb clear Logical_Switch_Port {port vm11} options`},
		{name: "the DHCP options of an instance are of another network", rule: "dhcp-unusable", says: "has no address in 192.168.10.0/24",
			plant: `nb set Logical_Switch_Port {port vm4} dhcpv4_options={nb DHCP_Options cidr=192.168.10.0/24 _uuid}`, undo: `nb clear Logical_Switch_Port {port vm4} dhcpv4_options`},
		{name: "the DHCP options lack the lease time", rule: "dhcp-unusable", says: "they lack lease_time",
			plant: `nb remove DHCP_Options {nb DHCP_Options cidr=192.168.10.0/24 _uuid} options lease_time`, undo: `nb set DHCP_Options {nb DHCP_Options cidr=192.168.10.0/24 _uuid} options:lease_time=43200`},
		{name: "two chassis have one tunnel address", rule: "tunnel-address-twice", says: "have the same tunnel address 192.168.24.12",
			plant: `sb chassis-add ghost vxlan 192.168.24.12`, undo: `sb chassis-del ghost`, sync: "sb"},
		{name: "the private data of a chassis stay behind", rule: "chassis-private-alone", says: "chassis ghost",
			plant: `sb create Chassis_Private name=ghost`, undo: `sb destroy Chassis_Private ghost`, sync: "sb"},
		{name: "ovn-northd does not follow a deletion", rule: "stale-southbound", says: "switch neutron-old", sync: "none",
			plant: `nb --wait=sb ls-add neutron-old
				northd pause
				nb ls-del neutron-old
				sleep 11
				sb set SB_Global . external_ids:seen=later`,
			undo: `northd resume
				sb remove SB_Global . external_ids seen`},
		{name: "ovn-northd does not follow a new port", rule: "northd-behind", says: "", sync: "none",
			plant: `northd pause
				nb lsp-add {net blue} late -- lsp-set-addresses late "02:00:00:00:09:01 192.168.10.91"
				sleep 2`,
			undo: `nb lsp-del late
				northd resume`},
		{name: "the southbound database has a host twice", rule: "chassis-twice", says: "compute1", sync: "sb",
			plant: `sb chassis-add twin geneve 192.168.24.99 -- set Chassis twin hostname=compute1`, undo: `sb chassis-del twin`},
	}
}

// nodeFaults are faults of single nodes.
func nodeFaults() []fault {
	return []fault{
		{name: "an interface has a type that does not exist", rule: "interface-without-port-number", says: "interface tapbad could not be added",
			plant: `vsctl@compute1 add-port br-int tapbad -- set Interface tapbad type=bogus`, undo: `vsctl@compute1 del-port br-int tapbad`},
		{name: "an instance was left on its former node", rule: "port-requested-elsewhere", says: "vm2", outputs: true,
			plant: `vsctl@compute1 add-port br-int tapold -- set Interface tapold external_ids:iface-id={port vm2}`, undo: `vsctl@compute1 del-port br-int tapold`},
		{name: "two interfaces have the port of one instance", rule: "logical-port-twice", says: "vm1",
			plant: `vsctl@compute1 add-port br-int taptwo -- set Interface taptwo external_ids:iface-id={port vm1}`, undo: `vsctl@compute1 del-port br-int taptwo`},
		{name: "an interface names a port that was deleted", rule: "interface-without-logical-port", says: "tapnone",
			plant: `vsctl@compute1 add-port br-int tapnone -- set Interface tapnone external_ids:iface-id=gone`, undo: `vsctl@compute1 del-port br-int tapnone`},
		{name: "the device of an instance is down", rule: "interface-down", says: "{tap vm1}", outputs: true,
			plant: `appctl@compute1 netdev-dummy/set-admin-state {tap vm1} down
				vsctl@compute1 --timeout=10 wait-until Interface {tap vm1} link_state=down`,
			undo: `appctl@compute1 netdev-dummy/set-admin-state {tap vm1} up`},
		{name: "a patch port has no peer", rule: "patch-without-peer", says: "patch-lost",
			plant: `vsctl@compute1 add-port br-ex patch-lost -- set Interface patch-lost type=patch options:peer=gone`, undo: `vsctl@compute1 del-port br-ex patch-lost`},
		{name: "the bridge of a physical network does not exist", rule: "mapped-bridge-missing", says: "br-gone",
			plant: `vsctl@compute1 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet1:br-ex,physnet2:br-gone\""`,
			undo:  `vsctl@compute1 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet1:br-ex\""`},
		{name: "a tunnel leads to no chassis", rule: "tunnel-to-nowhere", says: "192.168.24.66", outputs: true,
			plant: `vsctl@compute1 add-port br-int gennone -- set Interface gennone type=geneve options:remote_ip=192.168.24.66 options:key=flow`, undo: `vsctl@compute1 del-port br-int gennone`},
		{name: "a node does not follow the southbound database", rule: "chassis-behind", says: "compute2", sync: "none", outputs: true,
			plant: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
				nb --wait=sb sync
				sleep 11
				nb --wait=sb sync`,
			undo: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/central/ovn/ovnsb_db.sock\""`},
		{name: "the controller of a bridge does not answer", rule: "controller-not-connected", says: "br-ex", outputs: true,
			plant: `vsctl@compute1 set-controller br-ex unix:/nonexistent/of.sock
				sleep 1`,
			undo: `vsctl@compute1 del-controller br-ex`},
		{name: "a bridge loses its flows", rule: "bridge-without-flows", says: "br-ex", outputs: true,
			plant: `ofctl@compute1 del-flows br-ex`, undo: `ofctl@compute1 add-flow br-ex actions=NORMAL`},
		{name: "the MAC table of a bridge is full", rule: "fdb-full", says: "br-ex", outputs: true,
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
		{name: "a node loses its chassis", rule: "chassis-missing", says: "compute2", sync: "sb",
			plant: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
				sleep 1
				sb chassis-del {sb Chassis hostname=compute2 name}`,
			undo: `vsctl@compute2 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/central/ovn/ovnsb_db.sock\""
				sb wait-until Chassis 4c4c4544-0000-4000-8000-000000000012 hostname=compute2
				sb wait-until Port_Binding {port vm2} chassis!=[]`},
	}
}

// kubernetesFaults are the faults of the set kubernetes-ic.
func kubernetesFaults() []fault {
	return []fault{
		{name: "a pod gets the IP address of another", rule: "duplicate-ip", says: "pod ns1/client-0",
			plant: `nb@worker1 set Logical_Switch_Port ns1_web-0 addresses="\"0a:58:0a:f4:01:05 10.244.1.6 fd00:10:244:1::5\""`,
			undo:  `nb@worker1 set Logical_Switch_Port ns1_web-0 addresses="\"0a:58:0a:f4:01:05 10.244.1.5 fd00:10:244:1::5\""`},
		{name: "a service loses its endpoints", rule: "balancer-without-backends", says: "Service ns2/db",
			plant: everywhere(`nb@NODE set Load_Balancer {nb@NODE Load_Balancer name=Service_ns2/db_TCP_cluster _uuid} vips:"\"10.96.2.10:5432\""="\"\""`),
			undo:  everywhere(`nb@NODE set Load_Balancer {nb@NODE Load_Balancer name=Service_ns2/db_TCP_cluster _uuid} vips:"\"10.96.2.10:5432\""="\"10.244.2.6:5432\""`)},
		{name: "two services have one address", rule: "duplicate-vip", says: "VIP 10.96.3.10:80",
			plant: `nb@worker3 --id=@l create Load_Balancer name=Service_ns9/copy_TCP_cluster protocol=tcp vips:"\"10.96.3.10:80\""="\"10.244.3.5:8080\"" -- add Load_Balancer_Group clusterLBGroup load_balancer @l`,
			undo:  `nb@worker3 lb-del Service_ns9/copy_TCP_cluster`},
		{name: "the address set of a network policy is gone", rule: "match-refers-to-nothing", says: "NetworkPolicy ns2/allow-web",
			plant: `nb@worker2 destroy Address_Set a_ns1_web_v6`, undo: `nb@worker2 create Address_Set name=a_ns1_web_v6 addresses="\"fd00:10:244:1::5\" \"fd00:10:244:2::5\""`},
		{name: "an egress IP leads to an unknown address", rule: "policy-without-path", says: "with next hop 100.99.0.3",
			plant: `nb@worker1 lr-policy-add ovn_cluster_router 101 "ip4.src == 10.244.1.7" reroute 100.99.0.3`, undo: `nb@worker1 lr-policy-del ovn_cluster_router 101`},
		{name: "the route to another node is wrong", rule: "route-without-path", says: "route 10.244.9.0/24 via 100.89.0.9",
			plant: `nb@worker1 lr-route-add ovn_cluster_router 10.244.9.0/24 100.89.0.9`, undo: `nb@worker1 lr-route-del ovn_cluster_router 10.244.9.0/24`},
		{name: "the gateway router of a node is for another chassis", rule: "gateway-chassis-missing", says: "is for chassis gone",
			plant: `nb@worker3 set Logical_Router GR_worker3 options:chassis=gone`, undo: `nb@worker3 set Logical_Router GR_worker3 options:chassis={sb@worker3 Chassis hostname=worker3 name}`},
		{name: "a node loses its bridge to the outside", rule: "localnet-unmapped", says: "chassis worker2 has ports of switch ext_worker2",
			plant: `vsctl@worker2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"other:breth0\""
				sb@worker2 wait-until Chassis {sb@worker2 Chassis hostname=worker2 _uuid} other_config:ovn-bridge-mappings="\"other:breth0\""`,
			undo: `vsctl@worker2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet:breth0\""
				sb@worker2 wait-until Chassis {sb@worker2 Chassis hostname=worker2 _uuid} other_config:ovn-bridge-mappings="\"physnet:breth0\""`},
		{name: "the pod network is not connected to its router", rule: "router-port-missing", says: "leads to router port rtos-gone",
			plant: `nb@worker1 set Logical_Switch_Port stor-worker1 options:router-port=rtos-gone`, undo: `nb@worker1 set Logical_Switch_Port stor-worker1 options:router-port=rtos-worker1`},
	}
}

// everywhere returns a command for each zone, which it has in place of NODE.
func everywhere(command string) string {
	var all []string
	for _, node := range []string{"worker1", "worker2", "worker3"} {
		all = append(all, strings.ReplaceAll(command, "NODE", node))
	}
	return strings.Join(all, "\n")
}
