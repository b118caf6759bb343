package check_test

import (
	"maps"
	"os"

	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/collect"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/generate/reports"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// cut cuts off the end of a text within a line.
func cut(text string) string { return text[:len(text)*6/10] }

// garble makes 20 lines unreadable.
func garble(text string) string {
	lines := strings.Split(text, "\n")
	for i := range 20 {
		n := 40 + i*(len(lines)-50)/20
		lines[n] = lines[n][:20] + "\x00\xff garbage"
	}
	return strings.Join(lines, "\n")
}

const added = " cookie=0x0, duration=1s, table=0, n_packets=37, n_bytes=3700, " +
	"priority=60000,tcp,tp_dst=443 actions=drop\n"

// harm is what was done to the reports of nodes of a set, and what check has to say of them.
type harm struct {
	nodes    []string
	harm     func(r []reports.Report)
	want     []string // a part of each finding, in their order
	unjudged string   // a part of what is not judged
}

// TestDamagedReports changes one thing in reports, and checks that this thing is found, that nothing else is, and that
// check says what it can no longer judge.
func TestDamagedReports(t *testing.T) {
	t.Run("openstack", func(t *testing.T) {
		compute1 := []string{"compute1"}
		harmed(t, sets.Recorded(t, "../../scripts/lab/lab", "openstack"), map[string]harm{
			"the dumps are cut": {compute1, func(r []reports.Report) { r[0].Edit(reports.FlowsOf("br-int"), cut) },
				[]string{"dump-flows_br-int is not whole: 1 line can't be used"},
				"drift of compute1: undetermined: 1 line of the recorded dumps"},
			"garbled dumps and an added flow": {compute1, func(r []reports.Report) {
				r[0].Edit(reports.FlowsOf("br-int"), func(text string) string { return garble(text) + added })
			}, []string{"someone added 1 flow to br-int: cookie=0x0,table=0,priority=60000,tcp,tp_dst=443 actions=drop " +
				"(37 packets) [foreign-flow]", "is not whole: 20 lines can't be used"},
				"drift of compute1: undetermined: 20 lines of the recorded dumps"},
			"the dumps are missing": {compute1, func(r []reports.Report) { r[0].Remove(reports.FlowsOf("br-int")) }, nil,
				"data-missing: the flows of br-int of compute1 were not collected"},
			"the dumps of one node are missing": {[]string{"compute1", "gateway"}, func(r []reports.Report) {
				r[0].Remove(reports.FlowsOf("br-int"))
			},
				[]string{"compute1: the flows of br-int were not collected; they were collected from gateway [data-missing]"},
				"drift of compute1: undetermined: the flows of br-int were not collected"},
			"the dumps end within a flow that is left a flow": {compute1, func(r []reports.Report) {
				r[0].Edit(reports.FlowsOf("br-int"), func(text string) string { return strings.TrimSuffix(text, "\n") })
			}, []string{"dump-flows_br-int is not whole: 1 line can't be used"}, "drift of compute1: undetermined: 1 line of the recorded dumps"},
			"another tunnel address is set": {compute1, func(r []reports.Report) {
				for _, folder := range []string{"var/lib", "etc"} {
					r[0].Transact(folder+"/openvswitch/conf.db", `["Open_vSwitch",{"op":"mutate","table":"Open_vSwitch",
						"where":[],"mutations":[["external_ids","delete",["set",["ovn-encap-ip"]]],
						["external_ids","insert",["map",[["ovn-encap-ip","192.168.24.99"]]]]]}]`)
				}
			}, []string{"the tunnel address 192.168.24.99 of the node is not in the southbound database, which has geneve " +
				"192.168.24.11 for its chassis"}, ""},
			"a port is not claimed": {[]string{"compute1", "gateway"}, func(r []reports.Report) {
				for _, one := range r {
					one.Transact("var/lib/ovn/etc/ovnsb_db.db", `["OVN_Southbound",{"op":"update","table":"Port_Binding",
						"where":[["logical_port","==","bd9e8124-4e85-4ce9-8853-39a7c44a644a"]],
						"row":{"chassis":["set",[]],"up":false}}]`)
				}
			}, []string{"has interface tapbd9e8124-4e here, and no chassis has claimed it " +
				"[port-not-claimed] explains: br-int has, and should not have, 1 flow of port vm1 "}, ""},
		})
	})
	t.Run("kubernetes-ic", func(t *testing.T) {
		harmed(t, sets.Recorded(t, "../../scripts/lab/lab", "kubernetes-ic"), map[string]harm{
			"a southbound database is missing": {[]string{"worker1", "worker2"}, func(r []reports.Report) {
				r[0].Remove("var/lib/ovn/etc/ovnsb_db.db")
			},
				[]string{"worker1: the rows of the southbound database were not collected; " +
					"they were collected from worker2 [data-missing]"},
				"what the southbound database shows: worker1 uses OVN"},
		})
	})
	t.Run("neutron-routers", func(t *testing.T) {
		const router = "sos_commands/networking/ip_netns_exec_qrouter-7fbcf5e3*"
		const ha = "sos_commands/networking/ip_netns_exec_qrouter-b4189249*_ip_-d_address_show"
		const namespace = "qrouter-b4189249-3db7-4ca5-8df4-8ad78d3d086c"
		both := []string{"network", "network2"}
		activeTwice := func(r []reports.Report) {
			address := regexp.MustCompile(`(?m)^ +inet 10\.\S+ scope global qr-\S+$`)
			r[1].Edit(ha, func(text string) string {
				found := address.FindString(files.Read(t, files.Only(t, filepath.Join(r[0].Dir, ha))))
				return strings.Replace(text, "\n3: qg-", "\n"+found+"\n3: qg-", 1)
			})
		}
		ended := regexp.MustCompile(`"end_time": "[^"]+"`) // when sos had recorded the node
		recordedAt := func(r reports.Report, moment string) {
			r.Edit("sos_reports/manifest.json", func(text string) string {
				return ended.ReplaceAllString(text, `"end_time": "`+moment+`"`)
			})
		}
		harmed(t, sets.RecordedNamespaces(t, "../../scripts/lab/lab", "neutron-routers"), map[string]harm{
			"nothing": {both, func([]reports.Report) {}, nil, ""},
			"a router does not forward": {both, func(r []reports.Report) {
				r[0].Edit(router+"sysctl_-a", func(text string) string {
					return strings.Replace(text, "net.ipv4.ip_forward = 1", "net.ipv4.ip_forward = 0", 1)
				})
			}, []string{"network: network namespace qrouter-7fbcf5e3-f5df-4221-81b1-3bd126f9e078 does not forward"}, ""},
			"a router is active twice": {both, func(r []reports.Report) {
				activeTwice(r)
				recordedAt(r[0], "2024-05-06 10:00:00")
				recordedAt(r[1], "2024-05-06 10:00:09")
			}, []string{
				"ERROR network, network2: the router of network namespace " + namespace + " is active on each of these nodes [",
				"network2: interface qg-039a6cd4-dc in network namespace " + namespace + " of port"}, ""},
			"a router is active on one node and an hour later on another": {both, func(r []reports.Report) {
				activeTwice(r)
				recordedAt(r[0], "2024-05-06 10:00:00")
				recordedAt(r[1], "2024-05-06 11:00:00")
			}, []string{"ERROR network2: interface qg-039a6cd4-dc in network namespace " + namespace + " of port",
				"WARNING network, network2: the router of network namespace " + namespace + " is active on each of these nodes, which were recorded within 60 min"}, ""},
			"no namespaces": {both, func(r []reports.Report) { r[1].Remove("sos_commands/networking") },
				[]string{"network2: the network namespaces were not collected; they were collected from network [data-missing]"},
				"interface-down of network2: the network namespaces of ha-4b38c89a-9a, qg-039a6cd4-dc, qr-355e1b48-75 were not"},
			"nothing but NORMAL": {[]string{"compute2"}, func(r []reports.Report) {
				r[0].Edit(reports.FlowsOf("br-int"), func(string) string {
					return "NXST_FLOW reply (xid=0x4):\n cookie=0x0, table=0, priority=0 actions=NORMAL\n"
				})
			}, []string{"br-int, the integration bridge of neutron-openvswitch-agent, has one flow, with the action NORMAL"},
				""},
			"the flows of the tunnels are missing": {[]string{"compute1"}, func(r []reports.Report) {
				r[0].Remove(reports.FlowsOf("br-tun"))
			},
				nil, "data-missing: the flows of br-tun of compute1 were not collected"},
		})
	})
}

// harmed checks reports of a set that were harmed.
func harmed(t *testing.T, s *sets.Set, cases map[string]harm) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var harmed []reports.Report
			paths := map[string]string{}
			for _, node := range c.nodes {
				one := reports.Unpacked(t, s, node)
				harmed, paths[node] = append(harmed, one), one.Dir
			}
			c.harm(harmed)
			looked := checkReports(t, paths)
			var lines []string
			for _, f := range looked.Findings {
				if f.Rule != "balancer-without-backends" { // the set has one
					line := check.Line(f)
					for _, explained := range f.Explains {
						line += " explains: " + explained.What
					}
					lines = append(lines, line)
				}
			}
			found := strings.Join(lines, "\n")
			lacks := func(want string) bool { return !strings.Contains(found, want) }
			if len(lines) != len(c.want) || slices.ContainsFunc(c.want, lacks) {
				t.Errorf("found:\n%s\nwant:\n%s", found, strings.Join(c.want, "\n"))
			}
			if len(c.want) > 0 && len(lines) > 0 && !strings.Contains(lines[0], c.want[0]) {
				t.Errorf("the first is %s, want %s", lines[0], c.want[0])
			}
			if all := strings.Join(looked.Unjudged, "\n"); !strings.Contains(all, c.unjudged) || c.unjudged == "" && all != "" {
				t.Errorf("not judged: %s\nwant: %s", all, c.unjudged)
			}
		})
	}
}

