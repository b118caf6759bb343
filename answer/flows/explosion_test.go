package flows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// TestPlantedExplosionIsNamedWithItsRule sends packets of 2,000 connections through a live switch, whose
// flows look at the 5-tuple, at a port, or at none of these.
func TestPlantedExplosionIsNamedWithItsRule(t *testing.T) {
	const packets = 2000
	for name, test := range map[string]struct {
		flows  []string
		fields []string
		rule   string // the cookie of the rule, "" for no finding
	}{
		"a rule about the 5-tuple": {[]string{"cookie=0x51,priority=90,udp,nw_src=10.9.9.9,nw_dst=10.9.9.8,tp_src=7,tp_dst=8,actions=drop",
			"cookie=0x52,priority=50,udp,nw_src=10.0.0.0/8,tp_src=1/1,actions=output:2",
			"cookie=0x53,priority=10,udp,tp_src=0xffff,actions=drop"},
			nil, ""},
		"a rule for each bit of the 5-tuple": {exact(packets), []string{"nw_src", "tp_dst", "tp_src"}, "0x60"},
		"a rule about a source port": {[]string{"cookie=0x61,priority=90,udp,tp_src=1000,actions=drop",
			"cookie=0x62,priority=1,udp,actions=multipath(symmetric_l4,0,modulo_n,2,0,NXM_NX_REG0[]),move:NXM_OF_UDP_SRC[]->NXM_NX_REG1[0..15],output:2"}, []string{"tp_src"}, "0x62"},
		"a rule about a range of ports": {[]string{"cookie=0x71,priority=90,udp,tp_dst=0x4000/0xc000,actions=drop"}, nil,
			""},
	} {
		t.Run(name, func(t *testing.T) {
			live := ovs.Start(t, "--enable-dummy=override")
			live.Vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=dummy", "fail_mode=secure", "--", "set",
				"Open_vSwitch", ".", "other_config:max-idle=600000")
			addPort(live, "p1")
			addPort(live, "p2")
			files.Write(t, live.Dir+"/flows", strings.Join(append(test.flows, "priority=0,actions=output:2"), "\n"))
			live.Ofctl("add-flows", "br0", live.Dir+"/flows")
			for try := 0; try < 2 || test.rule != "" && try < 20 &&
				strings.Count(live.Appctl("dpctl/dump-flows", "dummy@ovs-dummy"), "in_port(") < packets; try++ {
				sendConnections(live, packets) // again, because a busy machine loses some
			}
			wd := byHand(t, live)
			survey, err := ReadSurvey(t.Context(), wd, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, traced := range []bool{false, true} {
				source := Source{Dir: wd}
				if traced {
					source.Dir = fidelity.Started(t, wd.Path()).Workdir
				}
				found, err := Explosions(t.Context(), source, survey)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range found {
					t.Logf("%s\n%v", e, e.Rules)
				}
				if test.rule == "" {
					expect.Equal(t, len(found), 0, "explosions")
					continue
				}
				if len(found) != 1 || found[0].Flows != packets || found[0].Traced != traced {
					t.Fatalf("%+v of %d flows", found, survey.Flows)
				}
				slices.Sort(found[0].Fields)
				expect.Equal(t, found[0].Fields, test.fields, "the fields")
				rules := found[0].Rules
				if traced {
					rules = rules[:1]
				}
				if !slices.ContainsFunc(rules, func(rule Examiner) bool {
					return rule.Flow.Cookie == test.rule &&
						rule.Candidate != traced
				}) {
					t.Errorf("the rule %s is not among %v", test.rule, rules)
				}
			}
		})
	}
}

// exact returns flows that each match one connection.
func exact(n int) (flows []string) {
	for i := range n {
		flows = append(flows, fmt.Sprintf("cookie=0x60,priority=90,udp,nw_src=%s,nw_dst=10.2.0.1,tp_src=%d,tp_dst=%d,actions=output:2", sender(i), 1024+i, 80+i%7))
	}
	return flows
}

func sender(i int) string { return fmt.Sprintf("10.1.%d.%d", i%5, i%50) }

// sendConnections puts the first packets of connections into a switch.
func sendConnections(live *ovs.Switch, n int) {
	const atOnce = 40 // the queue of a dummy device holds 100
	for from := 0; from < n; from += atOnce {
		args := []string{"netdev-dummy/receive", "p1"}
		for i := from; i < min(n, from+atOnce); i++ {
			args = append(args, fmt.Sprintf("in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=%s,dst=10.2.0.1,proto=17,tos=0,ttl=64,frag=no),udp(src=%d,dst=%d)", sender(i), 1024+i, 80+i%7))
		}
		live.Appctl(args...)
	}
}

