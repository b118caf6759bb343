package check_test

import (
	"slices"
	"time"
)

// recordedFaults are the faults in what was recorded of the nodes of the set openstack. Two neighbours are
// planted at once.
func recordedFaults() []recordedFault {
	return slices.Concat(machineFaults(), daemonLogFaults(), hostLogFaults(), neutronLogFaults())
}

// machine is what a node of an ML2/OVN cloud on Debian prints about itself: dpkg -l, systemctl list-units and
// list-unit-files, ps aux, and ip address. The lab has no such machine.
func machine() map[string]string {
	return map[string]string{
		"host/dpkg": `Desired=Unknown/Install/Remove/Purge/Hold
| Status=Not/Inst/Conf-files/Unpacked/halF-conf/Half-inst/trig-aWait/Trig-pend
|/ Err?=(none)/Reinst-required (Status,Err: uppercase=bad)
||/ Name               Version           Architecture Description
+++-==================-=================-============-=================================
ii  openvswitch-common 3.1.0-2+deb12u1   amd64        Open vSwitch common components
ii  ovn-common         23.03.1-1~deb12u2 amd64        OVN common components
ii  ovn-host           23.03.1-1~deb12u2 amd64        OVN host components
`,
		"host/systemctl.list-units": `  UNIT                                 LOAD   ACTIVE SUB     DESCRIPTION
  neutron-ovn-metadata-agent.service   loaded active running OpenStack Neutron OVN Metadata Agent
  openvswitch-switch.service           loaded active exited  Open vSwitch
  ovn-controller.service               loaded active running Open Virtual Network host control daemon
  ovn-host.service                     loaded active exited  Open Virtual Network host components
  ovs-vswitchd.service                 loaded active running Open vSwitch Forwarding Unit
  ovsdb-server.service                 loaded active running Open vSwitch Database Unit

LOAD   = Reflects whether the unit definition was properly loaded.
ACTIVE = The high-level unit activation state, i.e. generalization of SUB.
SUB    = The low-level unit activation state, values depend on unit type.
6 loaded units listed.
`,
		"host/systemctl.list-unit-files": `UNIT FILE                            STATE           PRESET
openvswitch-switch.service           enabled         enabled
ovn-controller.service               static          -
ovn-host.service                     enabled         enabled
ovs-vswitchd.service                 static          -
ovsdb-server.service                 static          -
`,
		"host/ps": `USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.1 168744 12936 ?        Ss   Nov20   0:21 /sbin/init
root         812  0.0  0.0  15392  6560 ?        S<s  Nov20   1:02 ovsdb-server /etc/openvswitch/conf.db -vconsole:emer
root         871  1.0  0.6 342648 51980 ?        S<Lsl Nov20 102:11 ovs-vswitchd unix:/var/run/openvswitch/db.sock -vconsole:emer
`,
	}
}

// address is what "ip address" prints of a device with addresses.
const address = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP group default qlen 1000
    link/ether 52:54:00:18:00:11 brd ff:ff:ff:ff:ff:ff
