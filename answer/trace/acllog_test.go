package trace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/internal/command"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// TestFlowsExplainWhatACLsLogged turns the logs of all ACLs of a live set on, sends real packets, and follows
// each packet that the ovn-controllers logged: by an ACL with the name and the verdict of the log.
func TestFlowsExplainWhatACLsLogged(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd",
		"ovn-nbctl", "xz")
	explainsLogged(t, "")
}

// TestFlowsExplainWhatACLsLoggedOfEachRelease does the same with other releases: newer ones evaluate ACLs in one
// stage, and carry them out in another.
func TestFlowsExplainWhatACLsLoggedOfEachRelease(t *testing.T) {
	roots := os.Getenv(rootsVariable)
	if roots == "" {
		t.Skipf("%s names no folder with root file systems of other releases: make test-versions makes them", rootsVariable)
	}
	for _, release := range sweep.Last([]string{"trixie", "sid"}) {
		t.Run(release, func(t *testing.T) {
			root := filepath.Join(roots, release)
			if _, err := os.Stat(root); err != nil {
				t.Skip(err)
			}
			explainsLogged(t, root)
		})
	}
}

// explainsLogged runs the programs of a root file system, "" for this host's.
func explainsLogged(t *testing.T, root string) {
	t.Helper()
	live := logACLs(t, root)
	sendLogged(t, live)
	text := readLogged(t, live)
	out := ovs.Dir(t)
	runLab(t, root, "set-capture", live, out)
	recorded := &sets.Set{Name: "openstack", Dir: out, Nodes: []string{"compute1", "compute2", "gateway"}}
	folder, _ := startIn(t, recorded, sets.Native, root)
	all, err := snapshot.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSet(t.Context(), all, Options{Options: follow.Options{New: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	log, err := ReadACLLog(t.Context(), strings.NewReader(text))
	if err != nil || log.Lost {
		t.Fatal(log, err)
	}
	kinds := map[string]int{}
	for r := range s.Replay(t.Context(), log.Packets) {
		if r.Result != Agrees {
			t.Errorf("%s\n%s, %s, %s", r.Text(0), r.Name, r.Flow, text[:min(len(text), 300)])
		}
		protocol, _, _ := strings.Cut(r.Flow, ",")
		kinds[r.Verdict]++
		kinds[r.Direction]++
		kinds[protocol]++
		kinds["lines"] += r.Lines
	}
	t.Log(kinds)
	for _, kind := range []string{"allow", "drop", "reject", "from-lport", "to-lport", "tcp", "udp", "icmp", "tcp6",
		"udp6", "icmp6"} {
		if kinds[kind] == 0 {
			t.Errorf("no packet with %s was logged: %v", kind, kinds)
		}
	}
	for name, change := range map[string]struct{ old, new, why string }{
		"another verdict": {"verdict=drop", "verdict=allow", "has the action drop"},
		"another ACL":     {`name="acl-`, `name="nosuch-`, "no ACL has this name"},
	} {
		log, err := ReadACLLog(t.Context(), strings.NewReader(strings.ReplaceAll(text, change.old, change.new)))
		if err != nil {
			t.Fatal(err)
		}
		differ := 0
		for r := range s.Replay(t.Context(), log.Packets) {
			if r.Result == Differs && strings.Contains(r.Why, change.why) {
				differ++
			}
		}
		if differ == 0 || change.old != "verdict=drop" && differ != len(log.Packets) {
			t.Errorf("%s: %d of %d differ", name, differ, len(log.Packets))
		}
	}
}

// runLab runs the program of the lab, with the daemons of a root file system.
func runLab(t *testing.T, root string, args ...string) {
	t.Helper()
	argv := []string{"../../scripts/lab/lab"}
	if root != "" {
		argv = append(argv, "--root", root)
	}
	if _, err := command.Run(context.Background(), command.Command{Argv: append(argv, args...), Group: true}); err != nil {
		t.Fatal(err)
	}
}

// logACLs starts a set whose ACLs log under names of their own, and returns its folder.
func logACLs(t *testing.T, root string) string {
	t.Helper()
	top, err := os.MkdirTemp("", "set.") // the path of a socket holds at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(top, "s")
	t.Cleanup(func() { os.RemoveAll(top) })
	t.Cleanup(func() { runLab(t, root, "set-down", live) })
	runLab(t, root, "set-up", "openstack", live)
	nbctl := func(args ...string) string {
		argv := append([]string{"ovn-nbctl", "--db=unix:" + filepath.Join(live, "central", "ovn", "ovnnb_db.sock"),
			ovs.Timeout()}, args...)
		out, err := command.Run(t.Context(), command.Command{Argv: argv, Env: append(os.Environ(), "OVN_RUNDIR="+live)})
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const group = "neutron_pg_drop"
	nbctl("acl-add", group, "to-lport", "1500", "outport == @"+group+" && tcp.dst == 81", "reject")
	nbctl("acl-add", group, "to-lport", "1500", "outport == @"+group+" && udp.dst == 82", "allow")
	nbctl("acl-add", group, "from-lport", "1500", "inport == @"+group+" && udp.dst == 83", "drop")
	nbctl("acl-add", group, "from-lport", "1500", fmt.Sprintf("inport == @%s && udp.dst == %d", group, lastPort), "drop")
	nbctl("acl-add", group, "from-lport", "1500", "inport == @"+group+" && tcp.dst == 84", "reject")
	nbctl("acl-add", group, "from-lport", "1500", "inport == @"+group+" && tcp.dst == 85", "allow-stateless")
	var args []string
	for i, id := range strings.Fields(nbctl("--bare", "--columns=_uuid", "list", "ACL")) {
		args = append(args, "--", "set", "ACL", id, fmt.Sprintf("name=acl-%d", i), "log=true", "severity=info")
	}
	nbctl(append([]string{"--wait=hv"}, args...)...)
	nbctl("--wait=hv", "sync")
	return live
}

// lastPort is the UDP port of the last packets, which are dropped on the nodes where they enter.
const lastPort = 86

// sendLogged sends packets that ACLs let pass, drop and reject, over one node and several.
func sendLogged(t *testing.T, live string) {
	t.Helper()
	probe, err := sets.NewProbe(live)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, protocol, to string
		port               uint16
		at                 string // where it comes out, "" for nowhere
	}{
		{"vm1", "tcp", "192.168.10.6", 80, "vm2"}, {"vm1", "tcp", "192.168.10.6", 8080, ""},
		{"vm1", "tcp", "192.168.10.6", 81, ""},
		{"vm1", "icmp", "192.168.10.6", 0, "vm2"}, {"vm1", "udp", "192.168.10.6", 82, "vm2"},
		{"vm2", "udp", "192.168.10.5", 83, ""},
		{"vm2", "tcp", "192.168.10.5", 84, ""}, {"vm2", "udp", "192.168.10.5", 4444, ""},
		{"vm2", "tcp", "192.168.10.5", 443, "vm1"},
		{"vm1", "tcp", "fd00:10::6", 80, "vm2"}, {"vm1", "tcp", "fd00:10::6", 443, ""}, {"vm1", "tcp", "fd00:10::6", 81, ""},
		{"vm1", "icmp", "fd00:10::6", 0, "vm2"}, {"vm1", "udp", "fd00:10::6", 82, "vm2"},
		{"vm1", "udp", "fd00:10::6", 99, ""},
		{"vm1", "tcp", "192.168.20.5", 5432, "vm4"}, {"vm1", "tcp", "192.168.20.6", 5432, "vm5"},
		{"vm1", "tcp", "192.168.20.6", 80, ""},
		{"vm4", "udp", "192.168.10.6", 5001, "vm2"}, {"vm5", "udp", "192.168.10.5", 5001, "vm1"},
		{"vm5", "udp", "192.168.10.5", 82, "vm1"},
		{"vm4", "tcp", "192.168.10.6", 81, ""}, {"vm2", "tcp", "192.168.10.5", 85, ""},
		{"vm1", "udp", "192.168.10.6", lastPort, ""}, {"vm2", "udp", "192.168.10.5", lastPort, ""},
	} {
		var want []string
		if c.at != "" {
			want = []string{c.at}
		}
		arrived := false
		send := func() {
			if arrived, err = probe.Send(t.Context(), c.from, c.protocol, c.to, c.port, want...); err != nil {
				t.Fatal(err)
			}
		}
		if c.at == "" {
			send()
		} else {
			ovs.Resend(t, fmt.Sprintf("%+v", c), send, func() bool { return arrived })
		}
		expect.Equal(t, arrived, c.at != "", fmt.Sprintf("%+v", c))
	}
}

// readLogged returns the logs of the ovn-controllers, once they have what the packets made them log: an ovn-controller
// logs the packets of its node one after the other, and the last one that each node with instances got has a port of
// its own.
func readLogged(t *testing.T, live string) (text string) {
	t.Helper()
	ovs.Await(t, "the logs of the last packets", func() bool {
		text = ""
		last := 0
		for _, node := range []string{"compute1", "compute2", "gateway"} {
			log := files.Read(t, filepath.Join(live, "nodes", node, "ovn", "ovn-controller.log"))
			if strings.Contains(log, fmt.Sprintf("tp_dst=%d", lastPort)) {
				last++
			}
			text += log
		}
		return last == 2
	})
	return text
}

// TestACLLines reads lines of several releases and wrappings.
func TestACLLines(t *testing.T) {
	const packet = "tcp,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,dl_dst=0a:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,nw_ecn=0,nw_ttl=64,nw_frag=no,tp_src=%d,tp_dst=80,tcp_flags=syn"
	line := func(text string, src int) string {
		return fmt.Sprintf("2026-01-01T00:00:%02d.000Z|00012|acl_log(ovn_pinctrl0)|INFO|%s: "+packet+"\n", src%60, text, src)
	}
	log, err := ReadACLLog(t.Context(), strings.NewReader(line(`name="a, verdict=x: \"b\"", verdict=drop, severity=alert, direction=to-lport`, 40000)+
		line(`name="a, verdict=x: \"b\"", verdict=drop, severity=alert, direction=to-lport`, 40001)+
		line(`name="<unnamed>", verdict=allow, severity=info`, 40000)+
		"Jan  1 00:00:00 n1 ovn-controller[1]: ovs|00012|acl_log(ovn_pinctrl0)|INFO|name=\"c\", verdict=reject, severity=info, direction=from-lport: "+fmt.Sprintf(packet, 1)+"\n"+
		"2026-01-01T00:00:00.000Z|00012|acl_log(ovn_pinctrl0)|INFO|name=\"c\n2026-01-01T00:00:00.000Z|00012|acl_log(ovn_pinctrl0)|INFO|name=\"c\", verdict=drop: no=packet\xff\n2026-01-01T00:00:00.000Z|00012|binding|INFO|name\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range log.Packets {
		got = append(got, fmt.Sprintf("%d %q %s %s %s", l.Lines, l.Name, l.Verdict, l.Severity, l.Direction))
	}
	expect.Equal(t, got, []string{`2 "a, verdict=x: \"b\"" drop alert to-lport`, `1 "" allow info `,
		`1 "c" reject info from-lport`})
	if !log.Lost || len(log.Remarks) != 1 || !strings.Contains(log.Remarks[0], "lines of ACLs can't be read") {
		t.Error(log.Remarks)
	}
	if _, err := ReadACLLog(t.Context(), strings.NewReader("2026-01-01T00:00:00.000Z|00012|binding|INFO|name\n")); err == nil || !strings.Contains(err.Error(), "it has no line of an ACL") {
		t.Error(err)
	}
}

// FuzzACLLine reads any message: what is read has a verdict and a packet.
func FuzzACLLine(f *testing.F) {
	f.Add([]byte(`name="a", verdict=drop, severity=alert, direction=to-lport: tcp,vlan_tci=0x0000,dl_src=0a:00:00:00:00:01,nw_src=10.0.0.1,nw_frag=no,tp_src=40000,tp_dst=80,tcp_flags=syn`))
	f.Add([]byte(`name="<unnamed>", verdict=allow: icmp6,ipv6_src=fd00::1,icmp_type=135,nd_target=fd00::2`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, ok := parseACLLine(text)
		if ok && (l.Verdict == "" || !strings.Contains(string(text), l.Flow) || l.key() == "") {
			t.Errorf("%+v", l)
		}
	})
}
