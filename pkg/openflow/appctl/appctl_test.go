package appctl

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/packet"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

// The texts were printed by OVS 3.1.

const bondText = `---- ab ----
bond_mode: active-backup
bond may use recirculation: no, Recirc-ID : -1
bond-hash-basis: 0
lacp_status: off
active-backup primary: <none>
active member mac: aa:55:aa:55:00:0e(ab-1)

member ab-1: enabled
  active member
  may_enable: true
  hash 12: 3 kB load
  hash 300: 3 kB load

member ab-2: disabled
  may_enable: false

---- lag ----
bond_mode: balance-tcp
lacp_status: negotiated
active member mac: 00:00:00:00:00:00(none)

slave lag-1: enabled
  active slave
  may_enable: true
`

func TestBonds(t *testing.T) {
	want := []Bond{
		{Name: "ab", Mode: "active-backup", LACP: "off", Active: "ab-1", Members: map[string]BondMember{
			"ab-1": {Enabled: true, MayEnable: true, Hashes: []int{12}}, "ab-2": {Blocked: true}}},
		{Name: "lag", Mode: "balance-tcp", LACP: "negotiated", Active: "lag-1", Members: map[string]BondMember{
			"lag-1": {Enabled: true, MayEnable: true}}},
	}
	if have := slices.Collect(Bonds("a line before\n" + bondText)); !reflect.DeepEqual(have, want) {
		t.Errorf("%+v\nwant %+v", have, want)
	}
	if have := slices.Collect(Bonds(bondText + "\nmember lag-1: disabled\n"))[1]; have.Members["lag-1"].Enabled {
		t.Error("the last line on a member does not count")
	}
}

const lacpText = `---- lag ----
  status: active negotiated
  sys_id: 12:f0:75:51:0f:41
  sys_priority: 65534
  aggregation key: 4
  lacp_time: slow

member: lag-1: current attached
  port_id: 4
  port_priority: 65535
  may_enable: true

  actor sys_id: 12:f0:75:51:0f:41
  actor port_id: 4
  actor state: activity aggregation synchronized collecting distributing

  partner sys_id: 02:aa:00:00:00:02
  partner sys_priority: 77
  partner port_id: 9
  partner port_priority: 65535
  partner key: 3
  partner state: activity timeout aggregation
`

func TestLACPs(t *testing.T) {
	want := []LACP{{Name: "lag", Negotiated: true,
		Members: map[string]LACPMember{"lag-1": {Status: "current", Attached: true, MayEnable: true,
			Partner: packet.LACPInfo{SystemPriority: 77, System: packet.MAC{2, 0xaa, 0, 0, 0, 2}, Key: 3, PortPriority: 65535,
				Port: 9, State: 7}}}}}
	if have := slices.Collect(LACPs(lacpText)); !reflect.DeepEqual(have, want) {
		t.Errorf("%+v\nwant %+v", have, want)
	}
}

const rstpText = `---- rstp ----
Root ID:
  stp-priority    4096
  stp-system-id   82:b1:26:83:b7:4d
  stp-hello-time  1s
  stp-max-age     6s
  stp-fwd-delay   4s

Bridge ID:
  stp-priority    32768
  stp-hello-time  2s

  Interface  Role       State      Cost     Pri.Nbr 
  ---------- ---------- ---------- -------- -------
  p2         Designated Discarding 2000     128.1
  a b        Root       Forwarding 2000     128.2
`

func TestSpanningTrees(t *testing.T) {
	want := []Tree{{Bridge: "rstp", Times: packet.TreeTimes{MaxAge: 6, Hello: 1, ForwardDelay: 4},
		Ports: []TreePort{{"p2", "designated", "discarding"}, {"a b", "root", "forwarding"}}}}
	if have := slices.Collect(SpanningTrees(rstpText)); !reflect.DeepEqual(have, want) {
		t.Errorf("%+v\nwant %+v", have, want)
	}
}

const mdbText = ` port  VLAN  GROUP                Age
    2  4095  querier              1
    1     0  224.1.2.3            12
LOCAL     7  IGMPv2  ff05::1      12
    1  5000  224.1.2.3            12
`