// TestFindingsDoNotDependOnTheOrderOfRows checks that damaged reports give the same findings in the same order and words if their rows have
// other UUIDs, and ovs-vsctl printed them in another order.
func TestFindingsDoNotDependOnTheOrderOfRows(t *testing.T) {
	t.Run("openstack", func(t *testing.T) {
		reordered(t, sets.Recorded(t, "../../scripts/lab/lab", "openstack"), unclaim)
	})
	t.Run("kubernetes-ic", func(t *testing.T) {
		reordered(t, sets.Recorded(t, "../../scripts/lab/lab", "kubernetes-ic"), unclaim)
	})
	t.Run("neutron-routers", func(t *testing.T) {
		reordered(t, sets.RecordedNamespaces(t, "../../scripts/lab/lab", "neutron-routers"), func(r reports.Report) {
			r.Remove("sos_commands/networking")
		})
	})
}

// reordered compares what is found in the harmed reports of a set with what is found in their copies with other UUIDs.
func reordered(t *testing.T, s *sets.Set, harm func(r reports.Report)) {
	paths, others := map[string]string{}, map[string]string{}
	for _, node := range s.Nodes {
		one, other := reports.Unpacked(t, s, node), reports.Unpacked(t, s, node)
		harm(one)
		harm(other)
		other.Edit("sos_commands/openvswitch/*vsctl*list_*", func(text string) string {
			rows := strings.Split(strings.TrimSpace(text), "\n\n")
			slices.Reverse(rows)
			return strings.Join(rows, "\n\n") + "\n"
		})
		paths[node], others[node] = one.Dir, other.Dir
	}
	if err := sets.Renumber(slices.Collect(maps.Values(others))...); err != nil {
		t.Fatal(err)
	}
	findings := func(paths map[string]string) string {
		var lines []string
		looked := checkReports(t, paths)
		for _, f := range looked.Findings {
			if f.Rule != "drift" { // ovn-controller floods to the ports in the order of their rows
				lines = append(lines, check.Line(f))
			}
		}
		return strings.Join(append(lines, looked.Unjudged...), "\n")
	}
	if want, got := findings(paths), findings(others); want != got {
		t.Errorf("findings:\n%s\nin another order:\n%s", want, got)
	} else if strings.Count(want, "\n") < 3 {
		t.Errorf("little is found: %s", want)
	}
}

