package check_test

import "time"

// logFaults makes faults of lines of logs, of which each has two shapes: those of the first are planted with
// one another, and so are those of the second. The nodes take turns.
func logFaults(shapes ...[2]recordedFault) (all []recordedFault) {
	for which := range 2 {
		for _, shape := range shapes {
			f := shape[which]
			f.node = len(all) % 3
			all = append(all, f)
		}
	}
	return all
}

// logged returns a fault of lines that are in a log.
func logged(rule, says, file, text string, more ...change) recordedFault {
	return recordedFault{rule: rule, says: says, changes: append([]change{{file: "log:" + file, text: text}}, more...)}
}

// often returns a fault of lines that are in a log several times.
func often(rule, says string, times int, every time.Duration, file, text string) recordedFault {
	return recordedFault{rule: rule, says: says,
		changes: []change{{file: "log:" + file, text: text, times: times, every: every}}}
}

// daemonLogFaults are what the daemons of Open vSwitch and OVN log, in their own files, in syslog, in the
// journal, and as the runtime of a container keeps it.
func daemonLogFaults() []recordedFault {
	const (
		vswitchd, controller = "ovs-vswitchd/ovs-vswitchd.log", "ovn-controller/ovn-controller.log"
		northd, nb, sb       = "ovn-northd/ovn-northd.log", "ovsdb-server-nb/ovsdb-server-nb.log",
			"ovsdb-server-sb/ovsdb-server-sb.log"
		journal, syslog = "journal/journalctl", "syslog/syslog"
	)
	both := func(a, b recordedFault) [2]recordedFault { return [2]recordedFault{a, b} }
	return logFaults(
		both(logged("assertion-failed", "northd/northd.c:4711: assertion od failed in build_lrouter_flows()", northd,
			"{vlog}|00034|util|EMER|northd/northd.c:4711: assertion od failed in build_lrouter_flows()"),
			logged("assertion-failed", "lib/ovs-rcu.c:162: assertion single_threaded() failed in ovsrcu_quiesce()", syslog,
				"{syslog} gateway ovs-vswitchd: ovs|00034|util|EMER|lib/ovs-rcu.c:162: assertion single_threaded() failed in ovsrcu_quiesce()")),
		both(often("bfd-flapping", "BFD went down 5 times", 5, time.Minute, vswitchd, `{vlog}|00008|bfd(handler1)|INFO|ovn-node-0-1: BFD state change: up->down "No Diagnostic"->"Control Detection Time Expired".
{vlog}|00009|bfd(handler1)|INFO|ovn-node-0-1: BFD state change: down->up "Control Detection Time Expired"->"No Diagnostic".`),
			often("bfd-flapping", "at last on ovn-gw-1", 7, time.Minute, "ovs-vswitchd/ovs-vswitchd.log.1.gz",
				`{vlog}|{n}|bfd(monitor4)|INFO|ovn-gw-1: BFD state change: init->down "No Diagnostic"->"Neighbor Signaled Session Down".`)),
		both(logged("certificate-expired", "because a certificate has expired", controller,
			"{vlog}|00012|stream_ssl|WARN|SSL_read: error:0A000415:SSL routines::sslv3 alert certificate expired"),
			logged("certificate-expired", "because a certificate has expired", journal,
				"{iso} compute1 ovsdb-server[812]: ovs|00012|stream_ssl|WARN|SSL_accept: error:14094415:SSL routines:ssl3_read_bytes:sslv3 alert certificate expired")),
		both(logged("certificate-refused", "because a certificate is refused", sb,
			"{vlog}|00003|stream_ssl|WARN|SSL_accept: error:0A000086:SSL routines::certificate verify failed"),
			logged("certificate-refused", "because a certificate is refused", syslog,
				"{syslog} compute2 ovn-controller: ovs|00012|stream_ssl|WARN|SSL_connect: error:1416F086:SSL routines:tls_process_server_certificate:certificate verify failed")),
		both(logged("daemon-crashed", "a daemon crashed: 1 crashes: pid 19233 died, killed (Segmentation fault), restarting",
			sb, "{vlog}|00005|daemon_unix(monitor)|ERR|1 crashes: pid 19233 died, killed (Segmentation fault), restarting"),
			logged("daemon-crashed", "a daemon crashed: 3 crashes: pid 871 died, killed (Aborted), core dumped, restarting",
				journal, "{iso} gateway ovs-vswitchd[870]: ovs|00005|daemon_unix(monitor)|ERR|3 crashes: pid 871 died, killed (Aborted), core dumped, restarting")),
		both(logged("database-permission-denied", "permits client compute5 no such change of table IGMP_Group",
			controller+".1.gz", `{vlog}|00266|ovsdb_idl|WARN|transaction error: {"details":"RBAC rules for client \"compute5\" role \"ovn-controller\" prohibit row insertion into table \"IGMP_Group\".","error":"permission error"}`),
			logged("database-permission-denied", "permits client compute5 no such change of table Port_Binding", syslog,
				`{syslog} compute5 ovn-controller: ovs|00266|ovsdb_idl|WARN|transaction error: {"details":"RBAC rules for client \"compute5\" role \"ovn-controller\" prohibit modification of table \"Port_Binding\".","error":"permission error"}`)),
		both(logged("disk-full", "the disk was full: /var/lib/ovn/ovnnb_db.db: write failed", nb,
			"{vlog}|00034|ovsdb_log|WARN|/var/lib/ovn/ovnnb_db.db: write failed (No space left on device)"),
			logged("disk-full", "the disk was full: /etc/ovn/ovnsb_db.db: write failed",
				"ovsdb-server-sb/ovnkube-db-0.sb-ovsdb.log",
				"{vlog} stderr F {vlog}|00034|ovsdb_log|WARN|/etc/ovn/ovnsb_db.db: write failed (No space left on device)")),
		both(logged("flow-refused", "OFPGMFC_INVALID_GROUP", journal,
			"{iso} compute1 ovn-controller[901]: ovs|00055|ofctrl|INFO|OpenFlow error: OFPT_ERROR (OF1.5) (xid=0x87a): OFPGMFC_INVALID_GROUP"),
			logged("flow-refused", "OFPBAC_BAD_TYPE", controller+".2.gz",
				"{vlog}|00034|ofctrl|INFO|OpenFlow error: OFPT_ERROR (OF1.5) (xid=0x9): OFPBAC_BAD_TYPE")),
		both(logged("emergency", "a daemon logged an emergency: could not initiate process monitoring", vswitchd,
			"{vlog}|00002|daemon_unix|EMER|could not initiate process monitoring"),
			logged("emergency", "a daemon logged an emergency: /var/run/ovn/ovnnb_db.pid: pidfile check failed", nb,
				"{vlog}|00003|daemon_unix|EMER|/var/run/ovn/ovnnb_db.pid: pidfile check failed (Resource temporarily unavailable), aborting")),
		both(logged("encap-missing", "has no tunnel address", controller,
			"{vlog}|00008|chassis|INFO|Need to specify an encap type and ip"),
			logged("encap-missing", "has no tunnel address", syslog,
				"{syslog} compute2 ovn-controller: ovs|00008|chassis|INFO|Need to specify an encap type and ip")),
		both(often("frequent-elections", "the servers of a clustered database elected a leader 5 times", 5, time.Minute,
			"ovsdb-server/ovsdb-server.log", "{vlog}|19755|raft|INFO|term {n}: 1620 ms timeout expired, starting election"),
			often("frequent-elections", "at last for term 7", 7, 5*time.Minute, syslog,
				"{syslog} gateway ovsdb-server[77]: ovs|19755|raft|INFO|term {n}: starting election")),
		both(often("frequent-elections-nb", "the servers of the OVN NB database elected a leader 5 times", 5, time.Minute, nb,
			"{vlog}|19755|raft|INFO|term {n}: 1620 ms timeout expired, starting election"),
			often("frequent-elections-nb", "at last for term 6", 6, 5*time.Minute,
				"ovsdb-server-nb/ovn-central-0.ovn-central.log",
				"{vlog} stdout F {vlog}|19755|raft|INFO|term {n}: starting election")),
		both(often("frequent-elections-sb", "the servers of the OVN SB database elected a leader 9 times", 9, time.Minute, sb,
			"{vlog}|19755|raft|INFO|term {n}: 1620 ms timeout expired, starting election"),
			often("frequent-elections-sb", "at last for term 5", 5, 5*time.Minute, sb+".1.gz",
				"{vlog}|19755|raft|INFO|term {n}: starting election")),
		both(often("gateway-moves", "gateway ports were claimed or released 20 times", 20, time.Hour, controller,
			"{vlog}|00120|binding|INFO|Changing chassis for lport cr-lrp-31f4fa6a from 4c4c4544-0000-4000-8000-000000000013 to 4c4c4544-0000-4000-8000-000000000011."),
			often("gateway-moves", "at last cr-lrp-31f4fa6a", 10, time.Minute, syslog,
				"{syslog} compute1 ovn-controller: ovs|00120|binding|INFO|Claiming lport cr-lrp-31f4fa6a for this chassis.\n{syslog} compute1 ovn-controller: ovs|00121|binding|INFO|Releasing lport cr-lrp-31f4fa6a from this chassis (sb_readonly=0)")),
		both(often("port-moves", "port vm-1 changed its chassis 31 times", 31, time.Minute, controller,
			"{vlog}|00010|binding|INFO|Changing chassis for lport vm-1 from aaaa4488-a5d8-4ea4-9af7-2d5914823eae to bbbb546c-0276-48ca-97e7-cde638850254."),
			often("port-moves", "port ns1_client changed its chassis 10 times", 10, 2*time.Minute,
				"ovn-controller/ovnkube-node-x.ovn-controller.log",
				"{vlog} stderr F {vlog}|00010|binding|INFO|Changing chassis for lport ns1_client from n1 to n2.")),
		both(logged("lock-failed", "ofproto/ofproto.c:6282: pthread_mutex_lock failed (Resource deadlock avoided)", vswitchd,
			"{vlog}|00215|ovs_thread|EMER|ofproto/ofproto.c:6282: pthread_mutex_lock failed (Resource deadlock avoided)"),
			logged("lock-failed", "pthread_create failed (Resource temporarily unavailable)", journal,
				"{iso} compute1 ovn-northd[9]: ovs|00215|ovs_thread|EMER|pthread_create failed (Resource temporarily unavailable)")),
		both(logged("offload-failed", "could not be offloaded to p0: Invalid argument", vswitchd,
			"{vlog}|00010|dpif_netlink(handler3)|ERR|failed to offload flow: Invalid argument: p0"),
			logged("offload-failed", "could not be offloaded to genev_sys_6081: No such file or directory", syslog,
				"{syslog} compute1 ovs-vswitchd: ovs|00010|dpif_offload_tc(handler3)|ERR|failed to offload flow: No such file or directory: genev_sys_6081")),
		both(logged("raft-misrouted", "for 3f1c, and it is 77aa", sb,
			"{vlog}|00019|raft|INFO|tcp:10.0.0.2:41234: syntax error: Parsing raft append_request RPC failed: misrouted message (addressed to 3f1c but we're 77aa)"),
			logged("raft-misrouted", "for 0001, and it is 9abc", journal,
				"{iso} gateway ovsdb-server[5]: ovs|00019|raft|INFO|ssl:10.0.0.2:41234: syntax error: Parsing raft heartbeat RPC failed: misrouted message (addressed to 0001 but we're 9abc)")),
		both(often("inactivity-probes-lost", "ssl:10.0.0.1 did not answer inactivity probes 10 times", 10, time.Minute,
			controller, "{vlog}|00073|reconnect|ERR|ssl:10.0.0.1:6642: no response to inactivity probe after 5.01 seconds, disconnecting"),
			often("inactivity-probes-lost", "br-int<->unix did not answer inactivity probes 11 times", 11, time.Minute, journal,
				"{iso} compute1 ovs-vswitchd[871]: ovs|00073|rconn|ERR|br-int<->unix#{n}: no response to inactivity probe after 5 seconds, disconnecting")),
		both(logged("localnet-without-bridge", "no bridge for the physical network physnet7 of provnet-aa3a4fec", controller,
			"{vlog}|00012|patch|ERR|bridge not found for localnet port 'provnet-aa3a4fec' with network name 'physnet7'"),
			logged("localnet-without-bridge", "no bridge for the physical network datacentre", syslog,
				"{syslog} compute1 ovn-controller: ovs|00012|patch|ERR|bridge not found for localnet port 'provnet-bb3a4fec' with network name 'datacentre'")),
		both(logged("logical-flow-not-compiled",
			"could not read the actions of a logical flow: Syntax error at `ct_lb_mark' expecting action", journal,
			"{iso} compute1 ovn-controller[901]: ovs|00034|lflow|WARN|error parsing actions \"ct_lb_mark(backends=10.0.0.1:80);\": Syntax error at `ct_lb_mark' expecting action."),
			logged("logical-flow-not-compiled", "expecting address set name", controller,
				"{vlog}|00034|lflow|WARN|error parsing match \"ip4.src == $a123\": Syntax error at `$a123' expecting address set name.")),
		both(logged("northd-version-mismatch",
			"ovn-controller 22.03.2-20.21.0-61.4 does not go with ovn-northd 22.03.0-20.21.0-58.3", controller+".1.gz",
			"{vlog}|00263|main|WARN|controller version - 22.03.2-20.21.0-61.4 mismatch with northd version - 22.03.0-20.21.0-58.3"),
			logged("northd-version-mismatch", "ovn-controller 23.03.1-20.27.0-70.6 does not go with", journal,
				"{iso} compute1 ovn-controller[901]: ovs|00062|main|WARN|controller version - 23.03.1-20.27.0-70.6 mismatch with northd version - 23.06.0-20.27.4-73.6")),
		both(logged("northd-without-path", "the static route 10.9.0.0/16 via 192.0.2.9",
			"ovn-northd/ovnkube-node-x.northd.log",
			"{vlog} stderr F {vlog}|00034|northd|WARN|No path for static route 10.9.0.0/16 on router GR_worker1; next hop 192.0.2.9"),
			logged("northd-without-path", "the static route fd00:9::/64 via fd00::9", syslog,
				"{syslog} gateway ovn-northd: ovs|00034|ovn_northd|WARN|No path for static route fd00:9::/64; next hop fd00::9")),
		both(often("packets-lost-on-upcall", "10 packets from the datapath system@ovs-system", 10, time.Hour, vswitchd,
			"{vlog}|10324|dpif_netlink(handler10)|WARN|system@ovs-system: lost packet on port channel 0 of handler 0"),
			often("packets-lost-on-upcall", "12 packets from the datapath system@ovs-system", 12, time.Minute, syslog,
				"{syslog} compute1 ovs-vswitchd: ovs|10324|dpif_netlink(handler3)|WARN|system@ovs-system: lost packet on port channel 4 of handler 2")),
		both(often("poll-interval-long", "more than a second 10 times, at last for 2110 ms", 10, time.Minute, sb,
			"{vlog}|00034|timeval|WARN|Unreasonably long 2110ms poll interval (2000ms user, 100ms system)"),
			often("poll-interval-long", "at last for 14013 ms", 15, time.Minute, journal,
				"{iso} compute1 ovn-controller[901]: ovs|00034|timeval|WARN|Unreasonably long 14013ms poll interval (13800ms user, 202ms system)")),
		both(logged("recursion-too-deep", "packets of bridge br-int went through more than 64 resubmits", vswitchd+".3.gz",
			"{vlog}|00084|ofproto_dpif_xlate(handler2)|WARN|over max translation depth 64 on bridge br-int while processing icmp,in_port=3,vlan_tci=0x0000,dl_src=02:00:00:00:0c:01,dl_dst=02:00:00:00:0c:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,icmp_type=8,icmp_code=0"),
			logged("recursion-too-deep", "packets of bridge br-tun went through", syslog,
				"{syslog} compute1 ovs-vswitchd: ovs|00084|ofproto_dpif_xlate|WARN|over max translation depth 64 on bridge br-tun while processing in_port=1,vlan_tci=0x0000,dl_src=02:00:00:00:0c:01,dl_dst=02:00:00:00:0c:02,dl_type=0x88b5")),
		both(logged("resubmit-limit", "packets of bridge br-int needed more than 4096 resubmits", vswitchd,
			"{vlog}|14339034|ofproto_dpif_xlate|WARN|over 4096 resubmit actions on bridge br-int while processing arp,in_port=CONTROLLER,vlan_tci=0x0000,dl_src=fa:16:3e:2e:f1:45,dl_dst=ff:ff:ff:ff:ff:ff,arp_spa=10.200.86.60,arp_tpa=10.200.86.130,arp_op=1,arp_sha=fa:16:3e:2e:f1:45,arp_tha=00:00:00:00:00:00"),
			logged("resubmit-limit", "packets of bridge br-ex needed more than 4096 resubmits", journal,
				"{iso} compute1 ovs-vswitchd[871]: ovs|00116|ofproto_dpif_xlate(handler1)|WARN|over 4096 resubmit actions on bridge br-ex while processing in_port=1,vlan_tci=0x0000,dl_src=02:00:00:00:0c:01,dl_dst=02:00:00:00:0c:02,dl_type=0x88b6")),
		both(often("stale-database", "as 10 lines say", 10, 10*time.Second, controller,
			"{vlog}|00019|ovsdb_cs|WARN|tcp:10.0.0.1:6642: clustered database server has stale data; trying another server"),
			often("stale-database", "as 12 lines say", 12, 10*time.Second, "neutron-server/neutron-server.log",
				"{oslo} 317562 WARNING ovsdbapp.backend.ovs_idl.vlog [-] ssl:10.5.3.204:16642: clustered database server has stale data; trying another server")),
	)
}