func TestMulticastGroups(t *testing.T) {
	want := []MulticastEntry{{"1", 0, netip.MustParseAddr("224.1.2.3")}, {"LOCAL", 7, netip.MustParseAddr("ff05::1")},
		{Port: "2", VLAN: 4095}}
	if have := MulticastGroups(mdbText); !slices.Equal(have, want) {
		t.Errorf("%v\nwant %v", have, want)
	}
}

const dpifText = `system@ovs-system: hit:0 missed:0
  br0:
    b 3/4: (system)
    p2 1/none: (patch: peer=p1)
    br0 65534/3: (dummy-internal)
    v 2/4789: (vxlan: remote_ip=10.0.0.2)
`

func TestBridgePorts(t *testing.T) {
	want := []BridgePort{{"br0", "b", 3, "4", "system"}, {"br0", "p2", 1, "none", "patch"},
		{"br0", "br0", 65534, "3", "dummy-internal"}, {"br0", "v", 2, "4789", "vxlan"}}
	if have := slices.Collect(BridgePorts(dpifText)); !slices.Equal(have, want) {
		t.Errorf("%v\nwant %v", have, want)
	}
}

func TestDatapathPorts(t *testing.T) {
	const text = "system@ovs-system:\n  lookups: hit:0 missed:0 lost:0\n  port 0: ovs-system (dummy-internal)\n  port 2: a\n"
	want := []DatapathPort{{"ovs-system", "ovs-system", "0"}, {"ovs-system", "a", "2"}}
	if have := slices.Collect(DatapathPorts(text)); !slices.Equal(have, want) {
		t.Errorf("%v\nwant %v", have, want)
	}
}

func TestLearnedMACs(t *testing.T) {
	const text = " port  VLAN  MAC                Age\n    1     0  62:13:17:08:64:7f   13\nLOCAL    20  02:00:00:00:00:fe   11\n"
	want := []LearnedMAC{{"1", "0", "62:13:17:08:64:7f"}, {"LOCAL", "20", "02:00:00:00:00:fe"}}
	if have := slices.Collect(LearnedMACs(text)); !slices.Equal(have, want) {
		t.Errorf("%v\nwant %v", have, want)
	}
}

func TestSessions(t *testing.T) {
	bfd := BFDSessions("---- c ----\n  Forwarding: false\n  Local Session State: down\n---- d ----\n  Forwarding: true\n")
	expect.Equal(t, bfd, map[string]string{"c": "false", "d": "true"})
	cfm := CFMMonitors("---- c ----\nMPID 1:\n  average health: undefined\n---- d ----\nfault: recv \n")
	expect.Equal(t, cfm, map[string]string{"c": "false", "d": "true"})
}

func TestFeatures(t *testing.T) {
	if have := Features("Tunnel push pop: No\nUfid: Yes\nMax dp_hash algorithm: 0\n"); !maps.Equal(have,
		map[string]string{"Tunnel push pop": "false", "Ufid": "true", "Max dp_hash algorithm": "0"}) {
		t.Error(have)
	}
	have := SettableFeatures("max_hash_alg (Max dp_hash algorithm) : [run time]:1, [boot time]:1\n")
	if !maps.Equal(have, map[string]SettableFeature{"Max dp_hash algorithm": {"max_hash_alg", "1"}}) {
		t.Error(have)
	}
}

func TestRoutes(t *testing.T) {
	const text = `Route Table:
Cached: 172.18.0.2/32 dev breth0 SRC 172.18.0.2 local
User: 10.2.0.0/16 MARK 5 dev br-phy GW 10.1.0.9 SRC 10.1.0.1
Cached: ::1 dev lo
`
	want := []Route{
		{To: netip.MustParsePrefix("172.18.0.2/32"), Device: "breth0", Source: netip.MustParseAddr("172.18.0.2"),
			Local: true},
		{To: netip.MustParsePrefix("10.2.0.0/16"), Mark: "5", Device: "br-phy", Gateway: "10.1.0.9",
			Source: netip.MustParseAddr("10.1.0.1")},
		{To: netip.MustParsePrefix("::1/128"), Device: "lo"},
	}
	if have := Routes(text); !slices.Equal(have, want) {
		t.Errorf("%v\nwant %v", have, want)
	}
}

