package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestPastedTextsAreReadToTheirEnd checks what is taken of texts whose outputs stand far below their beginning, beside
// lines of logs or more than once, and what is named as lost.
func TestPastedTextsAreReadToTheirEnd(t *testing.T) {
	const (
		dump  = "[root@n1 ~]# ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=output:2\n"
		later = "[root@n1 ~]# ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=drop\n"
		part  = "[root@n1 ~]# ovs-ofctl dump-flows br1 table=0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=drop\n"
		log   = "2026-05-07T06:44:05.386Z|00011|bridge|INFO|bridge br0: added interface eth0 on port 1\n"
		reply = "NXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=drop\n"
	)
	prose := strings.Repeat("The pods can not reach the service, and this is a line of words.\n", 100)
	for name, c := range map[string]struct{ file, text, flows, says string }{
		"prose above":           {"a.md", prose + dump, "output:2", ""},
		"prose above in a .rst": {"a.rst", prose + dump, "output:2", ""},
		"an AsciiDoc":           {"a.adoc", "= Flows\n\n----\n" + dump + "----\n", "output:2", ""},
		"an mbox": {"a.mbox",
			"From x\n\n> " + strings.ReplaceAll(strings.TrimSpace(dump), "\n", "\n> ") + "\n", "output:2", ""},
		"org":          {"a.org", "* Flows\n#+begin_example\n" + dump + "#+end_example\n", "output:2", ""},
		"no extension": {"ticket", prose + dump, "output:2", ""},
		"a log above":  {"a.txt", log + "\n" + dump, "output:2", ""},
		"a log below":  {"a.txt", dump + "and the log:\n\n" + log, "output:2", ""},
		"twice": {"a.md", dump + later, "actions=drop",
			"line 4: the last of 2 outputs of one command, which is used"},
		"a part": {"a.md", dump + part, "output:2",
			"line 4: the output of ovs-ofctl dump-flows is not whole, and what is not there may decide: it is limited to: table=0"},
		"UTF-16": {"a.txt", string(utf16LE(prose + dump)), "output:2", ""},
		"a reply in UTF-16": {"br0.txt", string(utf16LE(strings.Replace(reply, "drop", "output:2", 1))), "output:2",
			""},
		"replies without commands": {"br0.txt", reply + strings.Replace(reply, "drop", "output:2", 1), "output:2",
			"replies without command lines"},
	} {
		nodes, found, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{c.file: c.text}), c.file))
		if err != nil || len(nodes) != 1 {
			t.Errorf("%s: %v %v", name, nodes, err)
			continue
		}
		flows, err := os.ReadFile(filepath.Join(dir, "restore_flows", "br0.flows.dump"))
		if err != nil || !strings.Contains(string(flows), c.flows) {
			t.Errorf("%s: %v: %s", name, err, flows)
		}
		said := strings.Join(found.Lost, "\n")
		for _, node := range nodes {
			for _, collection := range node.Collections {
				said += strings.Join(collection.Remarks, "\n")
			}
			if hasLog := strings.Contains(node.kinds(), "host"); hasLog != strings.Contains(c.text, log) {
				t.Errorf("%s: %s", name, node.kinds())
			}
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: nothing says %q: %s", name, c.says, said)
		}
	}
}

// TestOutputsOfWhichNothingCanBeMadeAreNamed checks the error for them, in files of any name.
func TestOutputsOfWhichNothingCanBeMadeAreNamed(t *testing.T) {
	acls := "from-lport  1000 (ip) drop log(name=deny)\n  to-lport  1001 (outport==\"vm1\" && ip4) allow-related\n"
	for file, text := range map[string]string{"a.md": strings.Repeat("A line of words.\n", 400) + acls, "acls.txt": acls,
		"acls.data": acls, "acls": acls} {
		_, _, _, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{file: text}), file))
		if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(),
			"`ovn-nbctl acl-list` of OVN (2 ACLs): it does not print whole rows: give ovn-nbctl list ACL") ||
			strings.Contains(err.Error(), "archive") {
			t.Errorf("%s: %v", file, err)
		}
	}
	_, _, _, err := takeFiles(t, Options{},
		filepath.Join(folder(t, map[string]string{"a.md": "$ ovn-nbctl get-ssl\nNo\n"}), "a.md"))
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "nothing uses the outputs of ovn-nbctl get-ssl") {
		t.Error(err)
	}
}

