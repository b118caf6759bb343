package ticket_test

import (
	"strings"
	"testing"

	"ovs-offline/collect/ticket"
	"ovs-offline/test/check/expect"
)

// What dpctl/dump-flows of Open vSwitch 3.1 and conntrack 1.4.7 printed.
const (
	datapathFlow  = "recirc_id(0),in_port(1),packet_type(ns=0,id=0),eth(src=fa:16:3e:00:00:01,dst=fa:16:3e:00:00:02),eth_type(0x0800),ipv4(frag=no), packets:0, bytes:0, used:never, actions:2\n"
	namedFlow     = "ufid:841424ab-5031-4e3a-ab73-9442de08c98d, skb_priority(0/0),skb_mark(0/0),ct_state(0/0),ct_zone(0/0),ct_mark(0/0),ct_label(0/0),recirc_id(0),dp_hash(0/0),in_port(p1),packet_type(ns=0,id=0),eth(src=fa:16:3e:00:00:01,dst=fa:16:3e:00:00:02),eth_type(0x0800),ipv4(src=10.0.0.1/0.0.0.0,dst=10.0.0.2/0.0.0.0,proto=6/0,tos=0/0,ttl=64/0,frag=no),tcp(src=1000/0,dst=80/0),tcp_flags(0/0), packets:0, bytes:0, used:never, dp:ovs, actions:ct(commit,zone=5),p2\n"
	kernelLine    = "tcp      6 3999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1000 dport=80 src=10.0.0.2 dst=10.0.0.1 sport=80 dport=1000 [ASSURED] mark=3 zone=5 use=1\n"
	extendedLine  = "ipv4     2 icmp     1 3999 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=7 [UNREPLIED] src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=7 mark=0 zone=9 use=1\n"
	connection    = "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=7,dport=80),reply=(src=10.0.0.2,dst=10.0.0.1,sport=80,dport=7),zone=7\n"
	flowHeading   = "flow-dump from the main thread:\n"
	kernelHeading = "conntrack v1.4.7 (conntrack-tools): 6 flow entries have been shown.\n"
)

