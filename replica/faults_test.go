package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

// extracted returns a copy of the compute capture as a directory, which tests can
// damage.
func extracted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "--strip-components=1", "-xf", compute(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func edit(t *testing.T, path string, change func(string) string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyBadFlowsAreRejected adds flows that no switch accepts to good ones: each is
// named with its line and reason, and no other flow is lost.
func TestOnlyBadFlowsAreRejected(t *testing.T) {
	needTools(t)
	dir := extracted(t)
	bad := map[string]string{
		" cookie=0x1, duration=1s, table=9, n_packets=0, n_bytes=0, priority=7,nonsense=4 actions=drop":              "unknown keyword nonsense",
		" cookie=0x2, duration=1s, table=9, n_packets=0, n_bytes=0, priority=7,ip actions=frobnicate(3)":             "unknown action",
		" cookie=0x3, duration=1s, table=254, n_packets=0, n_bytes=0, priority=7,ip actions=drop":                    "the switch refuses it: OFPBRC_EPERM",
		" cookie=0x4, duration=1s, table=9, n_packets=0, n_bytes=0, priority=7,metadata=0x9 actions=mod_nw_tos:4096": "",
		"this line is no flow at all": "not a flow",
	}
	edit(t, filepath.Join(dir, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-flows_br-int"),
		func(dump string) string {
			lines := strings.SplitAfter(dump, "\n")
			at := 100
			for line := range bad {
				lines[at] += line + "\n"
				at += 200
			}
			return strings.Join(lines, "")
		})
	// All dumps hold the bad flows, so that no dump of another version helps.
	for _, v := range []string{"_-O_OpenFlow14", "_-O_OpenFlow13", ""} {
		os.Remove(filepath.Join(dir, "sos_commands/openvswitch/ovs-ofctl"+v+"_dump-flows_br-int"))
	}
	// With bridge/dump-flows it would be known that the invalid line holds no flow.
	if err := os.Remove(filepath.Join(dir, "sos_commands/openvswitch/ovs-appctl_bridge.dump-flows_--offload-stats_br-int")); err != nil {
		t.Fatal(err)
	}
	n := replay(t, dir, Options{})
	c := n.report.Bridges[0].Counts[workdir.Flows]
	if c.Collected != 958+len(bad) || c.Restored != 958 || c.Rejected != len(bad) || c.Different != 0 {
		t.Errorf("958 good flows and %d bad ones: %+v", len(bad), *c)
	}
	if n.report.Complete() {
		t.Error("the report says that everything was restored")
	}
	for line, reason := range bad {
		found := false
		for _, item := range n.report.Rejected {
			number := item.Line > 0 && item.File == "restore_flows/br-int.flows.dump"
			if strings.Contains(line, "cookie") && !strings.Contains(item.Text, strings.Fields(line)[0][:len("cookie=0x1")]) {
				continue
			}
			found = found || number && strings.Contains(item.Reason, reason)
		}
		if !found {
			t.Errorf("not named with reason %q: %s\nset aside: %+v", reason, line, n.report.Rejected)
		}
	}
}

// TestManyBadFlows mixes flows that ovs-ofctl can't read, or that the switch refuses,
// with good ones, and checks that exactly the bad ones are rejected.
func TestManyBadFlows(t *testing.T) {
	needTools(t)
	dir := extracted(t)
	kinds := []string{
		"table=9, n_packets=0, n_bytes=0, priority=7,ip actions=frobnicate(3)",
		"table=254, n_packets=0, n_bytes=0, priority=%d,ip actions=drop",
		"table=9, n_packets=0, n_bytes=0, priority=%d,ip,nw_src=1.2.3.4.5 actions=drop",
		"table=9, n_packets=0, n_bytes=0, priority=%d,ip,nonsense=%[1]d actions=drop",
		"table=254, n_packets=0, n_bytes=0, priority=%d,arp actions=drop",
	}
	every, last := sweep.Count(3, 15), sweep.Count(800, 740) // apart, and one behind the other
	bad := map[int]bool{}
	edit(t, filepath.Join(dir, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-flows_br-int"),
		func(dump string) string {
			var mixed []string
			for i, line := range strings.SplitAfter(dump, "\n") {
				mixed = append(mixed, line)
				if i%every == 2 || i > 700 && i < last && line != "" {
					kind := kinds[len(bad)%len(kinds)]
					if strings.Contains(kind, "%") {
						kind = fmt.Sprintf(kind, i)
					}
					mixed = append(mixed, fmt.Sprintf(" cookie=0xbad%d, duration=1s, %s\n", i, kind))
					bad[len(mixed)] = true
				}
			}
			return strings.Join(mixed, "")
		})
	n := replay(t, dir, Options{})
	if c := n.report.Bridges[0].Counts[workdir.Flows]; c.Restored != 958 || c.Rejected != len(bad) || c.Different != 0 {
		t.Errorf("958 good flows and %d bad ones: %+v", len(bad), *c)
	}
	for _, item := range n.report.Rejected {
		if item.Dump == workdir.Flows && !bad[item.Line] {
			t.Errorf("put aside without need: line %d: %s", item.Line, item.Text)
		}
		delete(bad, item.Line)
	}
	if len(bad) > 0 {
		t.Errorf("%d bad lines are not named", len(bad))
	}
}

// TestMissingMetersGroupsAndTLVs removes the dumps of the meters, groups and TLV
// mappings that flows refer to: the flows are restored, and placeholders are named.
func TestMissingMetersGroupsAndTLVs(t *testing.T) {
	needTools(t)
	dir := extracted(t)
	for _, pattern := range []string{"*_dump-meters_*", "*_dump-groups_*", "*_dump-tlv-map_*"} {
		found, err := filepath.Glob(filepath.Join(dir, "sos_commands/openvswitch", pattern))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := replay(t, dir, Options{})
	b := n.report.Bridges[0]
	if c := b.Counts[workdir.Flows]; c.Restored != 958 || c.Rejected != 0 {
		t.Errorf("flows: %+v", *c)
	}
	for dump, want := range map[workdir.Dump]int{workdir.Meters: 3, workdir.Groups: 1, workdir.TLV: 1} {
		if c := b.Counts[dump]; c == nil || c.Placeholders != want {
			t.Errorf("%s: %+v, want %d placeholders", dump, c, want)
		}
	}
	if !n.report.Complete() || n.report.Strict() {
		t.Error("placeholders are a remark, and an error only with --strict")
	}
}

// TestFlowsOfAnotherVersion checks that a flow is taken from another dump if its text
// in the best dump can't be read.
func TestFlowsOfAnotherVersion(t *testing.T) {
	needTools(t)
	dir := extracted(t)
	edit(t, filepath.Join(dir, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-flows_br-int"),
		func(dump string) string {
			return strings.Replace(dump, "set_field:0x1/0x1->reg10,resubmit(,22)",
				"set_field:0x1/0x1->no_such_field,resubmit(,22)", 1)
		})
	n := replay(t, dir, Options{})
	c := n.report.Bridges[0].Counts[workdir.Flows]
	if c.Rejected != 0 || c.Rewritten != 3 || c.Restored != 957 {
		t.Errorf("want 957 as they were dumped, and one in other words: %+v", *c)
	}
}

// TestRecordedDatabase compares the database as recorded, which is served beside the
// running one, with the output of ovs-vsctl list on the node.
func TestRecordedDatabase(t *testing.T) {
	needTools(t)
	n := replay(t, compute(t), Options{})
	rt := process.New(process.Options{})
	for table, file := range map[string]string{"interface": workdir.RecordedListInterface,
		"bridge": workdir.RecordedListBridge, "Open_vSwitch": workdir.RecordedListOVS} {
		out, err := rt.Tool(context.Background(), n.wd.VarRunRecorded(), nil, "ovs-vsctl", "--db=unix:"+n.wd.RecordedSocket(),
			"list", table)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := os.ReadFile(n.wd.Recorded(file))
		if err != nil {
			t.Fatal(err)
		}
		missing, extra := lines.Difference(columns(t, string(recorded)), columns(t, string(out)))
		if len(missing)+len(extra) > 0 {
			t.Errorf("%s: recorded and not served: %q; served and not recorded: %q", table, missing, extra)
		}
	}
	_, err := rt.Tool(context.Background(), n.wd.VarRunRecorded(), nil, "ovs-vsctl", "--no-wait", "--timeout=5",
		"--db=unix:"+n.wd.RecordedSocket(), "set", "Interface", "tapvm1aaaaa-aa", "external_ids:written=yes")
	if err == nil {
		t.Error("it can be written to")
	}
}

// TestNoRecordedDatabase checks that the replica is ready even if the database as
// recorded can't be served, and that the report names the problem.
func TestNoRecordedDatabase(t *testing.T) {
	needTools(t)
	wd := collected.Locked(t, compute(t))
	list := wd.Recorded(workdir.RecordedListBridge)
	if err := errors.Join(os.Remove(list), os.Mkdir(list, 0o700)); err != nil { // a folder can't be read
		t.Fatal(err)
	}
	n := startCollected(t, wd, Options{})
	if !strings.Contains(strings.Join(n.report.Remarks, "\n"), "as recorded is not served") {
		t.Errorf("remarks %q", n.report.Remarks)
	}
	state, err := ReadState(n.wd)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := ReadStatus(context.Background(), n.wd, state, process.New(process.Options{})); err != nil ||
		!status.Ready {
		t.Errorf("%+v %v", status, err)
	}
}

func columns(t *testing.T, listing string) []string {
	t.Helper()
	records, err := ovsdb.Listing(strings.NewReader(listing))
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	var list []string
	for _, r := range records {
		for _, c := range r.Columns {
			list = append(list, r.UUID+" "+c.Column+" "+c.Text)
		}
	}
	return list
}

// TestFlowsWithoutPrerequisites restores a flow that a controller had added with
// OpenFlow 1.0, and that no later version accepts.
func TestFlowsWithoutPrerequisites(t *testing.T) {
	needTools(t)
	dir := extracted(t)
	edit(t, filepath.Join(dir, "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-flows_br-int"),
		func(dump string) string {
			return dump + " cookie=0x77, duration=1s, table=200, n_packets=0, n_bytes=0, idle_age=1, reset_counts priority=7,in_port=3 actions=pop_vlan,output:4\n"
		})
	n := replay(t, dir, Options{})
	c := n.report.Bridges[0].Counts[workdir.Flows]
	expect.Equal(t, c.Collected, 959, *c, n.report.Rejected, n.report.Remarks)
	expect.Equal(t, c.Restored, 959, *c, n.report.Rejected, n.report.Remarks)
	expect.Equal(t, c.Rejected, 0, *c, n.report.Rejected, n.report.Remarks)
}