`

// machineFaults are faults of the machine, of the datapath of its kernel, and of the collection.
func machineFaults() []recordedFault {
	units, files, packages := "host/systemctl.list-units", "host/systemctl.list-unit-files", "host/dpkg"
	of := func(node int, rule, says string, changes ...change) recordedFault {
		return recordedFault{rule: rule, says: says, node: node, changes: changes}
	}
	soon, past := time.Now().UTC().Add(9*24*time.Hour), time.Now().UTC().Add(-50*time.Hour)
	certificate := func(file, name string, until time.Time) change {
		return change{file: "host/certificates",
			text: file + "\tsubject=\"CN=" + name + "\"\tissuer=\"CN=ca\"\tnotBefore=2024-04-14T15:06:48Z\tnotAfter=" +
				until.Format(time.RFC3339)}
	}
	return []recordedFault{
		of(0, "unit-not-running", "compute1: the unit ovs-vswitchd has failed", change{file: units,
			old: `^  ovs-vswitchd\.service .*$`, text: "● ovs-vswitchd.service                 loaded failed failed  Open vSwitch Forwarding Unit"}),
		of(1, "certificate-expires", "the certificate etc/ovn/cert_host had expired 50 h before",
			certificate("etc/ovn/cert_host", "compute2", past)),
		of(2, "unit-not-running", "gateway: ovn-northd is not running on this node",
			change{file: files, text: "ovn-central.service                  enabled         enabled\novn-northd.service                   static          -\novn-ovsdb-server-nb.service          static          -\novn-ovsdb-server-sb.service          static          -\n"},
			change{file: files, old: `^ovn-ovsdb-server-nb\.service .*$`,
				text: "ovn-ovsdb-server-nb.service          enabled         enabled"}),
		of(0, "certificate-expires", "the certificate etc/neutron/ovn.pem expires 9 days after",
			certificate("etc/neutron/ovn.pem", "neutron", soon)),
		of(0, "daemon-memory", "compute1: ovn-controller uses 6.5 GiB of memory",
			change{file: "host/cgroup.memory", text: "sys/fs/cgroup/system.slice/ovn-controller.service/memory.current 6979321856"}),
		of(1, "data-lost", "a part of the source could not be read: sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int",
			change{file: "manifest.json",
				old: `"files": null`, text: `"files": [], "lost": ["sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int: 3 lines longer than 16 MiB: not read"]`}),
		of(1, "daemon-memory", "compute2: ovs-vswitchd uses 5.2 GiB of memory",
			change{file: "host/cgroup.memory", text: "sys/fs/cgroup/memory/system.slice/ovs-vswitchd.service/memory.usage_in_bytes 5583457484"}),
		of(0, "data-lost", "a part of the source could not be read: var/log/ovn/ovn-controller.log.2.gz: unexpected EOF",
			change{file: "manifest.json",
				old: `"files": null`, text: `"files": [], "lost": ["var/log/ovn/ovn-controller.log.2.gz: unexpected EOF"]`}),
		of(0, "tunnel-address-missing", "compute1: no interface of the node has its tunnel address 192.168.24.11",
			change{file: "recorded/ip.address",
				text: address + "    inet 192.168.24.111/24 brd 192.168.24.255 scope global eth0\n       valid_lft forever preferred_lft forever"}),
		of(1, "datapath-lost-packets", "compute2: the datapath system@ovs-system lost 4711 packets",
			change{file: "recorded/dpctl.show", old: `lost:0$`, text: "lost:4711"}),
		of(2, "tunnel-address-missing", "gateway: no interface of the node has its tunnel address 192.168.24.13",
			change{file: "recorded/ip.address",
				text: address + "    inet6 fd00:24::13/64 scope global\n       valid_lft forever preferred_lft forever"}),
		of(0, "datapath-lost-packets", "compute1: the datapath system@ovs-system lost 101 packets",
			change{file: "recorded/dpctl.show", old: `lookups: .*$`, text: "lookups: hit:90211 missed:512 lost:101"}),
		of(0, "datapath-many-masks", "compute1: the datapath system@ovs-system has 161 masks, and tries 9.8 for each packet",
			change{file: "recorded/dpctl.show",
				old: `^  port 0: `, text: "  masks: hit:1048576 total:161 hit/pkt:9.80\n  port 0: "}),
		of(1, "megaflow-limit", "compute2: the datapath system@ovs-system has 15998 flows, and ovs-vswitchd allows 16000",
			change{file: "recorded/upcall.show",
				old:  `\(current \d+\) \(avg \d+\) \(max \d+\) \(limit \d+\)`,
				text: "(current 15998) (avg 15204) (max 16211) (limit 16000)"}),
		of(2, "datapath-many-masks", "gateway: the datapath system@ovs-system has 96 masks, and tries 31.2 for each packet",
			change{file: "recorded/dpctl.show",
				old: `^  port 0: `, text: "  masks: hit:31200 total:96 hit/pkt:31.20\n  cache: hit:12 hit-rate:1.20%\n  caches:\n    masks-cache: size:256\n  port 0: "}),
		of(0, "megaflow-limit", "compute1: the datapath system@ovs-system has 1900 flows, and ovs-vswitchd allows 2000",
			change{file: "recorded/upcall.show",
				old:  `\(current \d+\) \(avg \d+\) \(max \d+\) \(limit \d+\)`,
				text: "(current 1900) (avg 1200) (max 1950) (limit 2000)"}),
		of(0, "bond-member-down", "compute1: 1 of 2 members of bond bond9 may not carry packets: eno2",
			change{file: "recorded/bond.show",
				text: "---- bond9 ----\nbond_mode: balance-slb\nlacp_status: off\nactive member mac: 02:00:00:12:15:58(eno1)\n\nmember eno1: enabled\n  active member\n  may_enable: true\n\nmember eno2: disabled\n  may_enable: false\n"}),
		of(1, "lacp-without-partner", "compute2: the partner of member eno2 of bond bond9 does not answer LACP",
			change{file: "recorded/lacp.show",
				text: "---- bond9 ----\n  status: active negotiated\n\nmember: eno1: current attached\n  port_id: 2\n  may_enable: true\n\nmember: eno2: defaulted detached\n  port_id: 1\n  may_enable: false\n"}),
		of(2, "bond-member-down", "gateway: no member of bond bond9 is enabled: p1, p2", change{file: "recorded/bond.show",
			text: "---- bond9 ----\nbond_mode: active-backup\nlacp_status: off\n\nslave p1: disabled\n  may_enable: false\n\nslave p2: disabled\n  may_enable: false\n"}),
		of(0, "lacp-without-partner", "compute1: the partner of member p1 of bond bond9 has stopped answering LACP",
			change{file: "recorded/lacp.show",
				text: "---- bond9 ----\n  status: active\n\nslave: p1: expired attached\n  port_id: 2\n  may_enable: false\n"}),
		of(0, "lp1839592", "compute1: libc-bin 2.27-3ubuntu1.2 has a defect",
			change{file: packages, text: "ii  libc-bin           2.27-3ubuntu1.2   amd64        GNU C Library: Binaries"}),
		of(1, "lp1927868", "compute2: neutron-common 2:16.4.0-0ubuntu2 has a defect",
			change{file: packages, text: "ii  neutron-common     2:16.4.0-0ubuntu2 all          Neutron is a virtual network service for Openstack - common"}),
		of(2, "lp1839592", "gateway: libc-bin 2.23-0ubuntu11.3 has a defect",
			change{file: packages, text: "hi  libc-bin:amd64     2.23-0ubuntu11.3  amd64        GNU C Library: Binaries"}),
		of(0, "lp1927868", "compute1: neutron-common 2:17.1.1-0ubuntu1 has a defect",
			change{file: packages, text: "ii  neutron-common     2:17.1.1-0ubuntu1 all          Neutron is a virtual network service for Openstack - common"}),
		of(0, "lp2029952", "compute1: python3-oslo.privsep 2.1.1-0ubuntu1 has a defect",
			change{file: packages, text: "ii  python3-oslo.privsep                   2.1.1-0ubuntu1                                       all          OpenStack library for privilege separation - Python 3.x"}),
		of(1, "northd-memory-leak", "compute2: ovn-central 22.03.0-0ubuntu1 has an ovn-northd that loses memory",
			change{file: packages, text: "ii  ovn-central        22.03.0-0ubuntu1  amd64        OVN central components"}),
		of(2, "lp2029952", "gateway: python3-oslo.privsep 2.7.0-0ubuntu1 has a defect",
			change{file: packages, text: "ii  python3-oslo.privsep 2.7.0-0ubuntu1   all          OpenStack library for privilege separation - Python 3.x"}),
		of(0, "northd-memory-leak", "compute1: ovn-central 22.03.2-0ubuntu0.22.04.0 has an ovn-northd that loses memory",
			change{file: packages, text: "ii  ovn-central                     22.03.2-0ubuntu0.22.04.0          amd64        OVN central components"}),
	}
}
