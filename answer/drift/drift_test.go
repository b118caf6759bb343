package drift

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// need skips the test where the programs of a release of OVN are missing, or have no
// namespaces.
func need(t *testing.T, release string) {
	t.Helper()
	fidelity.NeedScratch(t)
	if installed := versions.PrintedOVN([]byte(ovs.Run(t, "ovn-controller",
		"--version"))); versions.Minor(installed) != release {
		t.Skipf("OVN %s is installed, and the capture is of %s", installed, release)
	}
}

func check(t *testing.T, wd *workdir.Dir, o Options) *Report {
	t.Helper()
	o.Runtime, o.Runtimes = process.Name, choose.Finder("test")
	r, err := Check(t.Context(), wd, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lists returns each difference of a report as a line: the list, its entries and its cause.
func lists(r *Report) (lines []string) {
	for _, list := range []struct {
		name string
		of   []Difference
	}{{"missing", r.Missing}, {"extra", r.Extra}, {"altered", r.Altered}} {
		for _, d := range list.of {
			lines = append(lines, list.name+" "+d.String())
		}
	}
	return lines
}

// TestNodesOfCapturesHaveNoDrift compares nodes of which nothing was altered.
func TestNodesOfCapturesHaveNoDrift(t *testing.T) {
	need(t, "23.03")
	for name, want := range map[string]Counts{"ovn-kubernetes-worker": {1214, 13, 3},
		"ovn-openstack-compute": {956, 1, 3}} {
		r := check(t, collected.Report(t, captures.Report(t, "captures/"+name)), Options{Northd: true})
		if r.Verdict != None || r.Compared != want || r.Same != want.Flows+want.Groups+want.Meters || len(r.Remarks) > 0 ||
			len(r.Either) > 0 {
			t.Errorf("%s: %+v\n%s", name, r, strings.Join(lists(r), "\n"))
		}
		if r.Northd == nil || r.Northd.Same != r.Northd.Compared || r.Northd.Compared < 500 {
			t.Errorf("%s: %+v", name, r.Northd)
		}
		for _, l := range r.LeftOut {
			t.Log(l)
		}
	}
}

// plant is something that is changed in the recorded dumps of a node.
type plant struct {
	dump     workdir.Dump
	line     string // a part of the line that is changed, and of no other
	old, new string // what is replaced in it; the line is removed if both are empty, and new is a line to add if old is
	want     string // the only difference
}

// planted are changes of the Kubernetes worker. The names are those of its NB database.
var planted = map[string]plant{
	"removed pod's port": {workdir.Flows, "table=65,|priority=100,reg15=0x3,metadata=0x3 ", "", "",
		"missing 1 flow of pod ns1/web1 (port ns1_web1), output: from logical to physical of switch ovn-worker"},
	"removed input": {workdir.Flows, "table=0,|in_port=6 ", "", "",
		"missing 1 flow of pod ns1/client (port ns1_client), input: from physical to logical of switch ovn-worker"},
	"removed port security": {workdir.Flows, "table=74,|arp_spa=10.244.1.3,", "", "",
		"missing 1 flow of pod ns1/web1 (port ns1_web1), port security of the input port, ARP and ND of switch ovn-worker"},
	"removed ACL": {workdir.Flows, "table=46,|nw_src=10.244.1.2 |reg0=0x100/0x100", "", "",
		"missing 1 flow of ACL (priority 1003, allow-related), stage ls_out_acl of switch ovn-worker"},
	"removed deny": {workdir.Flows, "cookie=0x833fbe04|reg15=0x5,|priority=2000,ip,", "", "",
		"missing 1 flow of ACL ns1 deny all (to) (priority 1000, drop), stage ls_out_acl of switch ovn-worker"},
	"removed conjunction": {workdir.Flows, "conj_id=1424744798|tcp,", "", "",
		"missing 1 flow of ACL ns1_allow_web (priority 1001, allow-related), stage ls_out_acl of switch ovn-worker"},
	"removed SNAT": {workdir.Flows, "table=45,|nw_src=10.244.0.0/16|ct_state=-rpl+trk", "", "",
		"missing 1 flow of snat 172.18.0.2 for 10.244.0.0/16 of router GR_ovn-worker, stage lr_out_snat"},
	"removed MAC binding": {workdir.Flows, "table=66,|reg0=0xac120001", "", "",
		"missing 1 flow of MAC binding of 172.18.0.1 on rtoe-GR_ovn-worker: 02:00:00:00:00:fe, MAC addresses of neighbours of router GR_ovn-worker"},
	"removed service": {workdir.Flows, "table=12,|tp_dst=31000", "", "",
		"missing 1 flow of load balancer Service_np_worker, stage lr_in_unsnat of router GR_ovn-worker"},
	"removed multicast group": {workdir.Flows, "table=39,|cookie=0xb8f0507a", "", "",
		"missing 1 flow of multicast group _MC_flood of switch ovn-worker, output: to other chassis"},
	"removed default": {workdir.Flows, "table=65, |priority=0 actions", "", "",
		"missing 1 flow of output: from logical to physical"},
	"removed hairpin": {workdir.Flows, "table=68,|nw_src=10.244.2.3,|cookie=0x76f5cc0e", "", "",
		"missing 1 flow of load balancer Service_web_TCP, load balancer: hairpin"},
	"altered output": {workdir.Flows, "table=65,|reg15=0x5,metadata=0x3 ", "output:6", "output:9",
		"altered 1 flow of pod ns1/client (port ns1_client), output: from logical to physical of switch ovn-worker"},
	"altered zone": {workdir.Flows, "table=40,|reg15=0x3,metadata=0x3 ", "set_field:0x12->reg13",
		"set_field:0x13->reg13", "altered 1 flow of pod ns1/web1 (port ns1_web1), output: to this chassis of switch ovn-worker"},
	"altered deny to next": {workdir.Flows, "cookie=0x833fbe04|reg15=0x5,|priority=2000,ip,", "actions=",
		"actions=resubmit(,47),", "altered 1 flow of ACL ns1 deny all (to) (priority 1000, drop), stage ls_out_acl of switch ovn-worker"},
	"altered MAC address": {workdir.Flows, "table=66,|reg0=0xac120003", "02:42:ac:12:00:03",
		"02:42:ac:12:00:04", "altered 1 flow of MAC binding of 172.18.0.3 on rtoe-GR_ovn-worker: 02:42:ac:12:00:03, MAC addresses of neighbours of router GR_ovn-worker"},
	"altered policy": {workdir.Flows, "table=23,|nw_src=10.244.0.0/16,nw_dst=10.244.0.0/16",
		"resubmit(,24)", "drop", "altered 1 flow of policy route priority 101: ip4.src == 10.244.0.0/16 && ip4.dst == 10.244.0.0/16, allow of router ovn_cluster_router, stage lr_in_policy"},
	"altered meter of a flow": {workdir.Flows, "cookie=0x833fbe04|reg15=0x3,|priority=2000,ip,", "meter_id=2",
		"meter_id=3", "altered 1 flow of ACL ns1 deny all (to) (priority 1000, drop), stage ls_out_acl of switch ovn-worker"},
	"altered group of a flow": {workdir.Flows, "table=15,|tp_dst=31000", "group:7", "group:5",
		"altered 1 flow of load balancer Service_np_worker, stage lr_in_dnat of router GR_ovn-worker"},
	"altered idle zone and output": {workdir.Flows, "table=40,|cookie=0xb30682e3", "set_field:0x2->reg15",
		"set_field:0x3->reg15", "altered 1 flow of multicast group _MC_flood of switch ext_ovn-worker, output: to this chassis"},
	"altered cookie to none": {workdir.Flows, "table=65,|reg15=0x3,metadata=0x3 ", "cookie=0xbb31a321",
		"cookie=0x12345678", "altered 1 flow of pod ns1/web1 (port ns1_web1), output: from logical to physical of switch ovn-worker"},
	"altered cookie to another flow": {workdir.Flows, "table=46,|nw_src=10.244.1.2 |reg0=0x100/0x100", "cookie=0xf7a32e75",
		"cookie=0x39fd1b66", "altered 1 flow of ACL (priority 1003, allow-related), stage ls_out_acl of switch ovn-worker"},
	"extra stale": {workdir.Flows, "", "",
		" cookie=0xdead0001, duration=9s, table=46, n_packets=7, n_bytes=98, priority=2010,tcp,reg0=0x100/0x100,metadata=0x3,tp_dst=443 actions=resubmit(,47)", "extra 1 flow of a southbound row that no longer exists, stage ls_out_acl of switch ovn-worker"},
	"extra by hand": {workdir.Flows, "", "",
		" cookie=0x0, duration=9s, table=65, n_packets=0, n_bytes=0, priority=200,reg15=0x3,metadata=0x3 actions=drop",
		"extra 1 flow of no logical flow: ovn-controller did not write it, output: from logical to physical of switch ovn-worker"},
	"extra of a live row": {workdir.Flows, "", "",
		" cookie=0xbb31a321, duration=9s, table=65, n_packets=0, n_bytes=0, priority=100,reg15=0x33,metadata=0x3 actions=output:4", "extra 1 flow of pod ns1/web1 (port ns1_web1), output: from logical to physical of switch ovn-worker"},
	"extra beside learned flows": {workdir.Flows, "", "",
		" cookie=0x1, duration=9s, table=69, n_packets=0, n_bytes=0, priority=100,tcp,metadata=0x3 actions=drop",
		"extra 1 flow of a southbound row that no longer exists, load balancer: hairpin reply of switch ovn-worker"},
	"bucket removed": {workdir.Groups, "group_id=6,", ",bucket=bucket_id:1,", "|cut",
		"altered 1 group of load balancer Service_aff_TCP, stage ls_in_lb of switch ovn-worker"},
	"bucket altered": {workdir.Groups, "group_id=5,", "10.244.1.4:53", "10.244.1.9:53",
		"altered 1 group of load balancer Service_dns_UDP, stage lr_in_dnat of router GR_ovn-worker"},
	"weight altered": {workdir.Groups, "group_id=3,", "weight:100", "weight:10",
		"altered 1 group of load balancer Service_kubernetes_TCP, stage lr_in_dnat of router GR_ovn-worker"},
	"extra group": {workdir.Groups, "", "",
		" group_id=77,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=drop",
		"extra 1 group of no flow that refers to it"},
	"meter altered": {workdir.Meters, "rate=25", "rate=25", "rate=5",
		"altered 1 meter of logical flow of stage lr_in_learn_neighbor, priority 90 of router ovn_cluster_router"},
	"meter removed": {workdir.Meters, "meter=3 |", "meter=3 pktps stats bands=\ntype=drop rate=20\n", "",
		"missing 1 meter of ACL ns1_allow_web (priority 1001, allow-related), stage ls_out_acl of switch ovn-worker"},
}

// plantedAlone are the changes that make test plants alone: each way in which something is missing, extra or altered,
// and each way to name its cause. TestAllPlantedDriftTogether has the others that remove or add flows.
var plantedAlone = []string{"removed pod's port", "removed conjunction", "removed MAC binding", "removed default",
	"removed multicast group", "altered output", "altered zone", "altered MAC address",
	"altered group of a flow", "altered cookie to none", "altered cookie to another flow", "extra stale", "extra by hand",
	"extra of a live row", "bucket removed", "weight altered",
	"extra group", "meter altered", "meter removed"}

// TestPlantedDriftIsNamed plants one change at a time.
func TestPlantedDriftIsNamed(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	all := slices.Sorted(maps.Keys(planted))
	for _, what := range sweep.Named(t, all, func(what string) string { return what }, plantedAlone...) {
		t.Run(what, func(t *testing.T) { planted[what].check(t, wd) })
	}
}

// worker is the node of a capture, whose recorded flows tests change.
type worker struct {
	wd    *workdir.Dir
	flows string // the recorded dump
}

func openWorker(t *testing.T) worker {
	t.Helper()
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	return worker{wd, files.Read(t, wd.DumpFile("br-int", workdir.Flows))}
}

// with returns the drift of the worker with other recorded flows.
func (w worker) with(t *testing.T, flows string) *Report {
	t.Helper()
	files.Write(t, w.wd.DumpFile("br-int", workdir.Flows), flows)
	return check(t, w.wd, Options{})
}

// TestWhatIsOnItsWayIsNoDrift adds a flow of a row that the databases do not have: as it is seconds old,
// what differs in its datapath may be newer than the databases. What differs elsewhere is drift.
func TestWhatIsOnItsWayIsNoDrift(t *testing.T) {
	worker := openWorker(t)
	const added = " cookie=0xdead0001, duration=%s, table=46, n_packets=7, n_bytes=98, priority=2010,tcp,reg0=0x100/0x100,metadata=0x3,tp_dst=443 actions=resubmit(,47)"
	for _, c := range []struct {
		age, elsewhere     string
		verdict            Verdict
		differing, waiting int
	}{
		{"0.7s", "", Undetermined, 0, 4}, {"0.7s", "removed SNAT", Found, 1, 4}, {"9s", "", Found, 4, 0},
	} {
		dump := plant{new: fmt.Sprintf(added, c.age)}.apply(t, worker.flows)
		for _, what := range []string{"removed pod's port", "removed input", "altered output", c.elsewhere} {
			if what != "" {
				dump = planted[what].apply(t, dump)
			}
		}
		r := worker.with(t, dump)
		if r.Verdict != c.verdict || len(lists(r)) != c.differing || len(r.Changing) != c.waiting {
			t.Errorf("%+v: %s, %q, on their way: %+v", c, r.Verdict, lists(r), r.Changing)
		}
	}
}

// TestMACAddressJustLearned adds the flow of a MAC address that OVN learned after the databases were copied. It
// says nothing about what else differs.
func TestMACAddressJustLearned(t *testing.T) {
	worker := openWorker(t)
	const learned = " cookie=0xdead0002, duration=0.4s, table=66, n_packets=0, n_bytes=0, priority=100,reg0=0xac120063,reg15=0x2,metadata=0x2 actions=set_field:02:42:ac:12:00:63->eth_dst,set_field:0x40/0x40->reg10"
	r := worker.with(t, planted["removed SNAT"].apply(t, plant{new: learned}.apply(t, worker.flows)))
	isLearned := func(l LeftOut) bool {
		return strings.HasPrefix(l.Why, "of MAC addresses that OVN learned") && l.Flows == 1
	}
	if r.Verdict != Found || len(r.Changing) > 0 || len(lists(r)) != 1 || lists(r)[0] != planted["removed SNAT"].want ||
		!slices.ContainsFunc(r.LeftOut, isLearned) {
		t.Errorf("%s, %q, on its way: %+v, left out: %v", r.Verdict, lists(r), r.Changing, r.LeftOut)
	}
}

// check plants the change, compares, and takes it back.
func (p plant) check(t *testing.T, wd *workdir.Dir) {
	t.Helper()
	path := wd.DumpFile("br-int", p.dump)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := p.apply(t, string(original))
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := check(t, wd, Options{})
	if got := lists(r); r.Verdict != Found || len(got) != 1 || got[0] != p.want {
		t.Errorf("%s %s\n%s\nwant\n%s", r.Verdict, r.Why, strings.Join(got, "\n"), p.want)
	}
	if err := os.WriteFile(path, original, 0o600); err != nil {
		t.Fatal(err)
	}
}

// apply returns a dump with the change.
func (p plant) apply(t *testing.T, dump string) string {
	t.Helper()
	if p.line == "" {
		return dump + p.new + "\n"
	}
	if strings.Contains(p.old, "\n") {
		if strings.Count(dump, p.old) != 1 {
			t.Fatalf("%q is not in the dump", p.old)
		}
		return strings.Replace(dump, p.old, p.new, 1)
	}
	var kept []string
	found := 0
	for line := range strings.Lines(dump) {
		matches := true
		for part := range strings.SplitSeq(p.line, "|") {
			matches = matches && strings.Contains(line, part)
		}
		if !matches {
			kept = append(kept, line)
			continue
		}
		found++
		switch {
		case p.old == "":
			continue
		case p.new == "|cut":
			line = line[:strings.Index(line, p.old)] + "\n"
		case !strings.Contains(line, p.old):
			t.Fatalf("%q is not in %s", p.old, line)
		default:
			line = strings.Replace(line, p.old, p.new, 1)
		}
		kept = append(kept, line)
	}
	if found != 1 {
		t.Fatalf("%d lines have %q", found, p.line)
	}
	return strings.Join(kept, "")
}

// TestAllPlantedDriftTogether plants all changes of flows that are removed or added.
func TestAllPlantedDriftTogether(t *testing.T) {
	worker := openWorker(t)
	dump, changes := worker.flows, 0
	for _, p := range planted {
		if p.dump == workdir.Flows && (p.old == "") {
			dump = p.apply(t, dump)
			changes++
		}
	}
	r, entries := worker.with(t, dump), 0
	for _, d := range slices.Concat(r.Missing, r.Extra) {
		entries += d.Count
	}
	if r.Verdict != Found || entries != changes || len(r.Altered) > 0 {
		t.Errorf("%d of %d: %s", entries, changes, strings.Join(lists(r), "\n"))
	}
	for _, d := range r.Extra {
		if d.Stale && strings.Contains(d.What, "ls_out_acl") && d.Entries[0].Packets != "7" {
			t.Errorf("the packets of %+v", d.Entries[0])
		}
	}
}

// TestSettingsOfTheChassisGoFirst names the bridges of two ovn-controllers, as ovn-controller(8)
// lets several share a switch.
func TestSettingsOfTheChassisGoFirst(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	s := ovs.Serve(t, wd.Database(workdir.OVS))
	tool := func(args ...string) string {
		return strings.TrimSpace(s.Run(append([]string{"ovs-vsctl", "--no-wait", "--db=" + s.Remote}, args...)...))
	}
	id := strings.Trim(tool("get", "Open_vSwitch", ".", "external_ids:system-id"), `"`)
	tool("set", "Open_vSwitch", ".", "external_ids:ovn-bridge=breth0", "external_ids:ovn-bridge-"+id+"=br-int",
		"external_ids:ovn-bridge-other=br-x")
	s.Stop()
	if r := check(t, wd, Options{}); r.Verdict != None || r.Bridge != "br-int" || r.Compared.Flows == 0 {
		t.Errorf("%s %s: bridge %q, %d flows compared; want none that differs on br-int", r.Verdict, r.Why, r.Bridge,
			r.Compared.Flows)
	}
}

// northdOn serves the OVN databases of a workdir and runs an ovn-northd on them.
func northdOn(t *testing.T, wd *workdir.Dir) *ovs.Server {
	t.Helper()
	s := ovs.Serve(t, wd.Database(workdir.NB), wd.Database(workdir.SB))
	for router := range strings.FieldsSeq(s.Run("ovn-nbctl", "--db="+s.Remote, "--bare", "--columns=name", "list",
		"Logical_Router")) {
		s.Run("ovn-nbctl", "--db="+s.Remote, "remove", "Logical_Router", router, "options",
			"mac_binding_age_threshold") // else their MAC bindings end
	}
	s.Northd()
	return s
}

// TestFlowsOfADeletedACLAreStale deletes an ACL, and lets ovn-northd remove its logical
// flows, while the recorded flows stay.
func TestFlowsOfADeletedACLAreStale(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	s := northdOn(t, wd)
	s.Run("ovn-nbctl", "--db="+s.Remote, "--wait=sb", "acl-del", "pg_ns1", "from-lport", "1002",
		"inport == @pg_ns1 && ip4.dst == 10.244.2.77")
	s.Stop()
	want := 0
	raw, err := os.ReadFile(wd.DumpFile("br-int", workdir.Flows))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, "nw_dst=10.244.2.77") {
			want++
		}
	}
	r := check(t, wd, Options{})
	got := lists(r)
	if len(got) != 1 || got[0] != fmt.Sprintf("extra %d flows of a southbound row that no longer exists, stage ls_in_acl_after_lb of switch ovn-worker", want) {
		t.Errorf("%d flows of the ACL:\n%s", want, strings.Join(got, "\n"))
	}
}

