package drift

import (
	"os"
	"strings"
	"testing"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestFlowsOfAnotherRouterPortAreNoDrift has a node with two routers on one VLAN, and gives
// the flows of one's port the cookie and the MAC address of the other's.
func TestFlowsOfAnotherRouterPortAreNoDrift(t *testing.T) {
	need(t, "23.03")
	lab, err := fidelity.Recorded(sets.Node(t, "../../scripts/lab/lab", "openstack", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	wd := collected.Report(t, lab.Report)
	const main, edge = "fa:16:3e:aa:00:03", "fa:16:3e:bb:00:03"
	cookies := cookiesOfPorts(t, wd)
	cookieOfMain, cookieOfEdge := cookies["lrp-main-vlan"], cookies["lrp-edge-vlan"]
	swap := strings.NewReplacer(main, edge, edge, main, cookieOfMain, cookieOfEdge, cookieOfEdge, cookieOfMain)
	path := wd.DumpFile("br-int", workdir.Flows)
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	either := func(flows string) (count int) {
		t.Helper()
		if err := os.WriteFile(path, []byte(flows), 0o600); err != nil {
			t.Fatal(err)
		}
		r := check(t, wd, Options{})
		expect.Equal(t, r.Verdict, None, r.Summary(), strings.Join(lists(r), "\n"))
		for _, d := range r.Either {
			if strings.Contains(d.Words, "-vlan") {
				count += d.Count
			}
			t.Log(d.String())
		}
		return count
	}
	swapped, changed := swapFlows(string(recorded), swap)
	if changed != 2 {
		t.Fatalf("%d flows were swapped", changed)
	}
	if a, b := either(string(recorded)), either(swapped); a+b != 2 {
		t.Errorf("%d flows of the port that ovn-controller saw first, and %d of the other, may be of either", a, b)
	}
	// The MAC address of one port with the cookie of the other is drift.
	mixed, _ := swapFlows(string(recorded), strings.NewReplacer(cookieOfMain, cookieOfEdge, cookieOfEdge, cookieOfMain))
	if err := os.WriteFile(path, []byte(mixed), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := check(t, wd, Options{}); r.Verdict != Found || len(r.Altered) != 1 || r.Altered[0].Count != 1 {
		t.Errorf("%s\n%s", r.Summary(), strings.Join(lists(r), "\n"))
	}
}

// cookiesOfPorts returns the cookies of the flows of each port.
func cookiesOfPorts(t *testing.T, wd *workdir.Dir) map[string]string {
	t.Helper()
	sb, err := file.OpenIndex(t.Context(), wd.Database(workdir.SB))
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	cookies := map[string]string{}
	for row, err := range sb.Rows(ovn.BindingTable, "logical_port") {
		if err != nil {
			t.Fatal(err)
		}
		cookies[row.String("logical_port")] = "cookie=0x" + strings.TrimLeft(row.UUID[:8], "0") + ","
	}
	return cookies
}

// swapFlows replaces texts in the flows for VLAN 120 that give routed packets the MAC address
// of a router port.
func swapFlows(dump string, swap *strings.Replacer) (swapped string, changed int) {
	var b strings.Builder
	for line := range strings.Lines(dump) {
		if strings.Contains(line, "priority=180,") && strings.Contains(line, "dl_vlan=120 ") &&
			strings.Contains(line, "conj") {
			line = swap.Replace(line)
			changed++
		}
		b.WriteString(line)
	}
	return b.String(), changed
}
