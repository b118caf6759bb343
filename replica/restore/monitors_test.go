package restore_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/oracle/trace"
)

// monitoredNode starts a node with a bridge for each kind of monitor: sFlow, IPFIX,
// sampling flows, NetFlow.
func monitoredNode(t *testing.T) (n *liveNode, packets []string) {
	n = newLiveNode(t)
	n.vsctl("add-br", "br-s", "--", "set", "Bridge", "br-s", "fail_mode=secure", "protocols=OpenFlow10,OpenFlow15",
		"--", "set", "Interface", "br-s", "options:ifindex=40")
	n.likeKernel("br-s")
	for i, p := range []string{"s1", "s2", "s3"} {
		n.vsctl("add-port", "br-s", p, "--", "set", "Interface", p, fmt.Sprintf("options:ifindex=%d", 41+i))
	}
	n.vsctl("add-port", "br-s", "s4")
	n.vsctl("add-port", "br-s", "to-i", "--", "set", "Interface", "to-i", "type=patch", "options:peer=to-s")
	n.vsctl("add-br", "br-i", "--", "set", "Bridge", "br-i", "fail_mode=secure", "--", "add-port", "br-i", "to-s", "--",
		"set", "Interface", "to-s", "type=patch", "options:peer=to-i",
		"--", "add-port", "br-i", "i1", "--", "add-port", "br-i", "i2")
	n.appctl("netdev-dummy/ip4addr", "br-s", "192.0.2.1/24")
	n.vsctl("--", "--id=@s", "create", "sFlow", "agent=br-s", `targets="127.0.0.1:6343"`, "sampling=512", "polling=30",
		"--", "set", "Bridge", "br-s", "sflow=@s",
		"--", "--id=@n", "create", "NetFlow", `targets="127.0.0.1:2055"`, "--", "set", "Bridge", "br-s", "netflow=@n")
	n.vsctl("--", "--id=@i", "create", "IPFIX", `targets="127.0.0.1:4739"`, "sampling=64", "--", "set", "Bridge", "br-i",
		"ipfix=@i",
		"--", "--id=@j", "create", "IPFIX", `targets="127.0.0.1:4740"`, "--", "--id=@b", "get", "Bridge", "br-i",
		"--", "create", "Flow_Sample_Collector_Set", "id=7", "bridge=@b", "ipfix=@j")
	for _, flow := range []string{"in_port=s1,udp,actions=s2", "in_port=s1,tcp,actions=s2,s3,LOCAL",
		"in_port=s1,icmp,actions=LOCAL", "in_port=s1,arp,actions=s4",
		"in_port=s1,ipv6,actions=to-i", "in_port=s2,actions=NORMAL", "in_port=s3,udp,actions=mod_vlan_vid:5,s1"} {
		n.ofctl("-O", "OpenFlow15", "add-flow", "br-s", flow)
	}
	n.ofctl("add-flow", "br-i", "in_port=i1,actions=sample(probability=1000,collector_set_id=7,obs_domain_id=1,obs_point_id=2),i2")
	n.ofctl("add-flow", "br-i", "in_port=to-s,actions=i1")
	for _, match := range []string{"udp", "tcp", "icmp", "arp", "ipv6", "sctp"} {
		packets = append(packets, "br-s in_port=s1,"+match)
	}
	return n, append(packets, "br-s in_port=s2,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff",
		"br-s in_port=s3,udp,dl_vlan=9,dl_vlan_pcp=3",
		"br-s in_port=LOCAL", "br-i in_port=i1,udp", "br-i in_port=i2,tcp")
}

func TestMonitors(t *testing.T) {
	needNamespaces(t)
	n, packets := monitoredNode(t)
	sos := n.report()
	r := replay(t, sos, process.Options{})
	for _, d := range differences(n, r.liveNode, packets...) {
		t.Error(d)
	}
	if !strings.Contains(n.appctl("ofproto/trace", "br-s", "in_port=s1,udp"), "output=42)") {
		t.Error("the live trace does not contain the port's ifindex: this test shows nothing")
	}
	r.wantStep("monitors", report.Restored)
	if targets := r.vsctl("--bare", "--columns=targets", "list", "sFlow") + r.vsctl("--bare", "--columns=targets", "list",
		"IPFIX") + r.vsctl("--bare", "--columns=targets", "list", "NetFlow"); strings.Count(targets, "127.0.0.1:9\n") != 4 {
		t.Errorf("targets: %s", targets)
	}
	r.isolated()

	without := replay(t, sos, process.Options{}, "monitors")
	if !anyDiffers(n, without.liveNode, packets...) {
		t.Error("the step changes nothing")
	}
}

