package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/collect"
	"ovs-offline/collect/ticket"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/iproute"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/ovn/match"
	"ovs-offline/internal/ovntrace"
	"ovs-offline/internal/tracetext"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
	"ovs-offline/workdir/recording"
	"ovs-offline/workdir/services"
)

// reader is a reader of foreign text, with a piece of what it reads.
type reader struct {
	name, unit string
	read       func(text string)
}

// ofReader returns a reader of a stream whose results are dropped.
func ofReader[T any](read func(io.Reader) T) func(string) {
	return func(text string) { read(strings.NewReader(text)) }
}

// ofFile returns a reader of a file.
func ofFile(read func(path string)) func(string) {
	return func(text string) {
		dir, err := os.MkdirTemp("", "growth-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
		read(path)
	}
}

// ofSource returns a reader of a folder of files, which a collector reads: the one at a path has the text, and another is a dump
// of flows.
func ofSource(path string) func(string) {
	return func(text string) {
		dir, err := os.MkdirTemp("", "growth-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		for path, text := range map[string]string{path: text, "sosreport-a/sos_commands/openvswitch/ovs-ofctl_dump-flows_br1": flowLine} {
			file := filepath.Join(dir, "source", path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				log.Fatal(err)
			}
		}
		wd, err := workdir.Lock(filepath.Join(dir, "workdir"))
		if err != nil {
			log.Fatal(err)
		}
		defer wd.Unlock()
		source := collect.Files{Paths: []string{filepath.Join(dir, "source")}}
		if _, _, err := collect.Collect(context.Background(), wd, source, collect.Options{}); err != nil {
			log.Fatal(err)
		}
	}
}

const (
	flowLine = " cookie=0x1, duration=1s, table=0, n_packets=0, n_bytes=0, priority=1,ip,nw_src=10.0.0.1 actions=set_field:0x1->reg0,resubmit(,1)\n"
	database = `OVSDB JSON 40 0123456789012345678901234567890123456789` + "\n" + `{"name":"Open_vSwitch","tables":{"Open_v` + "\n"
)

// readers are the readers of what collections hold.
func readers() []reader {
	return slices.Concat(openflowReaders(), databaseReaders(), hostReaders(), textReaders())
}

func openflowReaders() []reader {
	return []reader{
		{"flows", flowLine, func(text string) {
			for flow := range openflow.Flows(strings.NewReader(text)) {
				flow.Key()
				openflow.Rewrite(flow.Text)
				openflow.Words(flow.Text)
				openflow.Ports(flow.Text)
				openflow.IDs(flow.Text)
			}
		}},
		{"groups", " group_id=1,type=select,selection_method=dp_hash,bucket=bucket_id:1,weight:1,actions=output:1\n", func(text string) { openflow.Groups(strings.NewReader(text)) }},
		{"meters", "meter=1 kbps burst stats bands=\ntype=drop rate=1 burst_size=1\n", func(text string) { openflow.Meters(strings.NewReader(text)) }},
		{"TLV map", " 0x102  0x80   4     tun_metadata1\n", func(text string) { openflow.TLVMap(strings.NewReader(text)) }},
		{"ovs-ofctl show", " 1(eth1): addr:00:00:00:00:00:01\n     config:     PORT_DOWN\n     state:      LINK_DOWN\n", ofReader(openflow.Show)},
		{"script of ovs-save", "ovs-ofctl add-tlv-map br1 '{class=0x102,type=0x80,len=4}->tun_metadata1'\n", func(text string) { _, _, _ = openflow.ReadSaveScript(strings.NewReader(text)) }},
		{"conjunctions", " cookie=0x1, table=1, priority=1,conj_id=1,ip actions=drop\n", ofReader(rules.ReadConjunctions)},
		{"kinds of dumps", "NXST_FLOW reply (xid=0x1):\n" + flowLine, func(text string) { openflow.Identify([]byte(text)) }},
		{"dpctl dump-flows", "recirc_id(0x1),in_port(1),eth(src=00:00:00:00:00:01),eth_type(0x0800),ipv4(src=10.0.0.1/255.0.0.0,frag=no), packets:1, bytes:1, used:1s, actions:ct(commit,zone=1),recirc(0x1)\n",
			func(text string) {
				for m := range appctl.Megaflows(strings.NewReader(text)) {
					odp.Parse(m.Actions)
					odp.MasksOf(m.Key)
				}
			}},
		{"datapath actions", "ct(commit,zone=1,nat(src=10.0.0.1)),clone(tnl_push(tnl_port(1),header(size=1))),recirc(0x1),1,", func(text string) { odp.Parse(text); odp.Normal(text, false, "") }},
		{"packets as flows", "ip,in_port=1,nw_src=10.0.0.1,ct_state=+new-est,tun_metadata1=0x1,", func(text string) { _, _ = flow.Parse(text) }},
		{"ofproto/trace", "Flow: ip,in_port=1\n\nbridge(\"br1\")\n-------------\n 0. ip, priority 1, cookie 0x1\n    resubmit(,1)\n 1. priority 1\n    output:1\n\nFinal flow: unchanged\nMegaflow: recirc_id=0,ip,in_port=1\nDatapath actions: 1\n",
			func(text string) { _, _ = pass.Parse(text) }},
		{"pasted traces", "ovs-appctl ofproto/trace br1 in_port=1\nFlow: ip,in_port=1\n\nbridge(\"br1\")\n 0. priority 1\n    drop\nDatapath actions: drop\n", func(text string) { tracetext.Find(text); tracetext.Read(text) }},
	}
}

func databaseReaders() []reader {
	ctx := context.Background()
	return []reader{
		{"ovs-vsctl list", "_uuid               : 01234567-0123-0123-0123-012345678901\nname                : \"br1\"\nexternal_ids        : {a=\"1\", b=\"[]\"}\n\n", func(text string) {
			_, _ = ovsdb.Listing(strings.NewReader(text))
			_, _ = ovsdb.Tables(strings.NewReader(text), "Bridge")
		}},
		{"ovs-vsctl show", "01234567-0123-0123-0123-012345678901\n    Bridge br1\n        Port eth1\n            Interface eth1\n                options: {a=\"1\"}\n", func(text string) { _, _ = ovsdb.Shown(strings.NewReader(text)) }},
		{"ovn-nbctl show", "switch 01234567-0123-0123-0123-012345678901 (sw1)\n    port p1\n        addresses: [\"00:00:00:00:00:01 10.0.0.1\"]\n", func(text string) { _, _ = ovn.Shown(strings.NewReader(text)) }},
		{"printed tables", "| _uuid | name |\n+-------+------+\n| 1 | a1 |\n_uuid,name\n01234567-0123-0123-0123-012345678901,a1\n", func(text string) {
			ovsdb.AsListing(text)
			ovsdb.ReadPart(text, "Port", ovsdb.PartForm{})
		}},
		{"lists of ovn-nbctl", "  to-lport  1001 (ip4.src == 10.0.0.1) allow-related\nIPv4 Routes\n      10.0.0.0/8      10.0.0.1 dst-ip\n", func(text string) {
			for _, command := range []string{"acl-list", "lr-route-list", "lr-nat-list", "lb-list", "qos-list"} {
				ovn.ReadList(command, text, false)
			}
		}},
		{"ovn-sbctl lflow-list", "Datapath: \"sw1\" (01234567-0123-0123-0123-012345678901)  Pipeline: ingress\n  table=0 (ls_in_1), priority=1    , match=(ip4.src == 10.0.0.1), action=(next;)\n",
			func(text string) { _, _, _ = ovn.LogicalFlowRows(io.Discard, strings.NewReader(text)) }},
		{"ovn-trace", "# ip,reg14=0x1\n\ningress(dp=\"sw1\", inport=\"p1\")\n 0. ls_in_1 (northd.c:1): ip, priority 1, uuid 01234567\n    next;\n", func(text string) { _, _ = ovntrace.Parse(text) }},
		{"matches of OVN", "ip4.src == {10.0.0.1, $as1} && (tcp.dst == 1 || udp) && ", func(text string) { match.Problem(text); match.References(text) }},
		{"OVSDB files", database, func(text string) { _, _ = file.Inspect(ctx, strings.NewReader(text)) }},
		{"RAFT logs", strings.Replace(database, "JSON", "CLUSTER", 1), ofFile(func(path string) {
			_, _ = raft.Read(ctx, nil, path)
		})},
		{"cluster/status", "a1b2\nName: OVN_Southbound\nCluster ID: a1b2 (01234567-0123-0123-0123-012345678901)\nServers:\n    a1b2 (a1b2 at tcp:10.0.0.1:6644) (self)\n", func(text string) { raft.ParseStatus(text) }},
		{"services", `[{"namespace":"a","name":"b","addresses":["10.0.0.1"],"ports":[{"protocol":"TCP","port":1}]}]`, ofFile(func(path string) { _, _ = services.Read(path) })},
	}
}

func hostReaders() []reader {
	return []reader{
		{"ip address", "1: eth1@if1: <BROADCAST,UP> mtu 1500 qdisc noqueue state UP\n    link/ether 00:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet 10.0.0.1/24 scope global eth1\n", func(text string) { iproute.Links(text) }},
		{"ip route", "10.0.0.0/24 via 10.0.0.1 dev eth1 proto static metric 1\n\tnexthop via 10.0.0.1 dev eth1 weight 1\n", func(text string) { iproute.AllRoutes(text) }},
		{"ip rule", "1:\tfrom 10.0.0.1 fwmark 0x1/0xff lookup 1\n", func(text string) { iproute.Rules(text, false) }},
		{"ip neigh", "10.0.0.1 dev eth1 lladdr 00:00:00:00:00:01 REACHABLE\n", func(text string) { iproute.Neighbours(text) }},
		{"conntrack", "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=1,dport=1),reply=(src=10.0.0.2,dst=10.0.0.1,sport=1,dport=1),zone=1,protoinfo=(state=ESTABLISHED)\n",
			func(text string) { _, _, _ = conntrack.Read(strings.NewReader(text)) }},
		{"conntrack of the kernel", "ipv4 2 tcp 6 1 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1 dport=1 src=10.0.0.2 dst=10.0.0.1 sport=1 dport=1 [ASSURED] mark=1 zone=1 use=1\n",
			func(text string) { _, _, _ = conntrack.Read(strings.NewReader(text)) }},
		{"sysctl", "net.ipv4.conf.eth1.rp_filter = 1\n", func(text string) { netns.Sysctls(text) }},
		{"packages", "ii  openvswitch1:amd64  3.1.0-1  amd64  text\n", func(text string) { rule.ParsePackages(text) }},
		{"certificates, with a whole collection", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\nnotAfter=May  7 06:44:05 2036 GMT\n", ofSource("sosreport-a/etc/openvswitch/a.pem")},
		{"manifest of sos, likewise", `{"components":{"report":{"plugins":{"openvswitch":{"commands":[{"exec":"/usr/bin/ovs-ofctl dump-flows br1","filepath":"a1"}]}}}}}` + "\n",
			ofSource("sosreport-a/sos_reports/manifest.json")},
		{"resources of must-gather, likewise", "kind: Pod\nmetadata: {name: ovnkube-node-1}\nspec:\n  nodeName: n1\n  containers: [{name: ovn-controller, image: i1}]\n",
			ofSource("must-gather/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-1/ovnkube-node-1.yaml")},
		{"appctl: bonds, trees, tables", "---- bond1 ----\nbond_mode: active-backup\nmember eth1: enabled\n  may_enable: true\n port  VLAN  MAC                Age\n    1     1  00:00:00:00:00:01    1\n", func(text string) {
			for range appctl.Bonds(text) {
			}
			for range appctl.LACPs(text) {
			}
			for range appctl.SpanningTrees(text) {
			}
			for range appctl.LearnedMACs(text) {
			}
			for range appctl.DatapathPorts(text) {
			}
			for range appctl.BridgePorts(text) {
			}
			for range appctl.Floods(text) {
			}
		}},
		{"appctl: counters, routes", "br1:\n  lookups: hit:1 missed:1 lost:1\nRoute Table:\nUser: 10.0.0.0/24 dev eth1 SRC 10.0.0.1\nflow_1 1.0/sec 1.0/sec 1.0/sec total: 1\n", func(text string) {
			appctl.Datapaths(text)
			appctl.Upcalls(text)
			appctl.Coverage(text)
			appctl.Features(text)
			appctl.Routes(text)
			appctl.Neighbours(text)
			appctl.MulticastGroups(text)
			appctl.BFDSessions(text)
			appctl.CFMMonitors(text)
			appctl.SplitFDB(text)
			_, _ = appctl.Engine(strings.NewReader(text))
		}},
	}
}

func textReaders() []reader {
	ctx := context.Background()
	logs := func(program string) func(string) {
		return func(text string) {
			in, err := daemonlog.NewReader(ctx, strings.NewReader(text), program, daemonlog.Options{})
			if err != nil {
				return
			}
			for {
				if _, err := in.Next(); err != nil {
					return
				}
			}
		}
	}
	return []reader{
		{"logs", "2026-05-07T06:44:05.386Z|00001|bridge|INFO|bridge br1: added interface eth1 on port 1\n", logs("ovs-vswitchd")},
		{"journal", "May 07 06:44:05 host1 ovs-vswitchd[1]: ovs|00001|bridge|INFO|bridge br1: added\n", logs("")},
		{"tickets", "```\n[root@n1 ~]# ovs-ofctl dump-flows br1\nNXST_FLOW reply (xid=0x4):\n" + flowLine + "```\n> text\n", func(text string) { ticket.Read(text) }},
		{"command lines", "/usr/bin/ovs-appctl -t ovs-vswitchd ofproto/trace br1 ", func(text string) {
			recording.ParseLine(text)
			recording.ParseTyped(strings.Fields(text))
			recording.ParseFileName(text)
		}},
		{"lines of commands", "/usr/bin/ovs-appctl -t ovs-vswitchd dpif/show\n", func(text string) {
			for line := range strings.Lines(text) {
				recording.ParseLine(line)
			}
		}},
	}
}