// TestOutputsThatTheirLinesTell checks what is found of flows of the datapath and of connections, with and without
// command lines.
func TestOutputsThatTheirLinesTell(t *testing.T) {
	const flows, connections, kernel = "dpctl.dump-flows", "dpctl.dump-conntrack", "conntrack"
	for name, c := range map[string]struct {
		text string
		want [][2]string
	}{
		"a flow alone": {datapathFlow, [][2]string{{flows, datapathFlow}}},
		"below prose": {"The datapath has:\n\n" + datapathFlow + "\nand\n\n" + namedFlow + "Why?\n",
			[][2]string{{flows, datapathFlow + namedFlow}}},
		"below the heading of a thread": {flowHeading + datapathFlow, [][2]string{{flows, datapathFlow}}},
		"in a block": {"Flows:\n```\n" + flowHeading + "  " + datapathFlow + "```\nBye\n",
			[][2]string{{flows, datapathFlow}}},
		"a command line": {"# ovs-appctl dpctl/dump-flows\n" + flowHeading + datapathFlow + "# exit\n",
			[][2]string{{flows, flowHeading + datapathFlow}}},
		"a command line, and no flow": {"# ovs-appctl dpctl/dump-flows\n" + flowHeading + "# exit\n",
			[][2]string{{flows, flowHeading}}},
		"ovs-dpctl": {"[root@n1 ~]# ovs-dpctl dump-flows -m\n" + namedFlow,
			[][2]string{{"n1 " + flows, namedFlow}}},
		"of one bridge": {"# ovs-appctl dpif/dump-flows -m br0\n" +
			strings.Replace(namedFlow, ", skb", " skb", 1),
			[][2]string{{flows + " partial", strings.Replace(namedFlow, ", skb", " skb", 1)}}},
		"wrapped by a terminal": {"# ovs-dpctl dump-flows\n" + wrapped(datapathFlow+namedFlow, 80),
			[][2]string{{flows, datapathFlow + namedFlow}}},
		"wrapped by a mail program": {"> Hello\n> " + strings.Replace(datapathFlow, "bytes:0, ", "bytes:0,\n> ", 1),
			[][2]string{{flows, datapathFlow}}},
		"marks round flows": {datapathFlow + "**" + strings.TrimSpace(datapathFlow) + "**\n-> " +
			datapathFlow + "(3) " + strings.TrimSpace(datapathFlow) + "  <--- here\n",
			[][2]string{{flows, datapathFlow + datapathFlow + datapathFlow + datapathFlow}}},
		"numbers and lists": {"1: " + datapathFlow + "2: " + datapathFlow + "\n- " + datapathFlow,
			[][2]string{{flows, datapathFlow + datapathFlow + datapathFlow}}},
		"a table of Markdown": {"| " + strings.TrimSpace(datapathFlow) + " |\n",
			[][2]string{{flows, datapathFlow}}},
		"connections with marks": {"- " + connection + "→ `" + strings.TrimSpace(connection) + "`\n",
			[][2]string{{connections, connection + connection}}},
		"more flows left out": {datapathFlow + "(20 more flows)\n",
			[][2]string{{flows + " partial", datapathFlow}}},
		"lines left out": {datapathFlow + "...\n" + datapathFlow,
			[][2]string{{flows + " partial", datapathFlow + datapathFlow}}},
		"beside OpenFlow": {"$ ovs-ofctl dump-flows br-int\n" + flows13 + "and below\n" + datapathFlow,
			[][2]string{{"dump-flows br-int OpenFlow13", flows13}, {flows, datapathFlow}}},
		"conntrack -L": {"root@n1:~# conntrack -L\n" + kernelHeading + kernelLine + "root@n1:~# ",
			[][2]string{{"n1 " + kernel, kernelLine}}},
		"conntrack -L -o extended": {"$ sudo conntrack -L -o extended,id 2>/dev/null\n" + extendedLine,
			[][2]string{{kernel, extendedLine}}},
		"conntrack -L in a terminal": {"$ conntrack -L\n" +
			wrapped(kernelLine+strings.ReplaceAll(kernelLine, "[ASSURED] ", ""), 80),
			[][2]string{{kernel, kernelLine + strings.ReplaceAll(kernelLine, "[ASSURED] ", "")}}},
		"conntrack -L in a mail": {"$ conntrack -L\n" + strings.ReplaceAll(kernelLine, " sport", "\nsport"),
			[][2]string{{kernel, kernelLine}}},
		"actions wrapped before a comma": {"$ ovs-dpctl dump-flows\n" +
			wrapped(datapathFlow[:len(datapathFlow)-2]+strings.Repeat("2", 36)+",3\n", 80) + datapathFlow,
			[][2]string{{flows, datapathFlow[:len(datapathFlow)-2] + strings.Repeat("2", 36) + ",3\n" + datapathFlow}}},
		"one zone of conntrack": {"$ conntrack -L -w 5\n" + kernelLine,
			[][2]string{{kernel + " partial", kernelLine}}},
		"conntrack -L without a command": {"I see\n" + kernelLine + extendedLine,
			[][2]string{{kernel, kernelLine + extendedLine}}},
		"/proc/net/nf_conntrack": {"$ cat /proc/net/nf_conntrack | grep zone=5\n" + extendedLine,
			[][2]string{{kernel + " partial", extendedLine}}},
		"conntrack -L in another form":  {"$ conntrack -L -o xml\n<conntrack>\n", nil},
		"connections without a command": {"The table:\n" + connection, [][2]string{{connections, connection}}},
		"connections of the datapath": {"$ ovs-appctl dpctl/dump-conntrack\n" + connection + connection,
			[][2]string{{connections, connection + connection}}},
		"a sentence about conntrack": {"I flushed conntrack and ran conntrack -L to see\nthat nothing is left.\n",
			nil},
		"a line of a log that quotes a flow": {"2026-05-07T06:44:05.386Z|00011|dpif|WARN|system@ovs-system: failed to put[create] " + datapathFlow, nil},
	} {
		expect.Equal(t, found(c.text), c.want, name)
	}
}

const flows13 = flows