// TestTooLongTextIsNamed checks the error for a text whose outputs stand behind more than is read of a text.
func TestTooLongTextIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 65 MiB")
	}
	text := strings.Repeat("The pods can not reach the service, and this is a line of words.\n", 1<<20) +
		"$ ovs-ofctl show br0\n"
	_, _, _, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": text}), "a.md"))
	if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "nothing uses a.md, which is longer than 64 MiB") {
		t.Error(err)
	}
}

// utf16LE returns a text as PowerShell writes it into a file.
func utf16LE(text string) []byte {
	all := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
		all = append(all, byte(unit), byte(unit>>8))
	}
	return all
}

// TestShownNetworksAreKept checks that outputs of show are kept with what they have, and that nothing is made of them.
func TestShownNetworksAreKept(t *testing.T) {
	const shown = "switch 212f73dd-d63d-4d72-864b-a537e9afbee2 (sw0)\n    port lp1\n        addresses: [\"00:00:00:5C:12:E8 10.16.19.177\"]\n"
	for name, text := range map[string]string{"a command": "$ ovn-nbctl show\n" + shown,
		"lines alone": "It is\n\n" + shown, "a pod": "# kubectl exec db-0 -- ovn-nbctl show\n" + shown} {
		nodes, found, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": text}), "a.md"))
		got, _ := os.ReadFile(filepath.Join(dir, "host", "ovn-nbctl.show"))
		kinds := ""
		for _, node := range nodes {
			kinds += node.kinds()
		}
		if err != nil || string(got) != shown || kinds != "host" || len(found.Remarks) != 1 ||
			!strings.Contains(found.Remarks[0], "(1 switch, 1 port): it does not print whole rows: give ovn-nbctl list") {
			t.Errorf("%s: %v %q %v", name, err, got, found)
		}
	}
}

// TestPortsOfABridgeAreTakenFromATicket checks which output is kept as what ovs-ofctl show prints of a bridge, and
// that counters are kept.
func TestPortsOfABridgeAreTakenFromATicket(t *testing.T) {
	const (
		dump  = "[root@n1 ~]# ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=output:2\n"
		ports = " 1(p1): addr:aa:55:aa:55:00:0f\n     config:     0\n     state:      LIVE\n     speed: 0 Mbps now, 0 Mbps max\n LOCAL(br0): addr:5a:0c:99:ff:b3:49\n     config:     PORT_DOWN\n     state:      LINK_DOWN\n     speed: 0 Mbps now, 0 Mbps max\n"
		desc  = "OFPST_PORT_DESC reply (OF1.4) (xid=0x2):\n" + ports
		show  = "OFPT_FEATURES_REPLY (xid=0x2): dpid:00005a0c99ffb349\nn_tables:254, n_buffers:0\n" + ports
		stats = "OFPST_PORT reply (OF1.3) (xid=0x2): 1 ports\n  port LOCAL: rx pkts=0, bytes=0, drop=?, errs=?, frame=?, over=?, crc=?\n           tx pkts=0, bytes=0, drop=?, errs=?, coll=?\n           duration=0.275s\n"
		table = "OFPST_TABLE reply (OF1.3) (xid=0x2):\n  table 0:\n    active=1, lookup=0, matched=0\n\n  tables 1...253: ditto\n"
	)
	for name, c := range map[string]struct{ text, file, want string }{
		"descriptions":  {dump + "[root@n1 ~]# ovs-ofctl -O OpenFlow14 dump-ports-desc br0\n" + desc, "show", desc},
		"in a sentence": {dump + "\nThis is the output of ovs-ofctl dump-ports-desc br0:\n\n" + desc, "show", desc},
		"beside ovs-ofctl show": {dump + "[root@n1 ~]# ovs-ofctl dump-ports-desc br0\n" + desc +
			"[root@n1 ~]# ovs-ofctl show br0\n" + show, "show", show},
		"before ovs-ofctl show": {dump + "[root@n1 ~]# ovs-ofctl show br0\n" + show +
			"[root@n1 ~]# ovs-ofctl dump-ports-desc br0\n" + desc, "show", show},
		"of another bridge": {dump + "[root@n1 ~]# ovs-ofctl dump-ports-desc br1\n" + desc, "show", ""},
		"counters":          {dump + "[root@n1 ~]# ovs-ofctl -OOpenFlow13 dump-ports br0\n" + stats, "dump-ports", stats},
		"tables": {dump + "[root@n1 ~]# ovs-ofctl -O OpenFlow13 dump-tables br0\n" + table + "[root@n1 ~]# \n",
			"dump-tables", table},
		"counters without rows": {dump + "[root@n1 ~]# ovs-ofctl dump-ports br0\novs-ofctl: br0 is not a bridge or a socket\n", "dump-ports", ""},
	} {
		_, _, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": c.text}), "a.md"))
		got, _ := os.ReadFile(filepath.Join(dir, "recorded", "bridges", "br0", c.file))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v: %q", name, err, got)
		}
	}
}

