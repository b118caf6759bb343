package trace

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// TestPlantedFaults changes the recorded flows of the set openstack before its replicas start:
// each change is what a fault on the live node would have left in the dump.
func TestPlantedFaults(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	recorded := sets.Recorded(t, "../../scripts/lab/lab", "openstack")
	folder := ovs.Dir(t)
	paths, err := recorded.Workdirs(t.Context(), folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	number := func(label string) string {
		for _, p := range recorded.Ports {
			if p.Label == label {
				return p.Number
			}
		}
		t.Fatalf("no port %s", label)
		return ""
	}
	isPing := func(line string) bool { // the ACL of the security group that lets pings in
		return strings.Contains(line, " table=46,") && strings.Contains(line, ",icmp,reg0=0x80/0x80,")
	}
	edit(t, paths["compute1"], nil, "cookie=0x0, duration=1s, table=0, n_packets=7, n_bytes=700, priority=333,tcp,in_port="+number("vm1")+",tp_dst=99 actions=drop")
	// As ovn-controller writes an ACL that logs and rejects.
	edit(t, paths["compute1"], nil, "cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=333,tcp,in_port="+
		number("vm1")+
		",tp_dst=98 actions=controller(userdata=00.00.00.07.00.00.00.00.02.06),controller(userdata=00.00.00.16.00.00.00.00)")
	edit(t, paths["compute2"], isPing, "cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=333,tcp,in_port="+number("vm2")+",tp_src=80 actions=drop")
	databasesAlone(t, paths["compute1"], filepath.Join(folder, "cluster"))
	for _, node := range recorded.Nodes {
		fidelity.Started(t, paths[node])
	}
	s := openSet(t, folder, nil)
	asked := func(from, to, protocol string) *answer.Answer {
		a, err := s.Ask(t.Context(), Between{From: from, To: to, Question: names.Question{Protocol: protocol}})
		if err != nil {
			t.Fatalf("%s -> %s: %v", from, to, err)
		}
		return a
	}

	t.Run("a flow that ovn-controller did not write", func(t *testing.T) {
		a := asked("vm1", "vm2:99", "tcp")
		if a.Drop == nil || a.Drop.Reason != "explicit drop" || !strings.Contains(a.Drop.Rule, "in_port=vm1") ||
			!strings.Contains(a.Drop.Rule, "cookie 0x0, of no logical flow: ovn-controller did not write it") {
			t.Errorf("the foreign flow is not named:\n%s", text(a))
		}
		if a.Drop != nil && (a.Drop.Packets == nil || *a.Drop.Packets != 7) {
			t.Errorf("the recorded counter 7 is not in the answer: %v", a.Drop.Packets)
		}
	})
	t.Run("a flow that is missing", func(t *testing.T) {
		a := asked("vm1", "vm2", "icmp")
		if a.Drop == nil || a.Drop.Reason != "missing flow" ||
			!strings.Contains(a.Drop.Rule, "(ACL priority 1002, allow-related): the databases let the packet pass") ||
			!strings.Contains(a.Drop.Rule, "for it, which drift lists") {
			t.Errorf("the default drop reads as the policy:\n%s", text(a))
		}
	})
	t.Run("a backend whose reply is lost", func(t *testing.T) {
		a := asked("vm4", "192.168.10.100:80", "tcp")
		if a.Verdict != answer.Ambiguous || len(a.Replies) != 3 {
			t.Fatalf("want AMBIGUOUS with three replies:\n%s", text(a))
		}
		var lost []string
		for _, r := range a.Replies {
			if r.Verdict != answer.Reachable {
				lost = append(lost, r.Choice)
			}
		}
		if !slices.Equal(lost, []string{"backend 192.168.10.6:80 (2 of 3)"}) {
			t.Errorf("the replies of %q are lost, want that of vm2:\n%s", lost, text(a))
		}
		if !strings.Contains(a.Headline(), "3 of 3 choices arrive, and the replies from 2 of them") {
			t.Errorf("the first line is %q", a.Headline())
		}
	})
	t.Run("an ACL", func(t *testing.T) {
		a := asked("vm1", "vm4:9999", "tcp")
		d := a.Drop
		if d == nil || d.Reason != "ACL" || d.ACL == nil {
			t.Fatalf("want a drop by an ACL:\n%s", text(a))
		}
		if d.ACL.Port != "vm4" || d.ACL.Direction != "to-lport" || d.ACL.PortGroup != "neutron_pg_drop" ||
			!slices.Contains(d.ACL.Holds, "vm4") || d.ACL.Match != "outport == @neutron_pg_drop && ip" || d.ACL.UUID == "" ||
			d.Packets == nil {
			t.Errorf("the ACL is %+v", d.ACL)
		}
		if !strings.Contains(text(a), "(ACL priority 1001, drop), ingress of vm4\n") ||
			!strings.Contains(text(a), "\n  packet   tcp 192.168.10.5:40000 -> 192.168.20.5:9999, syn\n") ||
			!strings.Contains(text(a), "           ACL "+d.ACL.UUID+"; port group neutron_pg_drop holds vm1 and vm4\n") {
			t.Errorf("the text is:\n%s", text(a))
		}
	})
	t.Run("a reject that is logged", func(t *testing.T) {
		a := asked("vm1", "vm2:98", "tcp")
		if a.Verdict != answer.Unreachable || !strings.Contains(text(a), ": a TCP reset\n") {
			t.Errorf("the TCP reset is not named:\n%s", text(a))
		}
	})
	t.Run("the stages behind the bucket of a group", func(t *testing.T) {
		a := asked("external/172.24.4.99", "172.24.4.40:443", "tcp")
		met, behind := false, 0
		for _, h := range a.Path {
			for _, s := range h.Stages {
				if met && h.Node == "gateway" && h.Bridge == "br-ex" && s.Pipeline != "" {
					behind++
				}
				if s.Table >= 8 && s.Name == "" {
					t.Errorf("table %d of %s, behind the group: %v, has no name", s.Table, cmp.Or(s.OnBridge, h.Bridge), met)
				}
				met = met || strings.Contains(s.Actions, "group:")
			}
		}
		if behind == 0 {
			t.Errorf("no group is on the way in by br-ex:\n%s", text(a))
		}
	})
	t.Run("a workdir with OVN databases alone", func(t *testing.T) {
		if s.nodes["cluster"] != nil || len(s.nodes) != len(recorded.Nodes) || len(s.Unavailable()) > 0 {
			t.Errorf("the nodes are %v, and not available are %v", s.order, s.Unavailable())
		}
		if len(s.zones) != 1 {
			t.Errorf("%d control planes, want that of all: %q", len(s.zones), s.Remarks())
		}
	})
	t.Run("the wire between two nodes", func(t *testing.T) {
		a := asked("vm6", "vm1", "icmp")
		if strings.Contains(text(a), "comes out at compute1 br-ex port eth1") {
			t.Errorf("the wire is listed as an end:\n%s", text(a))
		}
	})
}

// databasesAlone makes a workdir with the OVN databases of another one.
func databasesAlone(t *testing.T, from, to string) {
	t.Helper()
	for _, kind := range []string{"ovn_nb/ovnnb_db.db", "ovn_sb/ovnsb_db.db"} {
		files.Write(t, filepath.Join(to, "db", kind), files.Read(t, filepath.Join(from, "db", kind)))
	}
}

// edit removes lines from the recorded flows of the integration bridge and adds one.
func edit(t *testing.T, wd string, remove func(line string) bool, add string) {
	t.Helper()
	path := filepath.Join(wd, "restore_flows", "br-int.flows.dump")
	dump, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(dump), "\n"), "\n")
	n := len(lines)
	if remove != nil {
		if lines = slices.DeleteFunc(lines, remove); len(lines) == n {
			t.Fatalf("%s has no such flow", path)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(append(lines, " "+add), "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
