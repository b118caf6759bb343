package restore_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

// filesAddedByHand checks that stp/show, rstp/show and dpif/show are used
// when a person adds them to recorded/: sos collects none of them. Here the states of
// spanning trees and the datapath port numbers are in no other file.
func filesAddedByHand(t *testing.T, node *liveNode) {
	sosreport := node.report()
	for _, output := range []string{"ovs-vsctl_-t_5_list_port", "ovs-ofctl_show_stp", "ovs-ofctl_show_rstp",
		"ovs-appctl_dpctl.show_-s_system@ovs-system"} {
		remove(t, sosreport, output)
	}
	r := replayBy(t, sosreport, process.New(process.Options{}), func(wd *workdir.Dir) {
		files.Write(t, wd.Recorded(workdir.RecordedSTP), node.appctl("stp/show"))                         // of all bridges
		files.Write(t, wd.BridgeRecorded("rstp", workdir.RecordedRSTP), node.appctl("rstp/show", "rstp")) // of one
		files.Write(t, wd.Recorded(workdir.RecordedDpifShow), node.appctl("dpif/show"))
	})
	r.wantStep("datapath ports", report.Restored)
	if len(r.report.Ports) != 11 {
		t.Errorf("%d ports are listed", len(r.report.Ports))
	}
	for _, p := range r.report.Ports {
		if p.Live != p.Replica {
			t.Errorf("port %s: the live number is %s, the replica's %s", p.Port, p.Live, p.Replica)
		}
	}
	states := func(n *liveNode) string {
		var all string
		for _, command := range [][]string{{"stp/show", "stp"}, {"stp/show", "alone"}, {"rstp/show", "rstp"}} {
			for _, row := range treeRows(n.appctl(command...)) {
				all += row + "\n"
			}
		}
		return all
	}
	if want, have := states(node), states(r.liveNode); want != have {
		t.Errorf("ports of spanning trees on the node:\n%s\nin the replica:\n%s", want, have)
	}
}

// treeRows returns the name, role and state of each port of stp/show or
// rstp/show, sorted.
func treeRows(text string) []string {
	var rows []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 5 && strings.Contains(words[4], ".") {
			rows = append(rows, strings.Join(words[:3], " "))
		}
	}
	slices.Sort(rows)
	return rows
}