// TestStateOfADatapathIsTakenFromATicket checks what is kept of pasted flows of the datapath, and of connections in
// both forms.
func TestStateOfADatapathIsTakenFromATicket(t *testing.T) {
	const (
		flow       = "recirc_id(0),in_port(11),eth(src=fa:16:3e:00:00:01,dst=fa:16:3e:00:00:02),eth_type(0x0800),ipv4(frag=no), packets:5, bytes:10, used:0.001s, actions:3\n"
		kernel     = "tcp      6 3999 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1000 dport=80 src=10.0.0.2 dst=10.0.0.1 sport=80 dport=1000 [ASSURED] mark=3 zone=5 use=1\n"
		connection = "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=7,dport=80),reply=(src=10.0.0.2,dst=10.0.0.1,sport=80,dport=7),zone=7\n"
		netdev     = "$ ovs-vsctl show\n4b6b0d73-b824-4d6b-9ec7-584b4706f5c9\n    Bridge br0\n        datapath_type: netdev\n"
	)
	for name, c := range map[string]struct{ text, file, want string }{
		"a flow":              {flow, "recorded/dpctl.dump-flows", flow},
		"flows of one bridge": {"$ ovs-appctl dpif/dump-flows br0\n" + flow, "recorded/dpctl.dump-flows", flow},
		"conntrack -L":        {"$ conntrack -L\n" + kernel, "recorded/dpctl.dump-conntrack", kernel},
		"both forms": {"$ conntrack -L\n" + kernel + "$ ovs-appctl dpctl/dump-conntrack\n" + connection,
			"recorded/dpctl.dump-conntrack", connection},
		"beside a userspace one":     {netdev + "$ conntrack -L\n" + kernel, "recorded/dpctl.dump-conntrack", ""},
		"a part of conntrack's list": {flow + "$ conntrack -L -p tcp\n" + kernel, "recorded/dpctl.dump-conntrack", ""},
	} {
		_, _, dir, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.txt": c.text}), "a.txt"))
		got, _ := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v: %s", name, err, got)
		}
	}
}

