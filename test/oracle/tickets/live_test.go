package tickets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/tickets"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// liveFlows are the flows of the small node, by bridge.
func liveFlows() map[string][]string {
	return map[string][]string{
		"br-int": {
			"cookie=0x101,table=0,priority=100,in_port=p1 actions=set_field:0x1->reg0,resubmit(,10)",
			"cookie=0x102,table=0,priority=100,in_port=p2 actions=set_field:0x2->reg0,resubmit(,10)",
			"cookie=0x103,table=0,priority=90,in_port=patch-int actions=set_field:0x9->reg0,resubmit(,20)",
			"cookie=0x104,table=0,priority=0 actions=drop",
			"cookie=0x201,table=10,priority=200,tcp,reg0=0x1,tp_dst=23 actions=drop",
			"cookie=0x202,table=10,priority=150,icmp,reg0=0x1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:03,nw_src=10.0.0.1,nw_dst=10.0.0.3 actions=group:1",
			"cookie=0x203,table=10,priority=120,ip,nw_dst=10.0.0.2 actions=resubmit(,30)",
			"cookie=0x204,table=10,priority=120,ip,nw_dst=10.0.0.1 actions=resubmit(,30)",
			"cookie=0x205,table=10,priority=110,ip,nw_dst=10.9.0.0/16 actions=set_field:0x2a->tun_id,output:vxlan1",
			"cookie=0x206,table=10,priority=100,ip,nw_dst=172.16.0.0/12 actions=set_field:02:00:00:00:00:fe->eth_src,set_field:02:00:00:00:00:ee->eth_dst,dec_ttl,output:patch-int",
			"cookie=0x207,table=10,priority=100,arp,arp_op=1 actions=FLOOD",
			"cookie=0x208,table=10,priority=90,udp,tp_dst=67 actions=CONTROLLER:65535",
			"cookie=0x209,table=10,priority=10,ipv6,ipv6_dst=fd00:1234:5678:9abc:def0:1234:5678:9abc,ipv6_src=fd00:1234:5678:9abc::/64 actions=output:p3",
			"cookie=0x301,table=20,priority=100,ip,nw_dst=10.0.0.1 actions=output:p1",
			"cookie=0x302,table=20,priority=50,ip,nw_dst=10.0.0.0/24 actions=output:p2,output:p3",
			"cookie=0x303,table=20,priority=0 actions=drop",
			"cookie=0x401,table=30,priority=100,tcp,reg0=0x1,nw_dst=10.0.0.2,tp_dst=443 actions=set_field:192.168.77.2->ip_dst,set_field:8443->tcp_dst,set_field:02:00:00:00:00:02->eth_dst,output:p2",
			"cookie=0x402,table=30,priority=90,tcp,reg0=0x1,nw_dst=10.0.0.2 actions=drop",
			"cookie=0x403,table=30,priority=10,ip,nw_dst=10.0.0.2 actions=output:p2",
			"cookie=0x404,table=30,priority=10,ip,nw_dst=10.0.0.1 actions=output:p1",
		},
		"br-ex": {
			"cookie=0x501,table=0,priority=50,tcp,in_port=patch-ex,tp_dst=25 actions=drop",
			"cookie=0x502,table=0,priority=40,ip,in_port=patch-ex,nw_dst=172.16.5.0/24 actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:eth1",
			"cookie=0x503,table=0,priority=30,ip,in_port=patch-ex,nw_dst=172.17.0.0/16 actions=LOCAL",
			"cookie=0x504,table=0,priority=20,ip,in_port=eth1,nw_dst=10.0.0.0/24 actions=output:patch-ex",
			"cookie=0x505,table=0,priority=0 actions=drop",
		},
	}
}

// livePackets are packets for the small node, and where the switch sends them according to its flows: a drop, or ports.
func livePackets() map[string]string {
	const ip = "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:03,nw_src=10.0.0.1,"
	return map[string]string{
		"br-int in_port=p1,tcp," + ip + "nw_dst=10.0.0.9,tp_src=40000,tp_dst=23,nw_ttl=64":     "drop",
		"br-int in_port=p1,icmp," + ip + "nw_dst=10.0.0.3,icmp_type=8,nw_ttl=64":               "p3",
		"br-int in_port=p1,tcp," + ip + "nw_dst=10.0.0.2,tp_src=40000,tp_dst=443,nw_ttl=64":    "p2",
		"br-int in_port=p1,tcp," + ip + "nw_dst=10.0.0.2,tp_src=40000,tp_dst=8080,nw_ttl=64":   "drop",
		"br-int in_port=p2,udp," + ip + "nw_dst=10.0.0.1,udp_src=40000,udp_dst=53,nw_ttl=64":   "p1",
		"br-int in_port=p1,udp," + ip + "nw_dst=172.16.5.9,udp_src=40000,udp_dst=53,nw_ttl=64": "eth1",
		"br-int in_port=p1,tcp," + ip + "nw_dst=172.16.5.9,tp_src=40000,tp_dst=25,nw_ttl=64":   "drop",
		"br-int in_port=p1,udp," + ip + "nw_dst=172.17.0.9,udp_src=40000,udp_dst=53,nw_ttl=64": "br-ex",
		"br-ex in_port=eth1,udp," + ip + "nw_dst=10.0.0.1,udp_src=40000,udp_dst=53,nw_ttl=64":  "p1",
		"br-int in_port=p3,udp," + ip + "nw_dst=10.0.0.1,udp_src=40000,udp_dst=53,nw_ttl=64":   "drop",
	}
}

