package slow

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/answer/rule"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// caseOf opens the workdirs of a folder, or one workdir, as a case.
func caseOf(t *testing.T, folder string) (*rule.Case, []history.Source) {
	t.Helper()
	selected, err := snapshot.OpenNodes(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	deployments, _, err := selected.Deployments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snapshot.CloseAll(deployments) })
	sources, _, err := history.Sources(t.Context(), selected, workdir.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	return rule.Of(deployments, rule.Programs{}), sources
}

// examined examines a folder, and checks that the rules of a check find the same.
func examined(t *testing.T, folder string) *Report {
	t.Helper()
	of, sources := caseOf(t, folder)
	r, err := examine(t.Context(), of, sources, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var all, found []string
	for _, f := range r.Findings {
		all = append(all, f.What)
	}
	use := func(f rule.Finding) { found = append(found, f.What) }
	for _, checked := range Rules() {
		for _, d := range of.Deployments {
			if checked.Deployment != nil {
				if err := checked.Deployment(t.Context(), d, use); err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range d.Nodes {
				if checked.Node != nil {
					if err := checked.Node(t.Context(), n, use); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	slices.Sort(all)
	slices.Sort(found)
	expect.Equal(t, found, all, "what the rules find")
	return r
}

// TestHealthyNodesHaveNoFindings examines captures and sets of nodes on which nothing was planted, with
// replicas: all that is found are the flows that really flap, because of rules against spoofed neighbour
// discovery, and the tunnels that the kernels of the captures really tracked.
func TestHealthyNodesHaveNoFindings(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	folders := map[string]string{}
	for _, name := range []string{"ovn-openstack-compute", "ovn-kubernetes-worker"} {
		folders[name] = collected.Report(t, captures.Report(t, "captures/"+name)).Path()
	}
	for _, name := range []string{"openstack", "kubernetes-ic", "neutron-ovs"} {
		folder := ovs.Dir(t)
		if _, err := sets.Recorded(t, "../../scripts/lab/lab", name).Workdirs(t.Context(), folder, sets.Native); err != nil {
			t.Fatal(err)
		}
		folders[name] = folder
	}
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			of, _ := caseOf(t, folder)
			for _, n := range of.Nodes() {
				fidelity.Started(t, n.Dir.Path())
			}
			r := examined(t, folder)
			entries, recorded, flapped := 0, 0, 0
			for _, n := range r.Nodes {
				if n.Datapath == nil || n.NotReplayed != "" {
					t.Errorf("node %s is not judged", n.Node)
					continue
				}
				recorded += n.Datapath.Flows
				flapped += len(n.Flapping)
				if n.Conntrack != nil {
					entries += n.Conntrack.Entries
				}
			}
			t.Logf("%d nodes, %d flows of the datapath, %d flapping, %d connections, %d databases", len(r.Nodes), recorded,
				flapped, entries, len(r.Churn))
			for _, f := range r.Findings {
				flaps := f.Rule == flapping && strings.Contains(f.What, "nd_target") && strings.Contains(f.Evidence[0], "nd_target")
				if !flaps && f.Rule != tracked {
					t.Errorf("%s: %s", f.Rule, f.What)
				}
			}
		})
	}
}

// recordedSwitch records a live switch in a workdir.
func recordedSwitch(t *testing.T, live *ovs.Switch) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(ovs.Dir(t), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	files.Write(t, wd.Database(workdir.OVS), files.Read(t, filepath.Join(live.Dir, "conf.db")))
	files.Write(t, wd.DumpFile("br0", workdir.Flows), live.Ofctl("-O", "OpenFlow15", "dump-flows", "br0"))
	files.Write(t, wd.BridgeRecorded("br0", workdir.RecordedShow), live.Ofctl("show", "br0"))
	files.Write(t, wd.Recorded(workdir.RecordedDpifShow), live.Appctl("dpif/show"))
	files.Write(t, wd.Recorded(workdir.RecordedDatapathFlows), live.Appctl("dpctl/dump-flows", "-m", "dummy@ovs-dummy"))
	files.Write(t, wd.Recorded(workdir.RecordedConntrack), live.Appctl("dpctl/dump-conntrack", "-m", "dummy@ovs-dummy"))
	return wd
}

// started starts a switch with two ports and flows.
func started(t *testing.T, flows ...string) *ovs.Switch {
	t.Helper()
	live := ovs.Start(t, "--enable-dummy=override")
	live.Vsctl("set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=192.0.2.1", "other_config:max-idle=600000", "--",
		"add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=dummy", "fail_mode=secure",
		"external_ids:ct-zone-vm1=7", "external_ids:ct-zone-vm2=8",
		"--", "add-port", "br0", "p1", "--", "set", "Interface", "p1", "type=dummy", "ofport_request=1",
		"options:ifindex=1101", "--", "add-port", "br0", "p2", "--", "set", "Interface", "p2", "type=dummy",
		"ofport_request=2", "options:ifindex=1102",
		"--", "add-port", "br0", "t1", "--", "set", "Interface", "t1", "type=geneve", "options:remote_ip=192.0.2.9")
	for _, flow := range flows {
		live.Ofctl("add-flow", "br0", flow)
	}
	return live
}

// send puts the first packets of UDP connections into a switch, again until the output of a command has a
// line for each: a busy machine loses some.
func send(t *testing.T, live *ovs.Switch, n int, src, dst string, port int, shows ...string) {
	t.Helper()
	const tries = 20
	for range tries {
		sendOnce(live, n, src, dst, port)
		if got := strings.Count(live.Appctl(shows...), "src="+src); got >= n {
			return
		}
	}
	t.Fatalf("the switch has not got the %d packets from %s", n, src)
}

func sendOnce(live *ovs.Switch, n int, src, dst string, port int) {
	const atOnce = 40 // the queue of a dummy device holds 100
	for from := 0; from < n; from += atOnce {
		args := []string{"netdev-dummy/receive", "p1"}
		for i := from; i < min(n, from+atOnce); i++ {
			args = append(args, fmt.Sprintf("in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=%s,dst=%s,proto=17,tos=0,ttl=64,frag=no),udp(src=%d,dst=%d)", src, dst, 1024+i, port))
		}
		live.Appctl(args...)
	}
}

// TestTalkerThatFillsAZoneIsNamed has a live switch track 1,500 connections of one sender in the zone of
// vm1, connections of other senders, and packets of its own tunnels.
func TestTalkerThatFillsAZoneIsNamed(t *testing.T) {
	live := started(t, "priority=9,udp,nw_src=10.0.0.1,actions=ct(commit,zone=7),output:2",
		"priority=8,udp,nw_dst=192.0.2.1,actions=ct(commit,zone=0),output:2",
		"priority=7,udp,actions=ct(commit,zone=8),output:2")
	connections := []string{"dpctl/dump-conntrack", "dummy@ovs-dummy"}
	send(t, live, 1500, "10.0.0.1", "10.2.0.1", 80, connections...)
	send(t, live, 300, "10.0.0.2", "10.2.0.1", 80, connections...)
	send(t, live, 200, "10.0.0.3", "10.2.0.1", 80, connections...)
	send(t, live, 1100, "192.0.2.9", "192.0.2.1", 6081, connections...)
	wd := recordedSwitch(t, live)
	files.Write(t, wd.HostRecorded("sysctl"), "net.ipv4.ip_forward = 1\nnet.netfilter.nf_conntrack_max = 3200\n")
	r := examined(t, wd.Path())
	c := r.Nodes[0].Conntrack
	expect.Equal(t, []int{c.Entries, c.AllZones, c.Tunnelled, c.Limit, c.Lost}, []int{3100, 3, 1100, 3200, 0},
		"entries, zones, of tunnels, limit and lost lines")
	expect.Equal(t, c.Zones[0].Owner, "vm1", "the owner of the largest zone")
	var found []string
	for _, f := range r.Findings {
		t.Log(f.What)
		found = append(found, f.Rule+": "+f.What)
	}
	for _, want := range []string{filling + ": 10.0.0.1 has 1500 of the 1500 connections of conntrack zone 7 of vm1",
		filling + ": 192.0.2.9 has 1100 of the 1100 connections of conntrack zone 0",
		nearLimit + ": 3100 connections are recorded, and the limit is 3200 (net.netfilter.nf_conntrack_max)",
		tracked + ": 1100 connections that the host tracks are of tunnels"} {
		if !slices.Contains(found, want) {
			t.Errorf("%q is not among %q", want, found)
		}
	}
	expect.Equal(t, len(found), 4, "the number of findings")
}

// TestConnectionsNearTheLimitOfTheDatapath has a live switch whose datapath takes 320 connections, of which it has
// 300; they are of many senders, and 20 of them are packets of a VXLAN tunnel of the node itself.
func TestConnectionsNearTheLimitOfTheDatapath(t *testing.T) {
	live := started(t, "priority=8,udp,nw_dst=192.0.2.1,actions=ct(commit,zone=0),output:2",
		"priority=7,udp,actions=ct(commit,zone=8),output:2")
	live.Vsctl("add-port", "br0", "t2", "--", "set", "Interface", "t2", "type=vxlan", "options:remote_ip=192.0.2.8")
	live.Appctl("dpctl/ct-set-maxconns", "dummy@ovs-dummy", "320")
	connections := []string{"dpctl/dump-conntrack", "dummy@ovs-dummy"}
	for i := range 14 {
		send(t, live, 20, fmt.Sprintf("10.0.1.%d", 10+i), "10.2.0.1", 80, connections...)
	}
	send(t, live, 20, "192.0.2.8", "192.0.2.1", 4789, connections...)
	wd := recordedSwitch(t, live)
	files.Write(t, wd.Recorded(workdir.RecordedConntrackLimit), live.Appctl("dpctl/ct-get-maxconns", "dummy@ovs-dummy"))
	var found []string
	for _, f := range examined(t, wd.Path()).Findings {
		found = append(found, f.Rule+": "+f.What)
	}
	slices.Sort(found)
	expect.Equal(t, found, []string{nearLimit +
		": 300 connections are recorded, and the limit is 320 (dpctl/ct-get-maxconns)",
		tracked + ": 20 connections that the host tracks are of tunnels"}, "the findings")
}

// TestCountersAreFound has a live switch without connections, whose counters are changed into those of a node under load, and what the
// kernel says of its connections. check finds the same (examined).
func TestCountersAreFound(t *testing.T) {
	live := started(t, "actions=output:2")
	send(t, live, 1, "10.0.0.1", "10.0.0.2", 80, "dpctl/dump-flows", "-m", "dummy@ovs-dummy")
	wd := recordedSwitch(t, live)
	shown, upcalls := live.Appctl("dpctl/show"), live.Appctl("upcall/show")
	write := func(lookups, flows, count string) []string {
		files.Write(t, wd.Recorded(workdir.RecordedDatapathShow), regexp.MustCompile("lookups: .*").ReplaceAllString(shown, lookups))
		files.Write(t, wd.Recorded(workdir.RecordedUpcalls), regexp.MustCompile(`\(current .*`).ReplaceAllString(upcalls, flows))
		files.Write(t, wd.HostRecorded(workdir.HostSysctl),
			"net.netfilter.nf_conntrack_count = "+count+"\nnet.netfilter.nf_conntrack_max = 262144\n")
		files.Write(t, wd.Recorded(workdir.RecordedCoverage), live.Appctl("coverage/show")+
			"upcall_flow_limit_hit      0.0/sec     0.000/sec        0.0000/sec   total: 71\n")
		var found []string
		for _, f := range examined(t, wd.Path()).Findings {
			found = append(found, fmt.Sprintf("%s %s: %s", f.Severity, f.Rule, f.What))
		}
		return found
	}
	expect.Equal(t, write("lookups: hit:900 missed:100 lost:3", "(current 5) (avg 5) (max 5) (limit 2000)", "2725"), nil, "healthy")
	expect.Equal(t, write("lookups: hit:99001 missed:4000000 lost:812345", "(current 1996) (avg 1900) (max 2011) (limit 2000)",
		"262144"), []string{
		"error datapath-lost-packets: the datapath dummy@ovs-dummy lost 812345 packets on their way to ovs-vswitchd, of 4812345",
		"error conntrack-near-limit: the table of connections is full: it has 262144 of at most 262144 (net.netfilter.nf_conntrack_max)",
		"warning megaflow-limit: the datapath dummy@ovs-dummy has 1996 flows, and ovs-vswitchd allows 2000; the limit was reached for 71 packets",
	}, "under load")
	expect.Equal(t, write("lookups: hit:99001 missed:4000000 lost:300", "(current 5) (avg 5) (max 5) (limit 2000)", "240000"),
		[]string{"warning conntrack-near-limit: 240000 connections are recorded, and the limit is 262144 (net.netfilter.nf_conntrack_max)",
			"warning datapath-lost-packets: the datapath dummy@ovs-dummy lost 300 packets on their way to ovs-vswitchd, of 4000300"},
		"near it")
}

// TestOffloadThatTakesNoFlowIsFound has a switch that is configured to offload flows, and whose dump says
// that the datapath of ovs-vswitchd has them.
func TestOffloadThatTakesNoFlowIsFound(t *testing.T) {
	live := started(t, "actions=output:2")
	send(t, live, 1, "10.0.0.1", "10.0.0.2", 80, "dpctl/dump-flows", "-m", "dummy@ovs-dummy")
	r := examined(t, recordedSwitch(t, live).Path())
	if r.Nodes[0].Offload != nil || len(r.Findings) > 0 {
		t.Errorf("without hw-offload: %+v, %+v", r.Nodes[0].Offload, r.Findings)
	}
	live.Vsctl("set", "Open_vSwitch", ".", "other_config:hw-offload=true")
	r = examined(t, recordedSwitch(t, live).Path())
	o := r.Nodes[0].Offload
	if o == nil || !o.Enabled || o.Flows != 1 || o.Not() != 1 || len(o.Reasons) != 1 || o.Reasons[0].What != noReason {
		t.Fatalf("%+v", o)
	}
	if len(r.Findings) != 1 || r.Findings[0].What != "other_config:hw-offload is true, and none of 1 flow of the datapath is offloaded" {
		t.Errorf("%+v", r.Findings)
	}
	sendOnce(live, 40, "10.0.0.7", "10.0.0.8", 53)
	r = examined(t, recordedSwitch(t, live).Path())
	if len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].What, "other_config:hw-offload is true, and none of ") {
		t.Errorf("after more flows: %+v", r.Findings)
	}
}

// TestReasonsOfFlowsThatAreNotOffloaded reads flows as a node with TC dumps them.
func TestReasonsOfFlowsThatAreNotOffloaded(t *testing.T) {
	const key = "ufid:1, recirc_id(%s),dp_hash(0/0),in_port(eth0),packet_type(ns=0/0,id=0/0),%s, packets:%d, bytes:98, used:1s, %sdp:%s, actions:%s\n"
	const ip = "eth_type(0x0800),ipv4(src=0.0.0.0/0.0.0.0,dst=10.0.0.1,proto=6,frag=no)"
	for want, test := range map[string]struct{ match, actions string }{
		"action userspace: ovs-vswitchd handles the packets": {ip, "userspace(pid=1,slow_path(action))"},
		"action hash":                         {ip, "hash(hash_l4(0)),recirc(0x9)"},
		"action trunc":                        {ip, "trunc(100),eth1"},
		"action ct with a helper":             {ip, "ct(commit,zone=1,helper=ftp),recirc(0x2)"},
		"action set(sctp)":                    {ip, "set(sctp(dst=1)),eth1"},
		"action set(ipv6(label))":             {ip, "set(ipv6(label=0x1)),eth1"},
		"match on dp_hash":                    {"dp_hash(0x1/0xf)," + ip, "eth1"},
		"match on skb_mark":                   {"skb_mark(0x1)," + ip, "eth1"},
		"match on nd":                         {"eth_type(0x86dd),ipv6(proto=58,frag=no),icmpv6(type=135,code=0/0),nd(target=fe80::1)", "eth1"},
		"match on ct_state with snat or dnat": {"ct_state(+trk+dnat)," + ip, "eth1"},
		"match on fragments of IPv6":          {"eth_type(0x86dd),ipv6(proto=17,frag=first)", "eth1"},
		"match on a part of vlan(vid)":        {"eth_type(0x8100),vlan(vid=1/0x1,pcp=0/0x0),encap(" + ip + ")", "eth1"},
		noReason: {"skb_mark(0),skb_priority(0/0),ct_state(+est+trk),ct_zone(0x5)," + ip,
			"ct(commit,zone=5,nat(src=10.0.0.9)),set(eth(dst=02:00:00:00:00:01)),set(tunnel(tun_id=0x1,dst=192.0.2.2,ttl=64,tp_dst=6081,geneve({class=0x102,type=0x80,len=4,0x1}),flags(csum|key))),genev_sys_6081"},
	} {
		count := newOffloadCount(true)
		text := fmt.Sprintf(key, "0", test.match, 100, "", "ovs", test.actions) + fmt.Sprintf(key, "0", ip, 50,
			"offloaded:yes, ", "tc", "eth1")
		for m, err := range appctl.Megaflows(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			count.add(&m)
		}
		o := count.finish()
		if o.Offloaded != 1 || o.Not() != 1 || o.Slow != 100 || len(o.Reasons) != 1 || o.Reasons[0].What != want ||
			want != noReason && o.Reasons[0].Source == "" {
			t.Errorf("%s: %+v", want, o)
		}
	}
	count := newOffloadCount(true)
	text := fmt.Sprintf(key, "0", ip, 9, "offloaded:yes, ", "tc", "ct(zone=1),recirc(0x7)") + fmt.Sprintf(key, "0x7", ip,
		2, "", "ovs", "eth1") + fmt.Sprintf(key, "0x8", ip, 20000, "", "ovs", "eth1")
	for m := range appctl.Megaflows(strings.NewReader(text)) {
		count.add(&m)
	}
	o := count.finish()
	expect.Equal(t, []string{o.Reasons[0].What, o.Reasons[1].What},
		[]string{"recirc_id: the flow before it is not offloaded either", noReason}, "the reasons")
	if found := offloadFindings(o); len(found) != 1 ||
		!strings.Contains(found[0].What, "2 flows that are not offloaded have 99% of the packets") {
		t.Errorf("%+v", found)
	}
}

// TestRowsThatChangeAgainAndAgainAreFound has a port that is made and deleted each minute, a chassis that
// changes each five seconds, and rows that change as often while a deployment is set up, or only say that a
// daemon is alive.
func TestRowsThatChangeAgainAndAgainAreFound(t *testing.T) {
	ovs.Need(t, "ovsdb-tool")
	nb := ovndb.Create(t, ovs.NBSchema)
	id := func(n int) string { return fmt.Sprintf("a0000000-0000-4000-8000-%012d", n) }
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	at := func(seconds int, table string, rows map[string]any) {
		nb.Add(map[string]any{"_date": start.Add(time.Duration(seconds) * time.Second).UnixMilli(), table: rows})
	}
	at(0, "NB_Global", map[string]any{id(9): map[string]any{"nb_cfg": 0}})
	at(0, "Logical_Switch_Port", map[string]any{id(1): map[string]any{"name": "steady"}})
	for i := range 200 {
		at(5*i+1, "Logical_Switch_Port", map[string]any{id(1): map[string]any{"enabled": i%2 == 0}})
		at(5*i+2, "NB_Global", map[string]any{id(9): map[string]any{"nb_cfg": i + 1}})
		if i%12 == 0 {
			at(5*i+3, "Logical_Switch_Port", map[string]any{id(1000 + i): map[string]any{"name": "flipped"}})
			at(5*i+4, "Logical_Switch_Port", map[string]any{id(1000 + i): nil})
		}
	}
	for i := range 100 {
		at(1010+i, "Logical_Switch", map[string]any{id(2): map[string]any{"name": "made",
			"external_ids": ovndb.Map("step", fmt.Sprint(i))}})
	}
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, wd.Database(workdir.NB), files.Read(t, nb.Close()))
	of, sources := caseOf(t, wd.Path())
	r, err := examine(t.Context(), of, sources, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.What)
	}
	slices.Sort(found)
	expect.Equal(t, found, []string{"OVN NB: row flipped of Logical_Switch_Port was inserted 17 times and deleted 17 times",
		"OVN NB: row steady of Logical_Switch_Port changed 201 times, every 5.0 s: enabled"}, "the findings")
}