// TestInvalidInterfaceIndexes checks that an ifindex that is not a number is
// reported where sFlow needs it, and that the others are used.
func TestInvalidInterfaceIndexes(t *testing.T) {
	needNamespaces(t)
	n := newLiveNode(t)
	n.vsctl("add-br", "br-s", "--", "add-port", "br-s", "s1", "--", "set", "Interface", "s1", "options:ifindex=41", "--",
		"add-port", "br-s", "s2", "--", "set", "Interface", "s2", "options:ifindex=42",
		"--", "add-br", "br-x", "--", "add-port", "br-x", "x1", "--", "set", "Interface", "x1", "options:ifindex=43")
	n.appctl("netdev-dummy/ip4addr", "br-s", "192.0.2.1/24")
	n.vsctl("--", "--id=@s", "create", "sFlow", "agent=br-s", `targets="127.0.0.1:6343"`, "sampling=512", "--", "set",
		"Bridge", "br-s", "sflow=@s")
	sos := n.report()
	list := sos + "/sos_commands/openvswitch/ovs-vsctl_-t_5_list_interface"
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	odd := strings.NewReplacer(": 41\n", ": many\n", ": 43\n", ": more\n").Replace(string(text))
	if err := os.WriteFile(list, []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	r := replay(t, sos, process.Options{})
	r.wantStep("monitors", report.Unknown, `br-s: the ifindex of "s1" was recorded as "many"`)
	if got := strings.TrimSpace(r.vsctl("get", "Interface", "s2", "ifindex")); got != "42" {
		t.Errorf("the ifindex of s2 is %s", got)
	}
	for _, s := range r.report.Steps {
		if strings.Contains(strings.Join(s.Details, ""), "x1") {
			t.Errorf("a port without sFlow is reported: %v", s)
		}
	}
}

// isolated checks that the replica's ovs-vswitchd has no network but its own loopback.
func (r *replayed) isolated() {
	r.t.Helper()
	pid := strings.TrimSpace(r.pid())
	devices, err := os.ReadFile("/proc/" + pid + "/net/dev")
	if err != nil {
		r.t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(devices)), "\n"); len(lines) != 3 ||
		!strings.HasPrefix(strings.TrimSpace(lines[2]), "lo:") {
		r.t.Errorf("ovs-vswitchd has these devices: %s", devices)
	}
}

func (r *replayed) pid() string {
	r.t.Helper()
	pid, err := os.ReadFile(r.dir + "/ovs-vswitchd.pid")
	if err != nil {
		r.t.Fatal(err)
	}
	return string(pid)
}

func TestMonitorsWithoutIsolation(t *testing.T) {
	n, packets := monitoredNode(t)
	r := replay(t, n.report(), process.Options{NoNamespaces: true, NoFilter: true})
	r.wantStep("monitors", report.Approximated, "br-s: sFlow is removed", "br-i: IPFIX is removed",
		"br-s: NetFlow is removed")
	for _, table := range []string{"sFlow", "IPFIX", "NetFlow"} {
		if rows := r.vsctl("--bare", "--columns=targets", "list", table); rows != "" {
			t.Errorf("%s: %s", table, rows)
		}
	}
	for _, p := range packets {
		if out := r.appctl(append([]string{"ofproto/trace"}, strings.Fields(p)...)...); strings.Contains(out, "sFlow(") ||
			strings.Contains(out, ",ipfix(") {
			t.Errorf("%s is sampled: %s", p, out)
		}
	}
	// A sample() of a flow needs no collector.
	if out := r.appctl("ofproto/trace", "br-i", "in_port=i1,udp"); !strings.Contains(out, "collector_set_id=7") {
		t.Errorf("the flow's own sample() is missing: %s", out)
	}
}

// TestMonitorsUnderFilter checks that the report names what the seccomp filter costs: a
// packet is traced without the sample() of sFlow and IPFIX, and as on the live node else.
func TestMonitorsUnderFilter(t *testing.T) {
	n, packets := monitoredNode(t)
	r := replay(t, n.report(), process.Options{NoNamespaces: true})
	const removed = "is removed, since a seccomp filter isolates the daemons here, under which they can open no collector"
	r.wantStep("monitors", report.Approximated, "br-s: sFlow "+removed+": its sample() is missing in traces",
		"br-i: IPFIX "+removed)
	actions := regexp.MustCompile("(?m)^Datapath actions: .*$")
	for _, p := range packets {
		argv := append([]string{"ofproto/trace", "--names"}, strings.Fields(p)...)
		want, have := n.appctl(argv...), r.appctl(argv...)
		if strings.Contains(have, "sFlow(") || strings.Contains(have, ",ipfix(") {
			t.Errorf("%s is sampled: %s", p, have)
		}
		if c := trace.Compare(actions.ReplaceAllString(want, ""), actions.ReplaceAllString(have, "")); !c.Whole {
			t.Errorf("%s: %s", p, c.First)
		}
	}
	if out := r.appctl("ofproto/trace", "br-i", "in_port=i1,udp"); !strings.Contains(out, "collector_set_id=7") {
		t.Errorf("the flow's own sample() is missing: %s", out)
	}
}

// TestFilterCostsNothingWithoutMonitors checks that nothing is reported where no collector
// is configured.
func TestFilterCostsNothingWithoutMonitors(t *testing.T) {
	n := newLiveNode(t)
	n.vsctl("add-br", "br0", "--", "add-port", "br0", "p1", "--", "add-port", "br0", "vx", "--", "set", "Interface", "vx",
		"type=vxlan", "options:remote_ip=192.0.2.9",
		"--", "--id=@i", "create", "IPFIX", "targets=[]", "--", "set", "Bridge", "br0", "ipfix=@i")
	n.likeKernel("br0")
	r := replay(t, n.report(), process.Options{NoNamespaces: true})
	for _, step := range r.report.Steps {
		if step.Step == "monitors" && step.Status != report.Idle {
			t.Errorf("monitors: %+v", step)
		}
	}
	if !r.report.Complete() || len(r.report.Remarks) > 0 {
		t.Errorf("the report: %+v, %q", r.report.Steps, r.report.Remarks)
	}
}