// hostLogFaults are what systemd and the kernel log, as journalctl, syslog and dmesg print it, with older and
// newer releases of systemd.
func hostLogFaults() []recordedFault {
	const journal, syslog = "journal/journalctl", "syslog/syslog"
	return logFaults(
		[2]recordedFault{logged("agent-older-than-switch", "Open vSwitch was started again after neutron's", journal,
			"{iso} compute1 systemd[1]: Started Openstack Neutron Open vSwitch Plugin Agent.\n{iso} compute1 systemd[1]: Started Open vSwitch."),
			logged("agent-older-than-switch", "Open vSwitch was started again after neutron's", syslog,
				"{syslog} compute1 systemd[1]: Started neutron-openvswitch-agent.service - Openstack Neutron Open vSwitch Plugin Agent.\n{syslog} compute1 systemd[1]: Finished openvswitch-switch.service - Open vSwitch.")},
		[2]recordedFault{logged("conntrack-full", "the kernel's table of connections was full", syslog,
			"{syslog} compute1 kernel: [12345.678901] nf_conntrack: nf_conntrack: table full, dropping packet"),
			logged("conntrack-full", "the kernel's table of connections was full", "kernel/dmesg",
				"[12345.678901] nf_conntrack: nf_conntrack: table full, dropping packet")},
		[2]recordedFault{logged("daemon-out-of-memory", "the kernel killed ovs-vswitchd", journal,
			"{iso} compute1 kernel: Out of memory: Killed process 4711 (ovs-vswitchd) total-vm:1342648kB, anon-rss:951980kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:2104kB oom_score_adj:0"),
			logged("daemon-out-of-memory", "the kernel killed ovn-controller", "kernel/dmesg",
				"[12345.678901] Memory cgroup out of memory: Killed process 901 (ovn-controller) total-vm:2350936kB, anon-rss:1947696kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4104kB oom_score_adj:999")},
		[2]recordedFault{often("vswitchd-restarts", "ovs-vswitchd was started 10 times", 10, time.Minute, journal,
			"{iso} compute1 systemd[1]: Starting Open vSwitch Forwarding Unit..."),
			often("vswitchd-restarts", "ovs-vswitchd was started 12 times", 12, time.Hour, syslog,
				"{syslog} compute1 systemd[1]: Starting ovs-vswitchd.service - Open vSwitch Forwarding Unit...")},
		[2]recordedFault{often("neutron-ovs-cleanup", "neutron-ovs-cleanup ran 2 times", 2, time.Minute, journal,
			"{iso} compute1 systemd[1]: Starting OpenStack Neutron OVS cleanup...\n{iso} compute1 systemd[1]: Started OpenStack Neutron OVS cleanup."),
			often("neutron-ovs-cleanup", "neutron-ovs-cleanup ran 3 times", 3, time.Hour, syslog,
				"{syslog} compute1 systemd[1]: Finished neutron-ovs-cleanup.service - OpenStack Neutron OVS cleanup.")},
		[2]recordedFault{logged("neutron-lp1896506", "keepalived does not know the entry no_track", syslog,
			"{syslog} compute1 Keepalived_vrrp[23396]: Unknown configuration entry 'no_track' for ip address - ignoring"),
			logged("neutron-lp1896506", "keepalived does not know the entry no_track", journal,
				"{iso} compute1 Keepalived_vrrp[23396]: (Line 22) Unknown configuration entry 'no_track' for ip address - ignoring")},
	)
}

