package rules

import (
	"strconv"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// openstackFlows yields the logical flows that northd made for the lab's OpenStack, with their
// rules. nb is its northbound database.
func openstackFlows(t *testing.T) (nb *file.Index, flows []Rule) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	s := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	paths, err := s.Workdirs(t.Context(), ovs.Dir(t), sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	wd, err := workdir.Find(paths["gateway"])
	if err != nil {
		t.Fatal(err)
	}
	nb, sb := open(t, wd.Database(workdir.NB)), open(t, wd.Database(workdir.SB))
	r := New(nb, sb)
	for row, err := range sb.Rows(logicalFlow, "pipeline", "table_id", "priority", "match", "actions", "external_ids",
		"logical_datapath", "logical_dp_group") {
		if err != nil {
			t.Fatal(err)
		}
		rule, err := r.LogicalFlow(row)
		if err != nil {
			t.Fatal(err)
		}
		flows = append(flows, rule)
	}
	return nb, flows
}

// TestGatewayMTUIsThatOfTheSender compares the limit of each flow that answers large packets
// with the options of the router ports. Only one port has any.
func TestGatewayMTUIsThatOfTheSender(t *testing.T) {
	nb, flows := openstackFlows(t)
	limits := map[string]string{}
	for row, err := range nb.Rows("Logical_Router_Port", "name", "options") {
		if err != nil {
			t.Fatal(err)
		}
		if mtu := row.Map("options")["gateway_mtu"]; mtu != "" {
			limits[row.String("name")] = mtu
		}
	}
	compared := 0
	for _, rule := range flows {
		port, mtu, ok := rule.Limit()
		expect.Equal(t, ok, strings.Contains(rule.Actions, "frag_mtu = "), rule.Actions)
		if !ok {
			continue
		}
		compared++
		if limits[port] != strconv.Itoa(mtu) {
			t.Errorf("the gateway_mtu of %s is %q, not %d: %s", port, limits[port], mtu, rule.Match)
		}
	}
	if compared < 6 {
		t.Errorf("only %d flows", compared)
	}
}

// TestSNATsOfOneAddress checks that a flow of two SNAT rules is not said to be that of one.
func TestSNATsOfOneAddress(t *testing.T) {
	_, flows := openstackFlows(t)
	compared := 0
	for _, rule := range flows {
		want := ""
		switch {
		case rule.Stage == "lr_in_unsnat" && strings.Contains(rule.Match, "ip4.dst == 172.24.4.10 "):
			want = "snat 172.24.4.10 of router main"
		case rule.Stage == "lr_out_snat" && strings.Contains(rule.Match, "ip4.src == 192.168.10.0/24 "):
			want = "snat 172.24.4.10 for 192.168.10.0/24 of router main"
		case rule.Stage == "lr_out_snat" && strings.Contains(rule.Match, "ip4.src == 192.168.20.0/24 "):
			want = "snat 172.24.4.10 for 192.168.20.0/24 of router main"
		default:
			continue
		}
		compared++
		expect.Equal(t, rule.Words, want, rule.Match)
	}
	if compared < 4 {
		t.Errorf("only %d flows", compared)
	}
}
