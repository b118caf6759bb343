package compare_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/compare"
	"ovs-offline/test/check/sweep"
)

// change is something that an administrator does, and the only line that reports it.
type change struct {
	nb   string       // commands of ovn-nbctl
	do   func(l *lab) // anything else
	want string
	// alone is true for the changes that make test makes alone: of each kind of object whose flows are found in a way of
	// their own.
	alone bool
}

// changes returns the changes of the test. No two of them are about one object.
func changes() []change {
	return []change{
		{nb: `ls-add red`, want: "added: switch red"},
		{alone: true, nb: `lsp-add blue vm6 -- lsp-set-addresses vm6 "02:00:00:00:00:06 10.0.1.6"`,
			want: "added: port vm6 (switch blue)"},
		{nb: `lsp-del vm5`, want: "gone: port vm5 (switch green)"},
		{alone: true, nb: `lsp-set-addresses vm4 "02:00:00:00:00:04 10.0.2.44"`,
			want: "changed: port vm4 (switch green): addresses 02:00:00:00:00:04 10.0.2.4 -> 02:00:00:00:00:04 10.0.2.44"},
		{nb: `lsp-set-port-security vm3 "02:00:00:00:00:03 10.0.1.3"`,
			want: "changed: port vm3 (switch blue): port_security none -> 02:00:00:00:00:03 10.0.1.3"},
		{nb: `lsp-set-enabled vm2 disabled`, want: "changed: port vm2 (switch blue): enabled none -> false"},
		{nb: `lr-add edge`, want: "added: router edge"},
		{nb: `lrp-add main main-red 02:00:00:00:01:04 10.0.4.254/24`, want: "added: router port main-red (router main)"},
		{nb: `set Logical_Router_Port main-green networks=10.0.2.253/24`,
			want: "changed: router port main-green (router main): networks 10.0.2.254/24 -> 10.0.2.253/24"},
		{alone: true, nb: `lrp-set-gateway-chassis main-public compute1-id 5`,
			want: "changed: router port main-public (router main): gateway_chassis -compute1-id 20 +compute1-id 5"},
		{alone: true, nb: `acl-add web to-lport 1005 "outport == @web && udp.dst == 53" allow`,
			want: "added: ACL of port group web (priority 1005, allow), to-lport: outport == @web && udp.dst == 53"},
		{nb: `acl-del db to-lport 1003 "outport == @db && ip4.src == $admins && tcp.dst == {5432, 5433}"`,
			want: "gone: ACL of port group db (priority 1003, allow-related), to-lport: outport == @db && ip4.src == $admins && tcp.dst == {5432, 5433}"},
		{do: func(l *lab) {
			l.central.Nbctl("set", "ACL", l.find("ACL", "priority=1002"), "action=reject")
		}, want: "changed: ACL of port group web (priority 1002, reject), to-lport: outport == @web && tcp.dst == 22: action drop -> reject"},
		{nb: `pg-add mail`, want: "added: port group mail"},
		{nb: `pg-set-ports web vm1`, want: "changed: port group web: ports -vm3"},
		{alone: true, nb: `add Address_Set clients addresses 10.0.1.9`,
			want: "changed: address set clients: addresses +10.0.1.9"},
		{nb: `destroy Address_Set admins`, want: "gone: address set admins"},
		{nb: `create Address_Set name=guests addresses=10.5.0.1`, want: "added: address set guests"},
		{nb: `lb-add cache 10.0.1.102:80 10.0.1.1:8081 -- ls-lb-add blue cache`, want: "added: load balancer cache"},
		{alone: true, do: func(l *lab) {
			l.central.Nbctl("set", "Load_Balancer", l.find("Load_Balancer", "name=service"),
				`vips:"10.0.1.100:80"="10.0.1.1:8080"`)
		}, want: "changed: load balancer service: vips:10.0.1.100:80 10.0.1.1:8080,10.0.1.3:8080 -> 10.0.1.1:8080"},
		{nb: `lb-del idle`, want: "gone: load balancer idle"},
		{nb: `set Load_Balancer moved name=renamed`, want: "changed: load balancer renamed: name moved -> renamed"},
		{alone: true, nb: `acl-add green from-lport 900 "ip4.dst == 10.0.9.9" drop`,
			want: "added: ACL (priority 900, drop), from-lport: ip4.dst == 10.0.9.9 (switch green)"},
		{alone: true, nb: `lr-nat-add main dnat_and_snat 172.16.0.13 10.0.1.3`,
			want: "added: floating ip 172.16.0.13 for 10.0.1.3 (router main)"},
		{nb: `lr-nat-del main dnat_and_snat 172.16.0.12`, want: "gone: floating ip 172.16.0.12 for 10.0.1.2 (router main)"},
		{do: func(l *lab) {
			l.central.Nbctl("set", "NAT", l.find("NAT", "external_ip=172.16.0.254"), "logical_ip=10.0.0.0/16")
		}, want: "changed: snat 172.16.0.254 for 10.0.0.0/16 (router main): logical_ip 10.0.1.0/24 -> 10.0.0.0/16"},
		{alone: true, nb: `lr-route-add main 10.97.0.0/16 172.16.0.1`,
			want: "added: route 10.97.0.0/16 via 172.16.0.1 (router main)"},
		{nb: `lr-route-del main 10.98.0.0/16`, want: "gone: route 10.98.0.0/16 via 172.16.0.1 (router main)"},
		{do: func(l *lab) {
			l.central.Nbctl("set", "Logical_Router_Static_Route",
				l.find("Logical_Router_Static_Route", "ip_prefix=10.99.0.0/16"), "nexthop=172.16.0.2")
		}, want: "changed: route 10.99.0.0/16 via 172.16.0.2 (router main): nexthop 172.16.0.1 -> 172.16.0.2"},
		{alone: true, nb: `lr-policy-add main 102 "ip4.src == 10.0.1.9" drop`,
			want: "added: policy route priority 102: ip4.src == 10.0.1.9, drop (router main)"},
		{nb: `lr-policy-del main 101`, want: "gone: policy route priority 101: ip4.src == 10.0.1.8, drop (router main)"},
		{do: func(l *lab) {
			l.central.Nbctl("set", "Logical_Router_Policy", l.find("Logical_Router_Policy", "priority=100"), "action=allow")
		}, want: "changed: policy route priority 100: ip4.src == 10.0.1.7, allow (router main): action drop -> allow"},
		{alone: true, nb: `qos-add blue to-lport 102 "outport == \"vm3\"" dscp=12`,
			want: `added: QoS rule (priority 102, outport == "vm3") (switch blue)`},
		{nb: `qos-del blue to-lport 101 "outport == \"vm2\""`,
			want: `gone: QoS rule (priority 101, outport == "vm2") (switch blue)`},
		{do: func(l *lab) { l.central.Nbctl("set", "QoS", l.find("QoS", "priority=100"), "bandwidth:rate=2000") },
			want: `changed: QoS rule (priority 100, outport == "vm1") (switch blue): bandwidth:rate 1000 -> 2000`},
		{alone: true, do: func(l *lab) {
			l.central.Nbctl("set", "DHCP_Options", l.find("DHCP_Options", "cidr=10.0.1.0/24"), "options:lease_time=7200")
		}, want: "changed: DHCP options of 10.0.1.0/24: options:lease_time 3600 -> 7200"},
		{do: func(l *lab) {
			l.central.Nbctl("set", "DNS", strings.TrimSpace(l.central.Nbctl("--bare", "--columns=_uuid", "list", "DNS")),
				"records:vm1=10.0.1.2")
		}, want: "changed: DNS records vm1=10.0.1.2: records:vm1 10.0.1.1 -> 10.0.1.2"},
		{do: func(l *lab) { l.central.Nbctl("set", "Meter_Band", l.find("Meter_Band", "rate=100"), "rate=200") },
			want: "changed: meter slow: bands drop 100 10 -> drop 200 10"},
		{nb: `meter-del fast`, want: "gone: meter fast"},
		{alone: true, nb: `set NB_Global . options:lsp_learn_fdb=true`,
			want: "changed: settings of OVN: options:lsp_learn_fdb none -> true"},
		{do: func(l *lab) {
			abilities := l.central.Sbctl("get", "Chassis", "compute1-id", "other_config") // northd uses what all chassis can do
			l.central.Sbctl("chassis-add", "compute9-id", "geneve", "192.168.0.9", "--", "set", "Chassis", "compute9-id",
				"other_config="+strings.TrimSpace(abilities))
		}, want: "added: chassis compute9-id"},
		{alone: true, do: func(l *lab) {
			l.nodes["compute2"].Vsctl("del-port", "tap-vm7")
			l.plug("compute1", "vm7")
			l.settle("vm7")
		}, want: "changed: port vm7 (switch green): chassis compute2 -> compute1"},
		{do: func(l *lab) {
			l.nodes["compute2"].Vsctl("del-port", "tap-vm8")
			l.central.Nbctl("wait-until", "Logical_Switch_Port", "vm8", "up=false")
		}, want: "changed: port vm8 (switch green): up true -> false; chassis compute2 -> none"},
		{alone: true, do: func(l *lab) {
			datapath := l.central.Sbctl("--bare", "--columns=datapath", "find", "Port_Binding", "logical_port=main-public")
			l.central.Sbctl("create", "MAC_Binding", "logical_port=main-public", "ip=172.16.0.1", `mac="02:00:00:00:09:01"`,
				"datapath="+strings.TrimSpace(datapath), "timestamp=1")
		}, want: "added: learned MAC address main-public 172.16.0.1"},
		{do: func(l *lab) { l.nodes["compute1"].Vsctl("add-br", "br-new") },
			want: "added: bridge br-new of node compute1: with 1 OVS port; with 1 interface"},
		{do: func(l *lab) { l.nodes["compute1"].Vsctl("add-port", "br-ex", "eth2") },
			want: "added: OVS port eth2 (bridge br-ex) of node compute1: with 1 interface"},
		{do: func(l *lab) { l.nodes["compute2"].Vsctl("set", "Interface", "eth1", "ingress_policing_rate=5000") },
			want: "changed: interface eth1 of node compute2: ingress_policing_rate none -> 5000"},
		{do: func(l *lab) { l.nodes["compute2"].Vsctl("set", "Open_vSwitch", ".", "other_config:max-idle=20000") },
			want: "changed: settings of Open vSwitch of node compute2: other_config:max-idle none -> 20000"},
		{do: func(l *lab) { l.nodes["compute1"].Appctl("netdev-dummy/set-admin-state", "eth1", "down") },
			want: "changed: interface eth1 of node compute1: admin_state up -> down; link_state up -> down"},
		{alone: true, do: func(l *lab) { l.nodes["compute2"].Ofctl("add-flow", "br-ex", "priority=7,udp,actions=drop") },
			want: "added: flow of br-ex, table 0 of node compute2: table=0,priority=7,udp; actions drop"},
	}
}