// TestStatusesOfOneNodeStayTogether collects what cluster/status printed on several servers: in one ticket, and in a
// file each. No output may take the place of another one.
func TestStatusesOfOneNodeStayTogether(t *testing.T) {
	status := func(id string) string {
		return id + "\nName: OVN_Southbound\nCluster ID: a309 (a3090f2b-0246-4daa-a14e-40e369dd955e)\nServer ID: " + id +
			" (" + id + "a898-f5f1-4f4a-b049-f1926274d4f3)\nStatus: cluster member\n"
	}
	const command = "# ovs-appctl -t /var/run/ovn/ovnsb_db.ctl cluster/status OVN_Southbound\n"
	for name, files := range map[string]map[string]string{
		"one ticket": {"a.md": "No leader:\n\n" + command + status("0001") + "\nand\n" + command + status("0002") +
			"and later\n" + command + status("0003")},
		"without command lines": {"a.txt": "Look:\n```\n" + status("0001") + "```\n```\n" + status("0002") + "```\n```\n" +
			status("0003") + "```\n"},
		"a file each": {"a.txt": status("0001"), "b.txt": status("0002"), "c.txt": status("0003")},
	} {
		nodes, _, dir, err := takeFiles(t, Options{}, folder(t, files))
		if err != nil || len(nodes) != 1 {
			t.Errorf("%s: %v %v", name, nodes, err)
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "host", "cluster.status.sb"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, id := range []string{"0001", "0002", "0003"} {
			if !strings.Contains(string(text), "Server ID: "+id) {
				t.Errorf("%s: %s is missing in %s", name, id, text)
			}
		}
	}
}

// TestWhatIsNotUsedOfATicketIsSaid checks the remarks and the losses of tickets, also of those without flows.
func TestWhatIsNotUsedOfATicketIsSaid(t *testing.T) {
	const (
		dump  = "[root@n1 ~]# ovs-ofctl dump-flows br0\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1s, table=0, n_packets=1, n_bytes=1, priority=1 actions=output:2\n"
		flow  = "recirc_id(0),in_port(11),eth(src=fa:16:3e:00:00:01,dst=fa:16:3e:00:00:02),eth_type(0x0800),ipv4(frag=no), packets:5, bytes:10, used:0.001s, actions:3\n"
		shows = "[root@n1 ~]# ovs-vsctl show\n4b6b0d73-b824-4d6b-9ec7-584b4706f5c9\n    Bridge br0\n        Port p1\n            Interface p1\n"
		bond  = "[root@n1 ~]# ovs-appctl bond/show\n---- bond0 ----\nbond_mode: balance-slb\n"
	)
	for name, c := range map[string]struct {
		text, says string
		lost       bool // exit code 3
	}{
		"offloaded flows before all": {"[root@n1 ~]# ovs-appctl dpctl/dump-flows type=offloaded\n" + flow +
			"[root@n1 ~]# ovs-appctl dpctl/dump-flows -m\n" + flow,
			"line 3: the last of 2 outputs of one command, which is used", false},
		"some flows of the datapath": {"[root@n1 ~]# ovs-appctl dpctl/dump-flows | grep 11\n" + flow,
			"these are not all flows of the datapath: it is limited to: | grep 11", false},
		"two outputs, and no flows": {bond + bond, "line 4: the last of 2 outputs of one command, which is used", false},
		"ports that were left out": {dump + shows + "        ...\n",
			"line 4: the output of ovs-vsctl show is not whole, and is not used: lines were left out", true},
		"ports by grep": {dump + strings.Replace(shows, "show", "show | grep -A9 br0", 1),
			"the output of ovs-vsctl show is not whole, and is not used: it is limited to: | grep -A9 br0", true},
		"flows that a page left out": {dump + "--More--\n",
			"not whole, and what is not there may decide: lines were left out", true},
		"flows that Ctrl-C left out": {dump + "^C\n",
			"not whole, and what is not there may decide: the command did not end", true},
		"an error in place of an output": {dump +
			"[root@n1 ~]# ovs-ofctl dump-groups br0\novs-ofctl: br0: version negotiation failed\n",
			`line 4: what stands below ovs-ofctl dump-groups is not its output: "ovs-ofctl: br0: version negotiation failed"`,
			false},
		"ports with numbers of lines": {dump +
			"[root@n1 ~]# ovs-vsctl show\n1: 4b6b0d73-b824-4d6b-9ec7-584b4706f5c9\n2:     Bridge br0\n",
			"line 4: what stands below ovs-vsctl show is not its output", false},
	} {
		nodes, found, _, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{"a.md": c.text}), "a.md"))
		said := strings.Join(append(found.Remarks, found.Lost...), "\n")
		for _, node := range nodes {
			for _, collection := range node.Collections {
				said += "\n" + strings.Join(collection.Remarks, "\n")
			}
		}
		if err != nil || !strings.Contains(said, c.says) || (len(found.Lost) > 0) != c.lost {
			t.Errorf("%s: %v, lost %q: nothing says %q: %s", name, err, found.Lost, c.says, said)
		}
	}
}