// TestShownNetworks checks what is found of ovn-nbctl show and ovn-sbctl show, and what is said of them.
func TestShownNetworks(t *testing.T) {
	const (
		nb      = "switch 212f73dd-d63d-4d72-864b-a537e9afbee2 (sw0)\n    port lp1\n        addresses: [\"00:00:00:5C:12:E8 10.16.19.177\"]\n    port sw0-r0\n        type: router\n        router-port: r0-sw0\nrouter d6966c6f-f52c-4b69-a38d-daaa6eb8b23d (r0) (aka web)\n    port r0-sw0\n        mac: \"0a:00:00:00:00:fe\"\n        networks: [\"10.0.0.254/24\"]\n    nat 38d2e67a-c264-4486-ae66-2455ee932509\n        external ip: \"172.16.0.5\"\n"
		sb      = "Chassis \"33b7b40d-2efb-4232-8f63-bdff4231e10d\"\n    hostname: \"n1\"\n    Encap geneve\n        ip: \"10.0.0.4\"\n        options: {csum=\"true\"}\n    Port_Binding \"lp1\"\n"
		nbSeen  = "`ovn-nbctl show` of OVN (1 switch, 3 ports, 1 router, 1 NAT rule): it does not print whole rows: give ovn-nbctl list"
		sbSeen  = "`ovn-sbctl show` of OVN (1 chassis, 1 port binding): it does not print whole rows: give ovn-sbctl list"
		nbShown = "ovn-nbctl.show"
		sbShown = "ovn-sbctl.show"
	)
	for name, c := range map[string]struct {
		text string
		want [][2]string
		seen []string
	}{
		"both": {"```\n$ ovn-sbctl show\n" + sb + "$ ovn-nbctl show\n" + nb + "```\n",
			[][2]string{{sbShown, sb}, {nbShown, nb}}, []string{sbSeen, nbSeen}},
		"a pod":             {"[root@m ~]# kubectl -n ovn exec ovnkube-db-0 -c nb-ovsdb -- ovn-nbctl --db=ssl:[::1]:6641 show\n" + nb, [][2]string{{"m " + nbShown, nb}}, []string{nbSeen}},
		"kube-ovn's plugin": {"# kubectl ko sbctl show\n" + sb, [][2]string{{sbShown, sb}}, []string{sbSeen}},
		"without command lines": {"My network:\n\n" + nb + "\nand the chassis are\n\n" + sb + "\nThanks\n",
			[][2]string{{nbShown, nb}, {sbShown, sb}}, []string{nbSeen, sbSeen}},
		"beside flows": {"# ovn-nbctl show\n" + nb + "# ovs-ofctl -O OpenFlow13 dump-flows br-int\n" + flows,
			[][2]string{{nbShown, nb}, {"dump-flows br-int OpenFlow13", flows}}, []string{nbSeen}},
		"one switch": {"# ovn-nbctl show sw0\n" + nb, [][2]string{{nbShown, nb}}, nil},
		"an error": {"# ovn-nbctl show\novn-nbctl: unix:/var/run/ovn/ovnnb_db.sock: database connection failed ()\n", nil,
			nil},
	} {
		expect.Equal(t, found(c.text), c.want, name)
		if c.seen == nil {
			continue
		}
		read := ticket.Read(c.text)
		if len(read.Seen) != len(c.seen) {
			t.Errorf("%s: %v", name, read.Seen)
			continue
		}
		for i, seen := range read.Seen {
			if !strings.Contains(seen.String(), c.seen[i]) {
				t.Errorf("%s: %v", name, seen)
			}
		}
	}
}