// TestEachChangeIsReportedOnce makes all changes between two captures. Each is one line of
// the comparison, and there are no others.
func TestEachChangeIsReportedOnce(t *testing.T) {
	l := newLab(t)
	before := l.capture()
	var want []string
	for _, c := range changes() {
		if l.nb(c.nb); c.do != nil {
			c.do(l)
		}
		want = append(want, c.want)
	}
	l.settle()
	c := compared(t, before, l.capture())
	if len(want) < 40 {
		t.Errorf("only %d changes", len(want))
	}
	expectLines(t, c, want...)
}

// expectLines fails the test unless a comparison has exactly these lines.
func expectLines(t *testing.T, c *compare.Comparison, want ...string) {
	t.Helper()
	ok := len(c.Missing) == 0
	for _, f := range c.Findings {
		line := f.Line()
		if i := slices.Index(want, line); i >= 0 {
			want = slices.Delete(slices.Clone(want), i, i+1)
		} else {
			ok = false
			t.Errorf("reported: %s", line)
		}
	}
	for _, line := range want {
		ok = false
		t.Errorf("not reported: %s", line)
	}
	if !ok {
		t.Error("that is not what differs")
		show(t, c)
	}
}

// TestEachChangeAlone makes one change after the other, in a sweep all of them, and compares the captures before and
// after each: all flows that differ are counted with the change. TestEachChangeIsReportedOnce has the lines of all.
func TestEachChangeAlone(t *testing.T) {
	l := newLab(t)
	before := l.capture()
	for _, c := range sweep.Rows(changes(), func(c change) bool { return c.alone }) {
		if l.nb(c.nb); c.do != nil {
			c.do(l)
		}
		l.settle()
		after := l.capture()
		t.Run(c.want, func(t *testing.T) { expectLines(t, compared(t, before, after), c.want) })
		before = after
	}
}

