package restore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/runtime/process"
)

// TestNames restores dumps with names of ports and tables, as ovs-ofctl prints
// them on a terminal.
func TestNames(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0",
		"--", "set", "Bridge", "br0", "datapath_type=system", "flow_tables:7=@acl",
		"--", "--id=@acl", "create", "Flow_Table", "name=acl",
		"--", "add-port", "br0", "vm", "--", "set", "Interface", "vm", "type=dummy",
		"--", "add-port", "br0", "p@1", "--", "set", "Interface", "p@1", "type=dummy",
		"--", "add-port", "br0", "ovn-0123456789abcdef", "--", "set", "Interface", "ovn-0123456789abcdef", "type=dummy")
	node.ofctl("-O", "OpenFlow15", "add-group", "br0", `group_id=1,type=all,bucket=actions=vm,bucket=actions="p@1"`)
	flows := []string{
		`priority=1,in_port=vm actions="p@1"`,
		`priority=2,in_port="p@1" actions=resubmit(,acl)`,
		`table=acl,priority=3,ip actions=output:vm`,
		`priority=4,ip actions=learn(table=acl,in_port=99,load:1->NXM_NX_REG0[]),group:1`,
		`priority=5,in_port=ovn-0123456789a actions=enqueue:vm:1`,
		`priority=6,udp actions=drop`,
	}
	for _, f := range flows {
		node.ofctl("-O", "OpenFlow15", "add-flow", "br0", f)
	}
	sos := node.report()
	for _, c := range []string{"dump-flows", "dump-groups"} {
		text := node.ofctl("-O", "OpenFlow15", "--names", c, "br0")
		if !strings.Contains(text, "vm") || !strings.Contains(text, `"p@1"`) {
			t.Fatalf("%s names no ports:\n%s", c, text)
		}
		if err := os.WriteFile(filepath.Join(sos, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_"+c+"_br0"), []byte(text),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := replay(t, sos, process.Options{})
	sameTables(t, node, r)
	for _, remark := range r.report.Remarks {
		expected := strings.Contains(remark, "flows choose queues") ||
			strings.Contains(remark, "no header is above its flows")
		if strings.Contains(remark, "br0") && !expected {
			t.Error(remark)
		}
	}
}

// TestNamesOfTablesBesideNumbersOfPorts restores flows that name their tables, and some of their ports or none.
func TestNamesOfTablesBesideNumbersOfPorts(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0",
		"--", "set", "Bridge", "br0", "datapath_type=system", "flow_tables:7=@acl",
		"--", "--id=@acl", "create", "Flow_Table", "name=acl",
		"--", "add-port", "br0", "vm", "--", "set", "Interface", "vm", "type=dummy", "ofport_request=4",
		"--", "add-port", "br0", "p1", "--", "set", "Interface", "p1", "type=dummy", "ofport_request=5")
	for _, f := range []string{`priority=1,in_port=vm actions=p1,resubmit(,acl)`,
		`table=acl,priority=3,ip,in_port=5 actions=output:vm,enqueue:p1:1`, `table=acl,priority=2 actions=drop`} {
		node.ofctl("-O", "OpenFlow15", "add-flow", "br0", f)
	}
	named := node.ofctl("-O", "OpenFlow15", "--names", "dump-flows", "br0")
	numbers := strings.NewReplacer("in_port=vm", "in_port=4", "in_port=p1", "in_port=5", "actions=p1", "actions=output:5",
		"actions=vm", "actions=output:4", "enqueue:p1:", "enqueue:5:")
	for name, text := range map[string]string{
		"names":   named,
		"numbers": numbers.Replace(named),
		"names in matches": strings.ReplaceAll(strings.ReplaceAll(numbers.Replace(named), "in_port=4", "in_port=vm"),
			"in_port=5", "in_port=p1"),
		"names in one action": strings.Replace(numbers.Replace(named), "output:5", "p1", 1),
	} {
		t.Run(name, func(t *testing.T) {
			sos := node.report()
			if name != "names" && !strings.Contains(text, "output:") {
				t.Fatalf("no number of a port in:\n%s", text)
			}
			if err := os.WriteFile(filepath.Join(sos, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-flows_br0"),
				[]byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			sameTables(t, node, replay(t, sos, process.Options{}))
		})
	}
}

// sameTables checks that the replica has the flows and groups of the live node, and says so.
func sameTables(t *testing.T, node *liveNode, r *replayed) {
	t.Helper()
	for _, c := range [][]string{{"--no-stats", "dump-flows", "br0"}, {"dump-groups", "br0"}} {
		args := append([]string{"-O", "OpenFlow15"}, c...)
		if live, have := node.ofctl(args...), r.ofctl(args...); live != have {
			t.Errorf("%s: live:\n%s\nreplica:\n%s", c, live, have)
		}
	}
	for _, b := range r.report.Bridges {
		for dump, c := range b.Counts {
			if c.Restored != c.Collected || c.Different > 0 {
				t.Errorf("%s: %+v", dump, *c)
			}
		}
	}
}