// TestSummariesAreNamedForWhatTheyAre checks what is said of outputs that do not print whole rows, as ovn-nbctl 23.03
// prints them.
func TestSummariesAreNamedForWhatTheyAre(t *testing.T) {
	const (
		routes    = "IPv4 Routes\nRoute Table <main>:\n              10.9.0.0/16                  10.0.0.9 dst-ip\n                0.0.0.0/0                172.16.0.1 dst-ip ecmp\n\nIPv6 Routes\nRoute Table <main>:\n                fd00::/64                   fd01::1 dst-ip\n"
		nats      = "TYPE             GATEWAY_PORT          EXTERNAL_IP        EXTERNAL_PORT    LOGICAL_IP          EXTERNAL_MAC         LOGICAL_PORT\ndnat_and_snat                          172.16.0.6                          10.0.0.1\nsnat                                   172.16.0.5                          10.0.0.0/24\n"
		balancers = "UUID                                    LB                  PROTO      VIP              IPs\n4da4ec60-f04b-4394-b9f7-f9b090b44d51    lb0                 tcp        10.0.0.100:80    10.0.0.1:80,10.0.0.2:80\na52087f9-6e88-41c0-8c74-36a15ea4b37d    lb1                            10.0.0.101       10.0.0.2\n"
		acls      = "from-lport  1000 (ip) drop log(name=deny)\n  to-lport  1001 (outport==\"vm1\" && ip4) allow-related\n"
		qos       = "from-lport   100 (ip6) dscp=10\n  to-lport   100 (ip4) rate=1000 burst=100\n"
	)
	for name, c := range map[string]struct{ text, want string }{
		"routes":         {routes, "line 3: `ovn-nbctl lr-route-list` of OVN (3 routes)"},
		"NAT":            {nats, "line 2: `ovn-nbctl lr-nat-list` of OVN (2 NAT rules)"},
		"load balancers": {balancers, "line 2: `ovn-nbctl lb-list` of OVN (2 load balancers)"},
		"ACLs":           {acls, "line 1: `ovn-nbctl acl-list` of OVN (2 ACLs)"},
		"QoS":            {qos, "line 1: `ovn-nbctl qos-list` of OVN (2 QoS rules)"},
		"a command line": {"# ovn-nbctl --no-leader-only lr-policy-list r0\nRouting Policies\n",
			"line 1: `ovn-nbctl lr-policy-list` of OVN: it does not print whole rows"},
		"a list that is cut": {"# ovn-nbctl --no-leader-only acl-list sw0 | cut -c1-10\n" + acls,
			"line 1: `ovn-nbctl --no-leader-only acl-list sw0` of OVN: it prints some of the rows"},
		"a pod": {"$ kubectl -n ovn exec ovnkube-db-0 -c nb -- ovn-nbctl lr-policy-list r0\nRouting Policies\n",
			"line 1: `ovn-nbctl lr-policy-list` of OVN"},
		"kube-ovn's plugin": {"$ kubectl ko nbctl lr-lb-list r0\nUUID\n", "line 1: `ovn-nbctl lr-lb-list` of OVN"},
		"a quotation": {"> # ovn-nbctl lr-policy-list r0\n> Routing Policies\n",
			"line 1: `ovn-nbctl lr-policy-list` of OVN"},
		"some rows": {"# ovn-nbctl find Logical_Switch_Port name=vm1\n_uuid : 1\n",
			"line 1: `ovn-nbctl find Logical_Switch_Port name=vm1` of OVN: it is not in a form that tells rows apart"},
		"one value": {"# ovn-sbctl get Port_Binding vm1 tag\n7\n",
			"line 1: `ovn-sbctl get Port_Binding vm1 tag` of OVN: it prints some of the rows"},
		"values alone": {"# ovn-nbctl --bare list ACL\nx\n",
			"line 1: `ovn-nbctl --bare list ACL` of OVN: it is not in a form that tells rows apart"},
		"ports":             {"$ ovs-vsctl list-ports br0\np1\np2\n", "line 1: `ovs-vsctl list-ports` of Open vSwitch"},
		"addresses of text": {"10.0.0.1 is down\nfrom-lport is a word\nsnat is one, too\n", ""},
	} {
		read := ticket.Read(c.text)
		said := ""
		for _, seen := range read.Seen {
			said += seen.String() + "\n"
		}
		if strings.HasPrefix(said, c.want) && (c.want == "" || strings.Contains(said, ": give o")) &&
			strings.Count(said, "\n") == min(1, len(c.want)) && len(read.Unread) == 0 {
			continue
		}
		t.Errorf("%s: %q, unread %q", name, said, read.Unread)
	}
}
