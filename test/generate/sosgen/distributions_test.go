package sosgen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/host"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// zonesOf returns the zones that the replica of a node has.
func zonesOf(t *testing.T, r *replica) map[uint16]string {
	t.Helper()
	opened, err := host.Open(t.Context(), "", r.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	return opened.Zones
}

// TestMicroShiftReportNamesZones checks that the zones that sos's plugin microshift_ovn prints are
// those of the node's database, where the report has no database that names them.
func TestMicroShiftReportNamesZones(t *testing.T) {
	n := recorded(t, "kubernetes")
	report := n.Report(newest())
	want := zonesOf(t, replay(t, writeTop(t, "sosreport-"+n.Host, report)))
	if len(want) < 10 {
		t.Fatalf("the node has %d zones", len(want))
	}
	printed := ""
	for zone, owner := range want {
		printed += fmt.Sprintf("%s %d\n", owner, zone)
	}
	report.put("sos_commands/microshift_ovn/ovs-appctl_-t_.var.run.ovn.ovn-controller._.ctl_ct-zone-list", []byte(printed))
	without := WithoutManifest(report).Without("etc/openvswitch", "var/lib/openvswitch/conf.db",
		"sos_commands/openvswitch/ovs-vsctl_-t_5_list_")
	r := replay(t, writeTop(t, "sosreport-"+n.Host, without))
	expect.Equal(t, zonesOf(t, r), want, "zones without a database: "+r.words())
}

// TestKubeOVNFolders checks a case of kube-ovn: the folder of `kubectl ko log`, a terminal's log of its
// plugin, and databases from the paths at which the pods keep them on the host.
func TestKubeOVNFolders(t *testing.T) {
	n := recorded(t, "openstack")
	report := n.Report(newest())
	output := func(command string) string {
		return string(report["sos_commands/openvswitch/"+strings.NewReplacer(" ", "_", "/", ".").Replace(command)].Body)
	}
	terminal := ""
	for _, bridge := range n.Bridges {
		for _, dump := range []string{"dump-flows", "dump-groups", "dump-meters", "dump-tlv-map", "show"} {
			command := fmt.Sprintf("-O OpenFlow15 %s %s", dump, bridge.Name)
			terminal += fmt.Sprintf("root@admin:~# kubectl ko ofctl %s %s\n%s", n.Host, command, output("ovs-ofctl "+command))
		}
		terminal += fmt.Sprintf("root@admin:~# kubectl ko appctl %s fdb/show %s\n%s", n.Host, bridge.Name,
			output("ovs-appctl fdb/show "+bridge.Name))
	}
	terminal += fmt.Sprintf("root@admin:~# kubectl ko appctl %s bfd/show\n%s", n.Host, output("ovs-appctl bfd/show"))
	tree := Tree{}
	tree.putText("case.log", "%sroot@admin:~# exit\n", terminal)
	tree.putText("kubectl-ko-log/"+n.Host+"/linux/addr.log",
		"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n    inet 127.0.0.1/8 scope host lo\n")
	tree.putText("kubectl-ko-log/"+n.Host+"/linux/route.log", "default via 10.0.0.1 dev eth0\n")
	tree.putText("kubectl-ko-log/"+n.Host+"/openvswitch/ovs-vswitchd.log",
		"2026-11-27T07:44:49Z|00001|vlog|INFO|opened log file\n")
	tree.put("etc/origin/openvswitch/conf.db", n.Databases[OVS])
	tree.put("etc/origin/ovn/ovnnb_db.db", Cluster(t, n.Databases[NB], NB).Leader)
	tree.put("etc/origin/ovn/ovnsb_db.db", Cluster(t, n.Databases[SB], SB).Leader)
	parent := shortDir(t)
	collected := collectInto(t, parent, write(t, tree))
	if collected.code == 1 {
		t.Fatal(collected.err)
	}
	r := start(t, parent, collected)
	checkCentral(t, n, r)
	expect.Equal(t, r.manifest.Collection(workdir.OVS).Host, n.Host, "the node: "+collected.out+collected.err)
	for _, name := range []string{"recorded/" + workdir.RecordedLinks, "recorded/" + workdir.RecordedKernelRoutes} {
		if !slices.ContainsFunc(r.manifest.Collection(workdir.OVS).Files,
			func(f workdir.File) bool { return f.Path == name }) {
			t.Errorf("%s was not collected", name)
		}
	}
	if f := r.log(t, n); sameResults(f) < 100 {
		t.Errorf("the traces of %.1f %% of the packets have the same result, want all", sameResults(f))
	}
}