// liveNode starts a small switch with two bridges, and records it. The ends of its packets are those of the live
// switch.
func liveNode(t *testing.T, version string) *whole {
	t.Helper()
	s := ovs.Start(t)
	s.Vsctl(strings.Fields("add-br br-int -- set bridge br-int datapath_type=dummy fail_mode=secure other-config:hwaddr=02:00:00:00:01:00" +
		" -- add-br br-ex -- set bridge br-ex datapath_type=dummy fail_mode=secure other-config:hwaddr=02:00:00:00:02:00" +
		" -- add-port br-int p1 -- set interface p1 type=dummy ofport_request=1" +
		" -- add-port br-int p2 -- set interface p2 type=dummy ofport_request=2" +
		" -- add-port br-int p3 -- set interface p3 type=dummy ofport_request=3" +
		" -- add-port br-int patch-int -- set interface patch-int type=patch options:peer=patch-ex ofport_request=4" +
		" -- add-port br-int vxlan1 -- set interface vxlan1 type=vxlan options:remote_ip=192.0.2.9 options:key=flow ofport_request=5" +
		" -- add-port br-ex eth1 -- set interface eth1 type=dummy ofport_request=1" +
		" -- add-port br-ex patch-ex -- set interface patch-ex type=patch options:peer=patch-int ofport_request=2")...)
	s.Ofctl("-O", "OpenFlow13", "add-group", "br-int", "group_id=1,type=all,bucket=actions=output:3")
	for _, bridge := range []string{"br-int", "br-ex"} {
		for _, flow := range liveFlows()[bridge] {
			s.Ofctl("-O", "OpenFlow13", "add-flow", bridge, flow)
		}
	}
	w := &whole{Node: tickets.Node{Name: "n1", Version: version}}
	w.Outputs = append(w.Outputs, tickets.Output{Kind: tickets.SwitchShow, Command: "ovs-vsctl show",
		Text: s.Vsctl("show")})
	for _, bridge := range []string{"br-int", "br-ex"} {
		for _, o := range []struct{ kind, words string }{{tickets.Show, "show"}, {tickets.Flows, "dump-flows"},
			{tickets.Groups, "dump-groups"}} {
			text := s.Ofctl("-O", version, o.words, bridge)
			w.Outputs = append(w.Outputs, tickets.Output{Kind: o.kind, Bridge: bridge,
				Command: "ovs-ofctl -O " + version + " " + o.words + " " + bridge, Text: settled(text)})
		}
		w.Outputs = append(w.Outputs, tickets.Output{Kind: tickets.FDB, Bridge: bridge,
			Command: "ovs-appctl fdb/show " + bridge, Text: s.Appctl("fdb/show", bridge)})
	}
	w.nameFlows(s.Ofctl)
	n := fidelity.Started(t, wholeWorkdir(t, s, &w.Node))
	for _, flow := range sortedKeys(livePackets()) {
		bridge, fields, _ := strings.Cut(flow, " ")
		traced := s.Appctl("ofproto/trace", "--names", bridge, fields)
		if _, actions, _ := strings.Cut(traced, "Datapath actions: "); !endsAt(strings.TrimSpace(actions),
			livePackets()[flow]) {
			t.Errorf("%s: the live switch says %q, want %s", flow, actions, livePackets()[flow])
		}
	}
	w.ask(t, n, sortedKeys(livePackets()))
	for _, p := range w.packets {
		want := livePackets()[p.flow]
		if want == "drop" && !strings.HasPrefix(p.end, "UNREACHABLE ") || want != "drop" &&
			p.end != fmt.Sprintf("REACHABLE %s %s", bridgeOf(want), want) {
			t.Errorf("%s: the replica of the whole node says %q, and the live switch %s", p.flow, p.end, want)
		}
	}
	return w
}

func bridgeOf(port string) string {
	if port == "eth1" || port == "br-ex" {
		return "br-ex"
	}
	return "br-int"
}

// endsAt reports whether the last of the datapath actions is a drop, or the output to a port.
func endsAt(actions, want string) bool {
	return actions == want || strings.HasSuffix(actions, ","+want) || strings.HasSuffix(actions, ")"+want)
}

// wholeWorkdir returns a workdir with the database and all dumps of a live switch.
func wholeWorkdir(t *testing.T, s *ovs.Switch, n *tickets.Node) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "files")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	s.Run("cp", filepath.Join(s.Dir, "conf.db"), folder)
	for _, o := range n.Outputs {
		name := strings.NewReplacer(" ", "_", "/", ".").Replace(o.Command)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(o.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(ovs.Dir(t), "whole")
	wd, err := workdir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	if _, _, err := collect.Collect(t.Context(), wd, collect.Files{Paths: []string{folder}},
		collect.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}