// unclaim makes a report in which no chassis has claimed a port, and no interface has a link.
func unclaim(r reports.Report) {
	const southbound = "var/lib/ovn/etc/ovnsb_db.db"
	if _, err := os.Stat(filepath.Join(r.Dir, southbound)); err == nil {
		r.Transact(southbound, `["OVN_Southbound",{"op":"update","table":"Port_Binding","where":[["type","==",""]],
			"row":{"chassis":["set",[]],"up":false}}]`)
	}
	r.Edit("sos_commands/*/*list_[iI]nterface", func(text string) string {
		return regexp.MustCompile(`(?m)^(admin|link)_state( *): up`).ReplaceAllString(text, "${1}_state${2}: down")
	})
}

// checkReports collects the report of each node and checks them together.
func checkReports(t *testing.T, reports map[string]string) *check.Report {
	t.Helper()
	folder := t.TempDir()
	for node, dir := range reports {
		wd, err := workdir.Lock(filepath.Join(folder, node))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = collect.Collect(t.Context(), wd, collect.Files{Paths: []string{dir}}, collect.Options{})
		wd.Unlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	opened, err := snapshot.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	looked, err := check.Run(t.Context(), opened,
		check.Options{Programs: rule.Programs{Runtime: runtime.Auto, Runtimes: local.Runtimes}})
	if err != nil {
		t.Fatal(err)
	}
	return looked
}