// TestFlowsThatNothingExplainsAreListed removes, changes and adds flows behind the back of
// ovn-controller, beside a change of the logical network.
func TestFlowsThatNothingExplainsAreListed(t *testing.T) {
	l := newLab(t)
	before := l.capture()
	s := l.nodes["compute1"]
	lookup := func(mac string) string { // a flow that sends to a port, as a strict match
		for line := range strings.Lines(s.Ofctl("--no-stats", "dump-flows", "br-int", "dl_dst="+mac)) {
			match, actions, _ := strings.Cut(strings.TrimSpace(line), " actions=")
			if strings.Contains(actions, "REG15") && strings.Contains(match, "priority=50") {
				return strings.TrimSpace(match[strings.Index(match, "table="):])
			}
		}
		t.Fatal("no flow to ", mac)
		return ""
	}
	gone, changed := lookup("02:00:00:00:00:02"), lookup("02:00:00:00:00:03")
	s.Ofctl("--strict", "del-flows", "br-int", strings.ReplaceAll(gone, ", ", ","))
	s.Ofctl("--strict", "mod-flows", "br-int", strings.ReplaceAll(changed, ", ", ",")+",actions=drop")
	s.Ofctl("add-flow", "br-int", "table=0,priority=200,tcp,tp_dst=4444,actions=drop")
	l.nb("ls-add red\nacl-add web to-lport 1005 \"outport == @web && udp.dst == 53\" allow")
	l.settle()
	c := compared(t, before, l.capture())
	var titles []string
	for _, f := range c.Findings {
		titles = append(titles, f.Title())
	}
	want := []string{
		"added: switch red", "added: ACL of port group web (priority 1005, allow), to-lport: outport == @web && udp.dst == 53",
		"added: flow of br-int, input: from physical to logical of node compute1",
		"gone: flow of br-int, ls_in_l2_lkup: port vm2 of node compute1",
		"changed: flow of br-int, ls_in_l2_lkup: port vm3 of node compute1",
	}
	if !slices.Equal(titles, want) {
		t.Errorf("%q", titles)
		show(t, c)
	}
}

// find returns the UUID of the northbound row with a value.
func (l *lab) find(table, value string) string {
	l.tb.Helper()
	return strings.TrimSpace(l.central.Nbctl("--bare", "--columns=_uuid", "find", table, value))
}

// TestSettingInMatches changes a setting that logical flows name like an address set.
func TestSettingInMatches(t *testing.T) {
	l := newLab(t)
	before := l.capture()
	l.nb(`set NB_Global . options:svc_monitor_mac=\"02:00:00:00:00:99\"`)
	l.settle()
	c := compared(t, before, l.capture())
	if len(c.Findings) != 1 || c.Findings[0].Kind != "OVN settings" || c.Findings[0].Flows == nil {
		t.Error("not one change with flows")
		show(t, c)
	}
}
