package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/replica"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// staleCase is what a person deletes, and a packet that still meets its flows.
type staleCase struct {
	remove             func(*ovs.Central)
	from, to, protocol string
	verdict            answer.Verdict // "" for one that other nodes decide
	says               []string
	saysNot            string // "" for nothing
	compacted          bool   // the logs of the databases no longer have the deleted rows
}

// staleCases returns an ACL that lets packets in, one that rejects, a floating IP and a route.
func staleCases() map[string]staleCase {
	const group = "pg_0daadabe_77d2_42be_8221_3f08341f48d7"
	const database = "outport == @" + group + " && ip4 && ip4.src == $pg_8ac43e59_4bdc_4225_85ee_6161a9db9dc3_ip4 && " +
		"tcp && tcp.dst == 5432"
	allow := func(c *ovs.Central) { c.Nbctl("--type=port-group", "acl-del", group, "to-lport", "1002", database) }
	floatingIP := func(c *ovs.Central) {
		c.Nbctl("lr-nat-del", routerWith(c, "nat", "NAT", "external_ip=172.24.4.21"), "dnat_and_snat", "172.24.4.21")
	}
	return map[string]staleCase{
		"an ACL that lets packets in": {allow, "vm1", "vm4:5432", "tcp", answer.Reachable, []string{
			"remark   on node compute1: the packet meets 1 stale flow of security group",
			"(ACL priority 1002, allow-related), deleted at 20", "ovn-nbctl ", " acl-del " + group,
			"trust    100 % of the entries",
			"assumed: compute1 keeps the stale flows, which its databases no longer call for"}, "another moment", false},
		"the same, where nothing tells when": {allow, "vm1", "vm4:5432", "tcp", answer.Reachable, []string{
			"remark   on node compute1: the packet meets 1 stale flow of a logical flow that the southbound database no " +
				"longer has",
			"assumed: compute1 keeps the stale flows"}, "another moment", true},
		"an ACL that rejects": {func(c *ovs.Central) {
			c.Nbctl("--type=port-group", "acl-del", "pg_8ac43e59_4bdc_4225_85ee_6161a9db9dc3", "to-lport", "1005",
				"outport == @pg_8ac43e59_4bdc_4225_85ee_6161a9db9dc3 && (tcp.dst == 23 || udp.dst == 69)")
		}, "vm4", "vm1:23", "tcp", answer.Unreachable, []string{"reason   stale flow",
			"rule     ACL telnet (priority 1005, reject), deleted at 20", " acl-del pg_", ", ingress of vm1"}, "", false},
		"a floating IP": {floatingIP, "vm1", "external/198.51.100.9", "icmp", "", []string{
			"stale flows of floating ip 172.24.4.21", "lr-nat-del"}, "", false},
		"the same floating IP, where nothing tells when": {floatingIP, "vm1", "external/198.51.100.9", "icmp", "",
			[]string{"the OVN SB database is of another moment than the flows"}, "stale", true},
		"a route": {func(c *ovs.Central) {
			router := routerWith(c, "static_routes", "Logical_Router_Static_Route", `ip_prefix="10.66.0.0/16"`)
			c.Nbctl("lr-route-del", router, "10.66.0.0/16")
		}, "vm1", "external/10.66.1.1", "icmp", answer.Unreachable, []string{"reason   stale flow",
			"rule     route 10.66.0.0/16", "lr-route-del"}, "", false},
	}
}

// routerWith returns the name of the router that has the row of a condition in a column.
func routerWith(c *ovs.Central, column, table, condition string) string {
	row := strings.TrimSpace(c.Nbctl("--bare", "--columns=_uuid", "find", table, condition))
	return strings.TrimSpace(c.Nbctl("--bare", "--columns=name", "find", "Logical_Router", column+"{>=}"+row))
}

// TestStaleFlowsAreNamed deletes northbound rows with ovn-nbctl, lets ovn-northd delete their logical flows, and asks
// about packets on a node that still has the flows: an ovn-controller that no longer follows its database leaves them.
func TestStaleFlowsAreNamed(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	recorded := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	folder, before := ovs.Dir(t), t.TempDir()
	paths, err := recorded.Workdirs(t.Context(), folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	databasesAlone(t, paths["compute1"], before)
	for _, node := range recorded.Nodes {
		if node != "compute1" {
			if err := os.RemoveAll(paths[node]); err != nil {
				t.Fatal(err)
			}
		}
	}
	node := fidelity.Started(t, paths["compute1"])
	for name, c := range staleCases() {
		t.Run(name, func(t *testing.T) {
			changed, nb, sb := afterChange(t, before, c.remove)
			if c.compacted {
				ovs.Run(t, "ovsdb-tool", "compact", nb)
				ovs.Run(t, "ovsdb-tool", "compact", sb)
			}
			databasesAlone(t, changed, paths["compute1"])
			if err := node.Restart(t.Context(), replica.Options{}); err != nil {
				t.Fatal(err)
			}
			s := openSet(t, folder, nil)
			a, err := s.Ask(t.Context(), Between{From: c.from, To: c.to, Question: names.Question{Protocol: c.protocol}})
			if err != nil {
				t.Fatal(err)
			}
			if c.verdict != "" && a.Verdict != c.verdict {
				t.Errorf("the verdict is not %s", c.verdict)
			}
			if c.saysNot != "" && strings.Contains(text(a), c.saysNot) {
				t.Errorf("%q is in\n%s", c.saysNot, text(a))
			}
			for _, part := range c.says {
				if !strings.Contains(text(a), part) {
					t.Errorf("%q is not in\n%s", part, text(a))
				}
			}
		})
	}
}

// afterChange returns a folder with copies of the databases of another one, and their files, after a change of the
// northbound database that ovn-northd has carried out.
func afterChange(t *testing.T, before string, change func(*ovs.Central)) (folder, nb, sb string) {
	t.Helper()
	folder = t.TempDir()
	databasesAlone(t, before, folder)
	nb, sb = filepath.Join(folder, "db/ovn_nb/ovnnb_db.db"), filepath.Join(folder, "db/ovn_sb/ovnsb_db.db")
	central := &ovs.Central{NB: nb, SB: sb, Server: ovs.Serve(t, nb, sb)}
	central.Northd()
	change(central)
	central.Nbctl("--wait=sb", "sync")
	central.Stop()
	return folder, nb, sb
}
