package check_test

import "strings"

// kubernetesFaults are the faults of the set kubernetes-ic.
func kubernetesFaults() []fault {
	return []fault{
		{name: "a pod gets the IP address of another", also: true, rule: "duplicate-ip", says: "pod ns1/client-0",
			plant: `nb@worker1 set Logical_Switch_Port ns1_web-0 addresses="\"0a:58:0a:f4:01:05 10.244.1.6 fd00:10:244:1::5\""`,
			undo:  `nb@worker1 set Logical_Switch_Port ns1_web-0 addresses="\"0a:58:0a:f4:01:05 10.244.1.5 fd00:10:244:1::5\""`},
		{name: "a service loses its endpoints", also: true, rule: "balancer-without-backends", says: "Service ns2/db",
			plant: everywhere(`nb@NODE set Load_Balancer {nb@NODE Load_Balancer name=Service_ns2/db_TCP_cluster _uuid} vips:"\"10.96.2.10:5432\""="\"\""`),
			undo:  everywhere(`nb@NODE set Load_Balancer {nb@NODE Load_Balancer name=Service_ns2/db_TCP_cluster _uuid} vips:"\"10.96.2.10:5432\""="\"10.244.2.6:5432\""`)},
		{name: "two services have one address", rule: "duplicate-vip", says: "VIP 10.96.3.10:80",
			plant: `nb@worker3 --id=@l create Load_Balancer name=Service_ns9/copy_TCP_cluster protocol=tcp vips:"\"10.96.3.10:80\""="\"10.244.3.5:8080\"" -- add Load_Balancer_Group clusterLBGroup load_balancer @l`,
			undo:  `nb@worker3 lb-del Service_ns9/copy_TCP_cluster`},
		{name: "a service keeps the address of a pod that was deleted", also: true, rule: "balancer-backend-vacant",
			says: "no port has the address of 1 of 1 backend: 10.244.1.77:8080", beside: true,
			plant: `nb@worker1 --id=@l create Load_Balancer name=Service_ns9/stale_TCP_cluster protocol=tcp vips:"\"10.96.9.11:80\""="\"10.244.1.77:8080\"" -- add Load_Balancer_Group clusterLBGroup load_balancer @l`,
			undo:  `nb@worker1 lb-del Service_ns9/stale_TCP_cluster`},
		{name: "the address set of a network policy is gone", rule: "match-refers-to-nothing",
			says:  "NetworkPolicy ns2/allow-web",
			plant: `nb@worker2 destroy Address_Set a_ns1_web_v6`,
			undo:  `nb@worker2 create Address_Set name=a_ns1_web_v6 addresses="\"fd00:10:244:1::5\" \"fd00:10:244:2::5\""`},
		{name: "an egress IP leads to an unknown address", rule: "policy-without-path", says: "with next hop 100.99.0.3",
			plant: `nb@worker1 lr-policy-add ovn_cluster_router 101 "ip4.src == 10.244.1.7" reroute 100.99.0.3`,
			undo:  `nb@worker1 lr-policy-del ovn_cluster_router 101`},
		{name: "the route to another node is wrong", rule: "route-without-path", says: "route 10.244.9.0/24 via 100.89.0.9",
			plant: `nb@worker1 lr-route-add ovn_cluster_router 10.244.9.0/24 100.89.0.9`,
			undo:  `nb@worker1 lr-route-del ovn_cluster_router 10.244.9.0/24`},
		{name: "the gateway router of a node is for another chassis", rule: "gateway-chassis-missing",
			says:  "is for chassis gone",
			plant: `nb@worker3 set Logical_Router GR_worker3 options:chassis=gone`,
			undo:  `nb@worker3 set Logical_Router GR_worker3 options:chassis={sb@worker3 Chassis hostname=worker3 name}`},
		{name: "a node loses its bridge to the outside", rule: "localnet-unmapped",
			says: "chassis worker2 has ports of switch ext_worker2",
			plant: `vsctl@worker2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"other:breth0\""
				sb@worker2 wait-until Chassis {sb@worker2 Chassis hostname=worker2 _uuid} other_config:ovn-bridge-mappings="\"other:breth0\""`,
			undo: `vsctl@worker2 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet:breth0\""
				sb@worker2 wait-until Chassis {sb@worker2 Chassis hostname=worker2 _uuid} other_config:ovn-bridge-mappings="\"physnet:breth0\""`},
		{name: "the pod network is not connected to its router", rule: "router-port-missing",
			says:  "leads to router port rtos-gone",
			plant: `nb@worker1 set Logical_Switch_Port stor-worker1 options:router-port=rtos-gone`,
			undo:  `nb@worker1 set Logical_Switch_Port stor-worker1 options:router-port=rtos-worker1`},
		{name: "one of two endpoints of a service does not answer", rule: "balancer-backend-down",
			says: "1 of 2 backends down: 10.244.1.5:8080",
			plant: `nb@worker1 --id=@c create Load_Balancer_Health_Check vip="\"10.96.9.10:80\"" options:interval=1 options:timeout=1 options:failure_count=1 options:success_count=1 -- --id=@l create Load_Balancer name=Service_ns9/checked_TCP_cluster protocol=tcp vips:"\"10.96.9.10:80\""="\"10.244.1.5:8080,10.244.2.5:8080\"" ip_port_mappings:"\"10.244.1.5\""="\"ns1_web-0:10.244.1.2\"" health_check=@c -- add Logical_Switch worker1 load_balancer @l
				nb@worker1 --wait=hv sync
				sb@worker1 wait-until Service_Monitor {sb@worker1 Service_Monitor ip=10.244.1.5 _uuid} status=offline`,
			undo: `nb@worker1 lb-del Service_ns9/checked_TCP_cluster`},
		{name: "one of two endpoints of a service is not probed", rule: "balancer-check-without-probe",
			says: "does not probe 10.244.2.5:8080", beside: true},
		{name: "a service is in no group any more", rule: "balancer-unused",
			says:  "worker2: no switch or router uses Service ns1/external",
			plant: `nb@worker2 remove Load_Balancer_Group clusterLBGroup load_balancer {nb@worker2 Load_Balancer name=Service_ns1/external_TCP_cluster _uuid}`,
			undo:  `nb@worker2 add Load_Balancer_Group clusterLBGroup load_balancer {nb@worker2 Load_Balancer name=Service_ns1/external_TCP_cluster _uuid}`},
		{name: "an external gateway of IPv6 does not answer BFD", also: true, rule: "bfd-session-down",
			says: "the BFD session of router port rtoe-GR_worker1 with fc00:f853:ccd:e793::99 is down", beside: true,
			plant: `nb@worker1 --id=@b create BFD logical_port=rtoe-GR_worker1 dst_ip="\"fc00:f853:ccd:e793::99\"" -- --id=@r create Logical_Router_Static_Route ip_prefix="\"fd00:57::/64\"" nexthop="\"fc00:f853:ccd:e793::99\"" bfd=@b -- add Logical_Router GR_worker1 static_routes @r
				nb@worker1 wait-until BFD {nb@worker1 BFD logical_port=rtoe-GR_worker1 _uuid} status=down`,
			undo: `nb@worker1 lr-route-del GR_worker1 fd00:57::/64
				nb@worker1 destroy BFD {nb@worker1 BFD logical_port=rtoe-GR_worker1 _uuid}`},
		{name: "the gateway router of a node is for another node", also: true, rule: "gateway-unbound",
			says: "worker2: chassis worker1 has not claimed the gateway",
			plant: `nb@worker2 set Logical_Router GR_worker2 options:chassis={sb@worker2 Chassis hostname=worker1 name}
				nb@worker2 --wait=hv sync
				sb@worker2 wait-until Port_Binding rtoj-GR_worker2 chassis=[]`,
			undo: `nb@worker2 set Logical_Router GR_worker2 options:chassis={sb@worker2 Chassis hostname=worker2 name}`},
		{name: "a node has a tunnel twice", rule: "interface-without-port-number", says: "worker1: interface twin",
			logs:  true,
			plant: `vsctl@worker1 add-port br-int twin1 -- set Interface twin1 type=geneve options:key=flow options:remote_ip=172.18.0.77 -- add-port br-int twin2 -- set Interface twin2 type=geneve options:key=flow options:remote_ip=172.18.0.77`,
			undo:  `vsctl@worker1 del-port br-int twin1 -- del-port br-int twin2`},
		{name: "ovs-vswitchd logs a tunnel that is there twice", rule: "port-not-added", says: "could not add port twin",
			beside: true},
		{name: "an interface is left of a deleted pod", rule: "interface-without-logical-port",
			says:  "worker3: interface podgone names the logical port ns9_gone-0",
			plant: `vsctl@worker3 add-port br-int podgone -- set Interface podgone external_ids:iface-id=ns9_gone-0 external_ids:sandbox=0123456789ab`, undo: `vsctl@worker3 del-port br-int podgone`},
		{name: "a pod has an interface of its former sandbox", rule: "logical-port-twice",
			says: "worker2: 2 interfaces of this node are of one logical port: pod ns1/web-1", beside: true,
			plant: `vsctl@worker2 add-port br-int podtwice -- set Interface podtwice type=internal external_ids:iface-id=ns1_web-1`, undo: `vsctl@worker2 del-port br-int podtwice`},
		{name: "the network of a node to the outside has no name", rule: "localnet-without-network",
			says:  "worker3: port breth0_worker3 of switch ext_worker3",
			plant: `nb@worker3 clear Logical_Switch_Port breth0_worker3 options`,
			undo:  `nb@worker3 set Logical_Switch_Port breth0_worker3 options:network_name=physnet`},
		{name: "the bridge of a second network to the outside does not exist", rule: "mapped-bridge-missing",
			says: "worker1: the physical network exgw is mapped to bridge brexgw", beside: true,
			plant: `vsctl@worker1 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet:breth0,exgw:brexgw\""`,
			undo:  `vsctl@worker1 set Open_vSwitch . external_ids:ovn-bridge-mappings="\"physnet:breth0\""`},
		{name: "the meter of an egress firewall is gone", rule: "meter-missing",
			says:  "worker2: ACL EF:ns1 (priority 9998, drop) logs with meter acl-logging",
			plant: `nb@worker2 --apply-after-lb --log --meter=acl-logging --name=EF:ns1 acl-add worker2 from-lport 9998 "ip4.dst == 203.0.113.9" drop`, undo: `nb@worker2 acl-del worker2 from-lport 9998 "ip4.dst == 203.0.113.9"`},
		{name: "a pod is for a node that left the cluster", rule: "requested-chassis-missing",
			says: "worker1: pod ns9/new-0 (port ns9_new-0) is for chassis worker9", beside: true,
			plant: `nb@worker1 lsp-add worker1 ns9_new-0 -- lsp-set-addresses ns9_new-0 "0a:58:0a:f4:01:63 10.244.1.99" -- lsp-set-options ns9_new-0 requested-chassis=worker9`, undo: `nb@worker1 lsp-del ns9_new-0`},
		{name: "an IPv6 network contains the pod network", rule: "overlapping-networks",
			says:  "worker1: ports rtos-worker1 (fd00:10:244:1::1/64) and rto-over (fd00:10:244::1/48)",
			plant: `nb@worker1 lrp-add ovn_cluster_router rto-over 0a:58:0a:f4:63:01 fd00:10:244::1/48`,
			undo:  `nb@worker1 lrp-del rto-over`},
		{name: "a port of IPv6 of the cluster's router is connected to nothing", rule: "router-port-unconnected",
			says: "worker1: port rto-over of router ovn_cluster_router", beside: true},
		{name: "a zone still has the private data of a node that left", rule: "chassis-private-alone",
			says: "worker3: the southbound database has private data of chassis worker9", sync: "sb",
			plant: `sb@worker3 chassis-add worker9 geneve 172.18.0.99 -- --id=@p create Chassis_Private name=worker9
				sb@worker3 set Chassis_Private worker9 chassis={sb@worker3 Chassis name=worker9 _uuid}
				sb@worker3 destroy Chassis worker9`, undo: `sb@worker3 --if-exists destroy Chassis_Private worker9`},
		{name: "a zone has a node twice", also: true, rule: "chassis-twice",
			says: "worker2: 2 chassis have the host name worker3", beside: true,
			plant: `sb@worker2 chassis-add twin geneve 172.18.0.98 -- set Chassis twin hostname=worker3 other_config:is-remote=true`, undo: `sb@worker2 chassis-del twin`},
		{name: "a node has the tunnel address of another as its second", rule: "tunnel-address-twice",
			says: "have the same tunnel address 172.18.0.3", sync: "none",
			plant: `sb@worker1 --id=@e create Encap chassis_name="\"{sb@worker1 Chassis hostname=worker3 name}\"" type=vxlan ip=172.18.0.3 -- add Chassis {sb@worker1 Chassis hostname=worker3 name} encaps @e`,
			undo:  `sb@worker1 remove Chassis {sb@worker1 Chassis hostname=worker3 name} encaps {sb@worker1 Encap type=vxlan _uuid}`},
		{name: "ovn-northd does not follow a new router", rule: "northd-behind", says: "worker3: ", beside: true,
			plant: `northd@worker3 pause
				nb@worker3 lr-add late-router`,
			undo: `nb@worker3 lr-del late-router
				northd@worker3 resume`},
		{name: "the node's own port to its pods is switched off", rule: "interface-down",
			says: "worker2: interface ovn-k8s-mp0 of port k8s-worker2 is switched off",
			plant: `appctl@worker2 netdev-dummy/set-admin-state ovn-k8s-mp0 down
				vsctl@worker2 wait-until Interface ovn-k8s-mp0 admin_state=down`,
			undo: `appctl@worker2 netdev-dummy/set-admin-state ovn-k8s-mp0 up
				vsctl@worker2 wait-until Interface ovn-k8s-mp0 admin_state=up`},
		{name: "BFD of a tunnel over IPv6 is down", rule: "tunnel-down",
			says: "worker1: BFD of the tunnel watched to fd00:18::9 is down", beside: true,
			plant: `vsctl@worker1 add-port breth0 watched -- set Interface watched type=vxlan options:remote_ip="\"fd00:18::9\"" options:key=77 bfd:enable=true
				vsctl@worker1 wait-until Interface watched bfd_status:state=down`, undo: `vsctl@worker1 del-port breth0 watched`},
		{name: "a node has another name than its chassis", rule: "chassis-missing",
			says: "worker3: the southbound database has no chassis reinstalled", sync: "none",
			here:  true, // an ovn-controller of 26.03 does not follow its database again after it
			plant: `vsctl@worker3 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\"" external_ids:system-id=reinstalled`,
			undo: `vsctl@worker3 set Open_vSwitch . external_ids:system-id={sb@worker3 Chassis hostname=worker3 name}
				vsctl@worker3 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/nodes/worker3/ovn/ovnsb_db.sock\""`},
		{name: "one node of a cluster waits for ovn-northd in upgrades", rule: "match-northd-version",
			says:  "worker1: external_ids:ovn-match-northd-version is set",
			plant: `vsctl@worker1 set Open_vSwitch . external_ids:ovn-match-northd-version-{sb@worker1 Chassis hostname=worker1 name}=True`,
			undo:  `vsctl@worker1 remove Open_vSwitch . external_ids ovn-match-northd-version-{sb@worker1 Chassis hostname=worker1 name}`},
		{name: "the ovn-northd of a zone does not follow a deletion", rule: "stale-southbound", says: "worker1: ",
			sync: "none",
			plant: `nb@worker1 --wait=sb lr-add old-router
				northd@worker1 pause
				nb@worker1 lr-del old-router`,
			later: `sb@worker1 set SB_Global . external_ids:seen=later`,
			undo: `northd@worker1 resume
				sb@worker1 remove SB_Global . external_ids seen`},
		{name: "the node of a zone does not follow its database", rule: "chassis-behind", says: "worker2: ", beside: true,
			plant: `vsctl@worker2 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
				nb@worker2 --wait=sb sync`,
			later: `nb@worker2 --wait=sb sync`,
			undo:  `vsctl@worker2 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/nodes/worker2/ovn/ovnsb_db.sock\""`},
		{name: "a network policy has a rule twice", rule: "rule-twice", says: "NetworkPolicy ns1/client-out", dumps: true,
			plant: `nb@worker1 --id=@a create ACL direction=from-lport priority=1001 action=allow match="\"inport == @a_ns1_client && udp && udp.dst == 53\"" name=twice options:apply-after-lb=true -- add Port_Group a_ns1_client acls @a`,
			undo:  `nb@worker1 remove Port_Group a_ns1_client acls {nb@worker1 ACL name=twice _uuid}`},
		{name: "a network policy multiplies out", rule: "rule-multiplies-out",
			says: "became 1200 flows: 40 nw_src x 30 tp_dst", beside: true, causes: []string{"drift"},
			plant: `multiply@worker2 br-int {nb@worker2 ACL priority=30000 _uuid}`,
			undo:  `ofctl@worker2 del-flows br-int table=44,tcp,nw_src=10.66.0.0/16`},
		{name: "a node does not make the tunnel over IPv6 to a new one", also: true, rule: "tunnel-missing",
			says: "worker1: there is no tunnel to chassis fresh (geneve fd00:18::96)", sync: "none",
			plant: `vsctl@worker1 set Open_vSwitch . external_ids:ovn-remote="\"unix:/nonexistent/sb.sock\""
				awaitlog@worker1 ovn-controller "unix:/nonexistent/sb.sock: connection attempt failed"
				sb@worker1 chassis-add fresh geneve fd00:18::96`,
			undo: `sb@worker1 chassis-del fresh
				vsctl@worker1 set Open_vSwitch . external_ids:ovn-remote="\"unix:{folder}/nodes/worker1/ovn/ovnsb_db.sock\""`},
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