func TestTunnels(t *testing.T) {
	const text = "IP                                            MAC                 Bridge\n=====\n10.1.0.2                                      52:54:00:00:01:02   br-phy\n"
	if have := Neighbours(text); !slices.Equal(have, []Neighbour{{"10.1.0.2", "52:54:00:00:01:02", "br-phy"}}) {
		t.Error(have)
	}
	ports := TunnelPorts("Listening ports:\ngenev_sys_6081 (6081) ref_cnt=1\n  vxlan_sys_4789 (4789) : eth_type(0x0800)\n")
	expect.Equal(t, ports, []string{"genev_sys_6081 ref_cnt=1", "vxlan_sys_4789 : eth_type(0x0800)"})
	// As OVS 4.0 prints it with -v, for two addresses.
	ports = TunnelPorts("Listening ports:\ngenev_sys_6081 (4) : eth(dst=9a:33:00:b1:39:2f),eth_type(0x86dd),ipv6(dst=fd69::2,proto=17,frag=no),udp(dst=6081)\ngenev_sys_6081 (4) : eth(dst=9a:33:00:b1:39:2f),eth_type(0x0800),ipv4(dst=172.18.0.2,proto=17,frag=no),udp(dst=6081)\n")
	expect.Equal(t, ports, []string{"genev_sys_6081 : udp(dst=6081)"})
}

// TestCaptures checks that every line of the tables in the captures becomes an entry.
func TestCaptures(t *testing.T) {
	lines := func(pattern string, entry func(line string) bool, count func(text string) int) {
		captures.Captured(t, pattern, 1<<20, func(content []byte) {
			want := 0
			for line := range strings.Lines(string(content)) {
				if entry(line) {
					want++
				}
			}
			if have := count(string(content)); have != want {
				t.Errorf("%s: %d entries are read of %d", pattern, have, want)
			}
		})
	}
	has := func(word string) func(string) bool {
		return func(line string) bool { return strings.Contains(line, word) }
	}
	lines("*fdb.show*", has(":"), func(text string) int { return len(slices.Collect(LearnedMACs(text))) })
	lines("*route.show*", has(" dev "), func(text string) int { return len(Routes(text)) })
	lines("*bfd.show*", has("---- "), func(text string) int { return len(BFDSessions(text)) })
	lines("*dpctl.show*", has("  port "), func(text string) int { return len(slices.Collect(DatapathPorts(text))) })
	lines("*dp-features*", has(": "), func(text string) int { return len(Features(text)) })
}

// TestNamesWithBlanks checks that the ports of dpif/show and dpctl/show have their whole names.
func TestNamesWithBlanks(t *testing.T) {
	for p := range BridgePorts("system@ovs-system: hit:0 missed:0\n  br-int:\n    tap of vm 1 9/3: (system)\n") {
		if p.Name != "tap of vm 1" || p.OpenFlow != 9 || p.Datapath != "3" {
			t.Errorf("got %+v, want the port \"tap of vm 1\"", p)
		}
	}
	broken := "system@ovs-system: hit:0 missed:0\n  br-int:\n    tap\n\nof vm 1 9/3: (system)\n    tap 10/4: (system)\n"
	want := []BridgePort{{"br-int", "tap\n\nof vm 1", 9, "3", "system"}, {"br-int", "tap", 10, "4", "system"}}
	if have := slices.Collect(BridgePorts(broken)); !slices.Equal(have, want) {
		t.Errorf("got %+v, want %+v", have, want)
	}
	for p := range DatapathPorts("system@ovs-system:\n  port 3: tap of vm 1\n") {
		if p.Name != "tap of vm 1" || p.Number != "3" {
			t.Errorf("got %+v, want the port \"tap of vm 1\"", p)
		}
	}
}