// neutronLogFaults are what the services of neutron log, in their files and in the journal. The lines in the
// files are those of the tests of hotsos.
func neutronLogFaults() []recordedFault {
	const (
		server, l3, metadata, agent = "neutron-server/neutron-server.log", "neutron-l3-agent/neutron-l3-agent.log",
			"neutron-ovn-metadata-agent/neutron-ovn-metadata-agent.log",
			"neutron-openvswitch-agent/neutron-openvswitch-agent.log"
		journal = "journal/journalctl"
	)
	installed := func(line string) change { return change{file: "host/dpkg", text: line} }
	common := func(text string) change {
		return change{file: "host/dpkg", old: `^ii  openvswitch-common .*\n`, text: text}
	}
	both := func(a, b recordedFault) [2]recordedFault { return [2]recordedFault{a, b} }
	return logFaults(
		both(logged("neutron-lp1883089", "neutron failed to find the gateway port", l3,
			"{oslo} 1285214 ERROR oslo_messaging.rpc.server [None req-d6a41187-2495-46bf-a424-ab7195c0ecb1 - - - - -] Exception during message handling: AttributeError: 'NoneType' object has no attribute 'get'"),
			logged("neutron-lp1883089", "neutron failed to find the gateway port", journal,
				"{iso} network1 neutron-l3-agent[1285214]: ERROR oslo_messaging.rpc.server AttributeError: 'NoneType' object has no attribute 'get'")),
		both(logged("neutron-lp1907686", "neutron's connection to the OVN_Southbound database timed out", agent,
			"{oslo} 69188 ERROR neutron.plugins.ml2.drivers.ovn.mech_driver.ovsdb.impl_idl_ovn [-] OVS database connection to OVN_Southbound failed with error: 'Timeout'. Verify that the OVS and OVN services are available and that the 'ovn_nb_connection' and 'ovn_sb_connection' configuration options are correct.: Exception: Timeout"),
			logged("neutron-lp1907686", "neutron's connection to the OVN_Northbound database timed out", server+".1.gz",
				"{oslo} 69188 ERROR neutron.plugins.ml2.drivers.ovn.mech_driver.ovsdb.impl_idl_ovn [-] OVS database connection to OVN_Northbound failed with error: 'Timeout'. Verify that the OVS and OVN services are available and that the 'ovn_nb_connection' and 'ovn_sb_connection' configuration options are correct.: Exception: Timeout")),
		both(logged("neutron-lp1928031", "neutron's metadata agent has lost its connection", metadata,
			"{oslo} 1331249 ERROR neutron.agent.ovn.metadata.server AttributeError: 'MetadataProxyHandler' object has no attribute 'sb_idl'"),
			logged("neutron-lp1928031", "neutron's metadata agent has lost its connection", journal,
				"{iso} compute1 neutron-ovn-metadata-agent[1331249]: ERROR neutron.agent.ovn.metadata.server AttributeError: 'MetadataProxyHandler' object has no attribute 'sb_idl'")),
		both(logged("neutron-lp1929832", "could not delete router 8f14f808-c23a-422b-a3a8-7fb747e89676", l3,
			"{oslo} 3457514 ERROR neutron.agent.l3.agent [-] Error while deleting router 8f14f808-c23a-422b-a3a8-7fb747e89676: neutron_lib.exceptions.ProcessExecutionError: Exit code: 99; Stdin: ; Stdout: ; Stderr: /usr/bin/neutron-rootwrap: Unauthorized command: kill -15 365134 (no filter matched)"),
			logged("neutron-lp1929832", "could not delete router 9f14f808", journal,
				"{iso} network1 neutron-l3-agent[3457514]: ERROR neutron.agent.l3.agent [-] Error while deleting router 9f14f808: neutron_lib.exceptions.ProcessExecutionError: Exit code: 99; Stdin: ; Stdout: ; Stderr: /usr/bin/neutron-rootwrap: Unauthorized command: kill -15 365134 (no filter matched)")),
		both(logged("neutron-lp1948466", "neutron's maintenance task can't delete a subnet", server,
			"{oslo} 87890 ERROR neutron.plugins.ml2.drivers.ovn.mech_driver.ovsdb.maintenance [req-cef1fdf1-c249-4d8c-ad0d-23d3a81f60ec - - - - -] Maintenance task: Failed to fix deleted resource fe5482d2-351d-4b9d-9da1-3d6738f64755 (type: subnets): KeyError: 'uuid'"),
			logged("neutron-lp1948466", "neutron's maintenance task can't delete a subnet", journal,
				"{iso} network1 neutron-server[87890]: ERROR neutron.plugins.ml2.drivers.ovn.mech_driver.ovsdb.maintenance [None req-cef1fdf1 None None] Maintenance task: Failed to fix deleted resource fe5482d2 (type: subnets): KeyError: 'uuid'")),
		both(logged("neutron-lp1960319", "neutron-server does not find the program ovsdb-client", server,
			"{oslo} 75085 ERROR ovsdbapp.event [-] Unexpected exception in notify_loop: FileNotFoundError: [Errno 2] No such file or directory: 'ovsdb-client'\n{oslo} 75085 ERROR ovsdbapp.event Traceback (most recent call last):", common("")),
			logged("neutron-lp1960319", "neutron-server does not find the program ovsdb-client", journal,
				"{iso} network1 neutron-server[75085]: ERROR ovsdbapp.event FileNotFoundError: [Errno 2] No such file or directory: 'ovsdb-client'", common("rc  openvswitch-common 3.1.0-2+deb12u1   amd64        Open vSwitch common components\n"))),
		both(logged("neutron-lp1965297", "gateway interface of router 9f276b0e-8581-4312-8780-ff4503c3df07", l3,
			"{oslo} 328191 ERROR neutron.agent.l3.ha_router [-] Gateway interface for router 9f276b0e-8581-4312-8780-ff4503c3df07 was not set up; router will not work properly"),
			logged("neutron-lp1965297", "gateway interface of router 1f276b0e", journal,
				"{iso} network1 neutron-l3-agent[328191]: ERROR neutron.agent.l3.ha_router [-] Gateway interface for router 1f276b0e was not set up; router will not work properly")),
		both(often("neutron-lp1979089", "namespace qrouter-57837a95-ed3b-4a1b-9393-1374a8c744c3 is gone", 10, 10*time.Second,
			l3, "{oslo} 30127 ERROR neutron.agent.linux.utils [-] Exit code: 1; Stdin: ; Stdout: ; Stderr: Cannot open network namespace \"qrouter-57837a95-ed3b-4a1b-9393-1374a8c744c3\": No such file or directory"),
			often("neutron-lp1979089", "namespace qrouter-67837a95 is gone", 30, time.Minute, journal,
				"{iso} network1 neutron-l3-agent[30127]: ERROR neutron.agent.linux.utils [-] Exit code: 1; Stdin: ; Stdout: ; Stderr: Cannot open network namespace \"qrouter-67837a95\": No such file or directory")),
		both(logged("neutron-lp1980211", "installed: python3-openvswitch 2.17.0", metadata,
			"{oslo} 5331 ERROR neutron.plugins.ml2.drivers.ovn.mech_driver.ovsdb.impl_idl_ovn ValueError: non-zero flags not allowed in calls to send() on <class 'eventlet.green.ssl.GreenSSLSocket'>", installed("ii  python3-openvswitch                  2.17.0-0ubuntu1                                      all          Python 3 bindings for Open vSwitch")),
			logged("neutron-lp1980211", "a service of neutron can't connect to the southbound database again", journal,
				"{iso} network1 neutron-server[2050177]: ERROR ovsdbapp.backend.ovs_idl.connection ValueError: non-zero flags not allowed in calls to send() on <class 'eventlet.green.ssl.GreenSSLSocket'>", installed("ii  python3-openvswitch                  2.17.2-0ubuntu0.22.04.1                              all          Python 3 bindings for Open vSwitch"))),
		both(logged("neutron-lp1993628", "could not add vm-2.compute.stack.vpn. to the external DNS", server,
			"{oslo} 67548 ERROR neutron.db.dns_db neutron_lib.exceptions.dns.DuplicateRecordSet: Name vm-2.compute.stack.vpn. is duplicated in the external DNS service"),
			logged("neutron-lp1993628", "could not add vm-3.example.org. to the external DNS", journal,
				"{iso} network1 neutron-server[67548]: ERROR neutron.db.dns_db neutron_lib.exceptions.dns.DuplicateRecordSet: Name vm-3.example.org. is duplicated in the external DNS service")),
		both(logged("neutron-lp1996594", "lost updates of the southbound database (openvswitch-common 2.16.0-0ubuntu2.1~cloud0)", metadata, "{oslo} 75556 ERROR ovsdbapp.backend.ovs_idl.transaction [-] OVSDB Error: no error details available", common("ii  openvswitch-common             2.16.0-0ubuntu2.1~cloud0          amd64        Open vSwitch common components\n")),
			logged("neutron-lp1996594", "lost updates of the southbound database (openvswitch-common 2.13.8-0ubuntu1)", journal,
				"{iso} compute1 neutron-ovn-metadata-agent[75556]: ERROR ovsdbapp.backend.ovs_idl.transaction [-] OVSDB Error: no error details available", common("ii  openvswitch-common             2.13.8-0ubuntu1                   amd64        Open vSwitch common components\n"))),
		both(logged("neutron-lp2017748", "no metadata port for network 9029c393-5c40-4bf2-beec-27413417eafa", metadata,
			"{oslo} 353474 DEBUG neutron.agent.ovn.metadata.agent [-] There is no metadata port for network 9029c393-5c40-4bf2-beec-27413417eafa or it has no MAC or IP addresses configured, tearing the namespace down if needed _get_provision_params /usr/lib/python3.9/site-packages/neutron/agent/ovn/metadata/agent.py:495"),
			logged("neutron-lp2017748", "no metadata port for network 8029c393", journal,
				"{iso} compute1 neutron-ovn-metadata-agent[353474]: DEBUG neutron.agent.ovn.metadata.agent [-] There is no metadata port for network 8029c393 or it has no MAC or IP addresses configured, tearing the namespace down if needed")),
		both(logged("neutron-privsep-lost", "the privileged helper of neutron-l3-agent 2:16.4.2-0ubuntu6.2", journal,
			"{iso} network1 neutron-l3-agent[1825155]: ValueError: 1051918 exceeds max_str_len(1048576)",
			installed("ii  neutron-l3-agent                       2:16.4.2-0ubuntu6.2                                  all          Neutron is a virtual network service for Openstack - l3 agent")),
			logged("neutron-privsep-lost", "got more data than it can take (max_bin_len(1048576))", agent,
				"{oslo} 1825155 ERROR neutron.plugins.ml2.drivers.openvswitch.agent.ovs_neutron_agent ValueError: 1051918 exceeds max_bin_len(1048576)", installed("ii  neutron-openvswitch-agent              2:16.4.2-0ubuntu6.2                                  all          Neutron is a virtual network service for Openstack - Open vSwitch plugin agent"))),
		both(often("neutron-reconnects-nb", "another server of the Northbound database 50 times", 50, time.Minute, server,
			"{oslo} 5571 INFO ovsdbapp.backend.ovs_idl.vlog [-] ssl:10.22.0.244:6641: clustered database server is not cluster leader; trying another server"),
			often("neutron-reconnects-nb", "another server of the Northbound database 60 times", 60, time.Minute, journal,
				"{iso} network1 neutron-server[5571]: INFO ovsdbapp.backend.ovs_idl.vlog [-] tcp:10.22.0.244:6641: clustered database server is not cluster leader; trying another server")),
		both(often("neutron-reconnects-sb", "another server of the Southbound database 70 times", 70, time.Minute, server,
			"{oslo} 5571 INFO ovsdbapp.backend.ovs_idl.vlog [-] ssl:10.22.0.244:6642: clustered database server is not cluster leader; trying another server"),
			often("neutron-reconnects-sb", "another server of the Southbound database 55 times", 55, 10*time.Minute,
				"neutron-server/neutron-server.log.1.gz",
				"{oslo} 5571 INFO ovsdbapp.backend.ovs_idl.vlog [-] ssl:10.22.0.244:16642: clustered database server is not cluster leader; trying another server")),
	)
}