// TestACLsOfOnePriorityAreNoDrift adds ACLs that drop what one of the same priority rejects.
// The recorded flows are those of the latter, and ovn-controller may install those of any.
func TestACLsOfOnePriorityAreNoDrift(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	var r *Report
	for added := 0; r == nil || len(r.Either) == 0; { // until ovn-controller installs the flows of an added ACL
		if added == 30 {
			t.Fatalf("of %d ACLs, ovn-controller always installed the recorded one", added+1)
		}
		s := northdOn(t, wd)
		for end := added + 5; added < end; added++ {
			match := strings.Repeat("ip && ", added+1) + "inport == @pg_ns1 && ip4.dst == 10.244.2.77"
			s.Run("ovn-nbctl", "--db="+s.Remote, "--wait=sb", "--apply-after-lb", "--type=port-group", "acl-add", "pg_ns1",
				"from-lport", "1002", match, "drop")
		}
		s.Stop()
		r = check(t, wd, Options{})
		expect.Equal(t, r.Verdict, None, r.Summary(), strings.Join(lists(r), "\n"))
	}
	for _, d := range r.Either {
		t.Log(d.String())
	}
	// A flow with the cookie of the other logical flow, and other actions, is drift.
	path := wd.DumpFile("br-int", workdir.Flows)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(string(raw), "\n")[r.Either[0].Entries[0].Line-1]
	match, _, _ := strings.Cut(line, "actions=")
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), line, match+"actions=resubmit(,26)", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if r = check(t, wd, Options{}); r.Verdict != Found || len(r.Altered) != 1 || r.Altered[0].Count != 1 {
		t.Errorf("%s\n%s", r.Summary(), strings.Join(lists(r), "\n"))
	}
}