// TestOftenForgetsTheRarest counts more keys than are kept.
func TestOftenForgetsTheRarest(t *testing.T) {
	var o often[int, struct{}]
	for i := range 4 * maxKeys {
		o.add(i)
		o.add(-1)
	}
	if got := o.kept[-1].n; got != 4*maxKeys || len(o.kept) > maxKeys {
		t.Errorf("%d counted, of %d keys", got, len(o.kept))
	}
}

// TestExplosionIsAFinding examines a switch with a flow for each source port.
func TestExplosionIsAFinding(t *testing.T) {
	live := started(t, "udp,actions=move:NXM_OF_UDP_SRC[]->NXM_NX_REG1[0..15],output:2")
	send(t, live, 400, "10.0.0.1", "10.0.0.2", 80, "dpctl/dump-flows", "-m", "dummy@ovs-dummy")
	wd := recordedSwitch(t, live)
	r := examined(t, wd.Path())
	if len(r.Findings) != 1 || r.Findings[0].Rule != exploding || !strings.Contains(r.Findings[0].What, "tp_src") ||
		!strings.Contains(r.Findings[0].What, "table 0") {
		t.Errorf("%+v", r.Findings)
	}
	expect.Equal(t, r.Nodes[0].Explosions[0].Traced, false, "traced")
	fidelity.Started(t, wd.Path())
	if r = examined(t, wd.Path()); len(r.Nodes[0].Explosions) != 1 || !r.Nodes[0].Explosions[0].Traced ||
		r.Nodes[0].NotReplayed != "" {
		t.Errorf("%+v", r.Nodes[0])
	}
}