// TestSurveyCounts reads generated flows: masks, values of fields, and a line that can't be read.
func TestSurveyCounts(t *testing.T) {
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	const n = 20000
	for i := range n {
		fmt.Fprintf(&b, "recirc_id(0),in_port(%d),eth_type(0x0800),ipv4(src=10.0.0.0/255.0.0.0,dst=10.%d.%d.1,proto=6,frag=no),tcp(src=%d/0,dst=%d), packets:1, bytes:98, used:1s, actions:2\n", i%3, i>>8&255, i&255, i%60000, i%400)
	}
	b.WriteString("recirc_id(0),in_port(1) packets:\n" + strings.Repeat("x", 17<<20) + "\n")
	files.Write(t, wd.Recorded(workdir.RecordedDatapathFlows), b.String())
	seen := 0
	s, err := ReadSurvey(t.Context(), wd, func(appctl.Megaflow) { seen++ })
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, []int{s.Flows, seen, s.Lost, s.Masks, len(s.Groups)}, []int{n, n, 2, 1, 1},
		"flows, seen, lost, masks and groups")
	for _, f := range s.Groups[0].Fields {
		want, near := map[string]int{"nw_dst": n, "tp_dst": 400, "nw_src": 1, "in_port": 3}[f.Name]
		if near && (f.Values < want*97/100 || f.Values > want*103/100+1) {
			t.Errorf("%s has %d values, want %d", f.Name, f.Values, want)
		}
		if f.Name == "tp_src" {
			t.Error("a field with an empty mask is counted")
		}
	}
}

// TestExplosionsOfOVNAreNamed plants rules of OVN for which each connection has flows of its own, and names
// them in the words of OVN: an ACL that lists source ports, and a load balancer that hashes them.
func TestExplosionsOfOVNAreNamed(t *testing.T) {
	const connections = 600
	var ports []string
	for i := range connections {
		ports = append(ports, fmt.Sprint(1024+i))
	}
	for name, test := range map[string]struct {
		commands []string
		dst      string // the address and port that the packets are for
		rule     string
	}{
		"an ACL that lists source ports": {[]string{"--name=listed acl-add blue from-lport 1001 inport==\"vm1\"&&udp.src=={" +
			strings.Join(ports, ",") + "} allow-stateless"}, "10.0.1.2", "ACL listed"},
		"a load balancer with a hash": {[]string{"lb-add front 10.0.9.9:80 10.0.1.2:8080,10.0.1.3:8080 udp",
			"set Load_Balancer front selection_fields=ip_src,ip_dst,tp_src,tp_dst",
			"ls-lb-add blue front"}, "10.0.9.9", "front"},
	} {
		t.Run(name, func(t *testing.T) {
			wd := plantedWith(t, func(live *ovs.Switch) {
				const atOnce = 30
				live.Vsctl("set", "Open_vSwitch", ".", "other_config:max-idle=600000")
				for from := 0; from < connections; from += atOnce {
					args := []string{"netdev-dummy/receive", "tap-vm1"}
					for i := from; i < from+atOnce; i++ {
						args = append(args, fmt.Sprintf("in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=10.0.1.1,dst=%s,proto=17,tos=0,ttl=64,frag=no),udp(src=%d,dst=80)", test.dst, 1024+i))
					}
					live.Appctl(args...)
				}
			}, test.commands...)
			survey, err := ReadSurvey(t.Context(), wd, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, traced := range []bool{false, true} {
				source := Source{Dir: wd}
				if traced {
					source.Dir = fidelity.Started(t, wd.Path()).Workdir
				}
				found, err := Explosions(t.Context(), source, survey)
				if err != nil {
					t.Fatal(err)
				}
				if len(found) == 0 {
					t.Fatalf("nothing is found among %d flows", survey.Flows)
				}
				for _, e := range found {
					t.Logf("traced %v %s: %s\n%v\n%s", e.Traced, e.Why, e, e.Rules, e.Example)
				}
				e := found[0]
				expect.Equal(t, e.Fields, []string{"tp_src"}, "the fields")
				if e.Traced != traced || !slices.ContainsFunc(e.Rules,
					func(r Examiner) bool { return strings.Contains(r.Flow.For, test.rule) }) {
					t.Errorf("traced %v, and %q is not named: %v", e.Traced, test.rule, e.Rules)
				}
			}
		})
	}
}