// TestTwoReleasesAreTried has a node whose package is of another release than its databases.
func TestTwoReleasesAreTried(t *testing.T) {
	need(t, "23.03")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	m, err := wd.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	m.Collection(workdir.OVS).OVNVersion = "22.09.1"
	if err := workdir.WriteJSON(filepath.Join(wd.Path(), "manifest.json"), m); err != nil {
		t.Fatal(err)
	}
	if r := check(t, wd, Options{}); r.Verdict != None {
		t.Errorf("one release computes what was recorded: %s", r.Summary())
	}
	path := wd.DumpFile("br-int", workdir.Flows)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := planted["removed pod's port"]
	if err := os.WriteFile(path, []byte(p.apply(t, string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := check(t, wd, Options{}); r.Verdict != Undetermined || len(lists(r)) > 0 ||
		!strings.Contains(r.Why, "22.09.1") {
		t.Errorf("%+v", r)
	}
}

// TestNorthdDriftIsNamed changes an ACL in the NB database, which no ovn-northd sees.
func TestNorthdDriftIsNamed(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	s := ovs.Serve(t, wd.Database(workdir.NB))
	s.Run("ovn-nbctl", "--db="+s.Remote, "acl-del", "pg_ns1", "from-lport", "1002",
		"inport == @pg_ns1 && ip4.dst == 10.244.2.77")
	s.Stop()
	r := check(t, wd, Options{Northd: true})
	if got := lists(r); len(got) > 0 {
		t.Errorf("the flows are those of the SB database: %s", strings.Join(got, "\n"))
	}
	if n := r.Northd; r.Verdict != Found || n == nil || len(n.Missing) > 0 || len(n.Extra) == 0 {
		t.Errorf("%s: %+v", r.Verdict, r.Northd)
	} else {
		for _, d := range n.Extra {
			t.Log(d.String(), d.Entries)
		}
	}
}

// TestOtherReleaseIsUndetermined has a node of a release that is not there.
func TestOtherReleaseIsUndetermined(t *testing.T) {
	need(t, "23.03")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	m, err := wd.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Collections {
		m.Collections[i].OVNVersion = "24.09.1"
	}
	if err := workdir.WriteJSON(filepath.Join(wd.Path(), "manifest.json"), m); err != nil {
		t.Fatal(err)
	}
	r := check(t, wd, Options{})
	if r.Verdict != Undetermined || !strings.Contains(r.Why,
		`"ovs-offline image add SOURCE", with a container image (of a registry or a file) or a root directory that has OVN 24.09`) || strings.Contains(r.Why, "\n") || len(lists(r)) > 0 {
		t.Errorf("%+v", r)
	}
}

// ownBuild has this host's programs for those of the build that is wanted.
type ownBuild struct {
	runtime.Runtimes
	t *testing.T
}

func (o ownBuild) Choose(ctx context.Context, name string, wanted runtime.Wanted) (runtime.Choice, error) {
	expect.Equal(o.t, wanted.Build, runtime.KubeOVN, "the wanted build")
	wanted.Build = ""
	return o.Runtimes.Choose(ctx, name, wanted)
}

// TestKubeOVNNeedsItsOwnBuild marks a capture as kube-ovn marks its databases or by the image of its pods: the programs of OVN as it was
// released can't tell what is missing, and the deployment's own can.
func TestKubeOVNNeedsItsOwnBuild(t *testing.T) {
	need(t, "23.03")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	const vendor = `"where":[],"row":{"external_ids":["map",[["vendor","kube-ovn"]]]}}]`
	for name, mark := range map[string]func(wd *workdir.Dir){
		"a router": func(wd *workdir.Dir) {
			ovs.Run(t, "ovsdb-tool", "transact", wd.Database(workdir.NB), `["OVN_Northbound",{"op":"update","table":"Logical_Router",`+vendor)
		},
		"a port of the southbound database alone": func(wd *workdir.Dir) {
			if err := os.Remove(wd.Database(workdir.NB)); err != nil {
				t.Fatal(err)
			}
			ovs.Run(t, "ovsdb-tool", "transact", wd.Database(workdir.SB), `["OVN_Southbound",{"op":"update","table":"Port_Binding",`+vendor)
		},
		"the image of its pods": func(wd *workdir.Dir) {
			m, err := wd.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			m.Collections[0].Image = "docker.io/kubeovn/kube-ovn:v1.14.10"
			if err := workdir.WriteJSON(filepath.Join(wd.Path(), "manifest.json"), m); err != nil {
				t.Fatal(err)
			}
		},
	} {
		wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
		mark(wd)
		if r := check(t, wd, Options{}); r.Verdict != Undetermined ||
			!strings.Contains(r.Why, "with the patches of kube-ovn, which compute other flows") ||
			!strings.Contains(r.Why, "ovs-offline image add ") {
			t.Errorf("%s: %+v", name, r)
		}
		r, err := Check(t.Context(), wd, Options{Runtime: process.Name, Runtimes: func(wd *workdir.Dir) runtime.Runtimes {
			return ownBuild{choose.Finder("test")(wd), t}
		}})
		if err != nil || r.Verdict == Undetermined || r.Same == 0 {
			t.Errorf("%s, with its own build: %+v, %v", name, r, err)
		}
	}
}

// TestInterruptedCheckLeavesNothing ends a comparison early.
func TestInterruptedCheckLeavesNothing(t *testing.T) {
	need(t, "23.03")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Check(ctx, wd, Options{Runtime: process.Name, Runtimes: choose.Finder("test"), Progress: func(text string) {
		if strings.HasPrefix(text, "ovn-controller") {
			cancel()
		}
	}})
	if err == nil {
		t.Error("the comparison went on")
	}
	if left, _ := filepath.Glob(filepath.Join(wd.Path(), ".scratch", "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
