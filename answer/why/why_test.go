package why_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/why"
	"ovs-offline/collect"
	"ovs-offline/internal/show"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/reports"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

const lab = "../../scripts/lab/lab"

// asked returns the answer to why, of nodes with running replicas.
func asked(t *testing.T, folder, from, to, protocol string) *why.Document {
	t.Helper()
	all, err := snapshot.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := trace.OpenSet(t.Context(), all, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	d, err := why.Ask(t.Context(), session, all,
		trace.Between{From: from, To: to, Question: names.Question{Protocol: protocol}},
		check.Options{Programs: rule.Programs{Runtime: runtime.Auto, Runtimes: local.Runtimes}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// printed returns what a user reads.
func printed(d *why.Document) string {
	var text strings.Builder
	d.Print(&show.Page{Out: &text, Err: &text, Call: show.Call(func(string, ...string) string { return "" })})
	return text.String()
}

// fault is what was done to the nodes of a set, a packet that it concerns, and what the first line has to say.
type fault struct {
	name               string
	plant              func(r map[string]reports.Report)
	from, to, protocol string
	first              string
}

const (
	northbound = "var/lib/ovn/etc/ovnnb_db.db"
	southbound = "var/lib/ovn/etc/ovnsb_db.db"
	conf       = "*/*/openvswitch/conf.db" // of var/lib and etc
)

// everywhere changes a database of each node.
func everywhere(pattern, operations string) func(r map[string]reports.Report) {
	return func(r map[string]reports.Report) {
		for _, one := range r {
			if matched, _ := filepath.Glob(filepath.Join(one.Dir, pattern)); len(matched) > 0 {
				one.Transact(pattern, operations)
			}
		}
	}
}

// flows changes the flows of the integration bridge of a node.
func flows(node string, change func(text string) string) func(r map[string]reports.Report) {
	return func(r map[string]reports.Report) { r[node].Edit(reports.FlowsOf("br-int"), change) }
}

// without removes the lines that match.
func without(pattern string) func(text string) string {
	return func(text string) string {
		return regexp.MustCompile(`(?m)^.*(`+pattern+`).*\n`).ReplaceAllString(text, "")
	}
}

func faults() []fault {
	return []fault{
		{"security groups", everywhere(northbound, `["OVN_Northbound",{"op":"comment","comment":"someone marked it"},
			{"op":"update","table":"ACL","where":[["action","==","drop"]],
			"row":{"external_ids":["map",[["mark","1"]]]}}]`), "vm1", "vm4:443", "",
			"dropped on compute1, switch green, stage ls_out_acl: security groups: default drop"},
		{"a flow that someone added", flows("compute1", func(text string) string {
			return text + " cookie=0x0, duration=1s, table=0, n_packets=37, n_bytes=3700, priority=60000,tcp,tp_dst=22 actions=drop\n"
		}), "vm1", "vm2:22", "", "someone added"},
		{"flows of a security group are missing", flows("compute2", without(`,tp_dst=22 .*`)), "vm1", "vm2:22", "", "missing flow"},
		{"another tunnel address", func(r map[string]reports.Report) {
			r["compute2"].Transact(conf, `["Open_vSwitch",{"op":"mutate","table":"Open_vSwitch","where":[],
				"mutations":[["external_ids","delete",["set",["ovn-encap-ip"]]],
				["external_ids","insert",["map",[["ovn-encap-ip","192.168.24.99"]]]]]}]`)
		}, "vm1", "vm2:22", "", "tunnel address 192.168.24.99"},
		{"the gateway is on no chassis", everywhere(southbound, `["OVN_Southbound",{"op":"update","table":"Port_Binding",
			"where":[["type","==","chassisredirect"]],"row":{"chassis":["set",[]],"up":false}}]`),
			"vm6", "external/8.8.8.8", "icmp", "no chassis"},
		{"ovn-controller is behind", func(r map[string]reports.Report) {
			flows("compute2", without(`,tp_dst=22 .*`))(r)
			everywhere(southbound, `["OVN_Southbound",{"op":"update","table":"SB_Global","where":[],"row":{"nb_cfg":77}}]`)(r)
		}, "vm1", "vm2:22", "", "behind"},
		{"the interface is switched off", func(r map[string]reports.Report) {
			r["compute2"].Edit("sos_commands/*/*list_[iI]nterface", func(text string) string {
				return regexp.MustCompile(`(?m)^(admin|link)_state( *): up`).ReplaceAllString(text, "${1}_state${2}: down")
			})
		}, "vm1", "vm2:22", "", "switched off"},
		{"a port that no chassis has claimed", everywhere(southbound, `["OVN_Southbound",{"op":"update","table":"Port_Binding",
			"where":[["logical_port","==","bd9e8124-4e85-4ce9-8853-39a7c44a644a"]],"row":{"chassis":["set",[]],"up":false}}]`),
			"vm2", "vm1", "", "no chassis has claimed it"},
	}
}

// TestPlantedFaultsAreTheFirstLine plants a fault in the reports of a set, and asks about a packet that it concerns.
func TestPlantedFaultsAreTheFirstLine(t *testing.T) {
	fidelity.NeedScratch(t)
	s := sets.Recorded(t, lab, "openstack")
	for _, f := range sweep.Named(t, faults(), func(f fault) string { return f.name }, "ovn-controller is behind",
		"security groups") {
		t.Run(f.name, func(t *testing.T) {
			planted := map[string]reports.Report{}
			for _, node := range s.Nodes {
				planted[node] = reports.Unpacked(t, s, node)
			}
			f.plant(planted)
			folder := ovs.Dir(t)
			for _, node := range s.Nodes {
				wd, err := workdir.Lock(filepath.Join(folder, node))
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = collect.Collect(t.Context(), wd, collect.Files{Paths: []string{planted[node].Dir}}, collect.Options{})
				wd.Unlock()
				if err != nil {
					t.Fatal(err)
				}
				fidelity.Started(t, filepath.Join(folder, node))
			}
			d := asked(t, folder, f.from, f.to, f.protocol)
			text := printed(d)
			first, _, _ := strings.Cut(text, "\n")
			if !strings.Contains(first, f.first) {
				t.Errorf("the first line does not say %q:\n%s", f.first, text)
			}
			if changed := regexp.MustCompile(`the ACL was last changed at 20.*: someone marked it`); f.name == "security groups" &&
				!changed.MatchString(text) {
				t.Errorf("the last change of the ACL is not named:\n%s", text)
			}
			next := func(step rule.Next) bool { return slices.Equal(step.Args, []string{"bisect", f.from, f.to}) }
			if f.name == "security groups" && !slices.ContainsFunc(d.Next, next) {
				t.Errorf("bisect is not a next step:\n%s", text)
			}
		})
	}
}

// TestHealthyPairsAreSaidToBeHealthy asks about pairs of a set without faults.
func TestHealthyPairsAreSaidToBeHealthy(t *testing.T) {
	fidelity.NeedScratch(t)
	nodes := running.Of(t, sets.Recorded(t, lab, "openstack"))
	for _, pair := range sweep.Spread([][3]string{{"vm1", "vm2:22"}, {"vm2", "vm1", "icmp"}, {"vm1", "external/8.8.8.8", "icmp"},
		{"vm4", "vm1:80"}}, 2) {
		d := asked(t, nodes.Folder, pair[0], pair[1], pair[2])
		if text := printed(d); !strings.Contains(text, "nothing is wrong: the packet arrives") || d.Rule != "" || len(d.Also) > 0 ||
			!strings.Contains(text, "ruled out  the flows of ") {
			t.Errorf("%v: %s", pair, text)
		}
	}
}

// TestNamesStayInTheMarkdownBlock checks that a name from outside neither ends the block of a ticket nor begins another.
func TestNamesStayInTheMarkdownBlock(t *testing.T) {
	var text strings.Builder
	d := &why.Document{Question: "a -> b", Cause: "port ```\n![x](http://x)```` is down"}
	if err := d.Markdown(&text, nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if lines[0] != "`````text" || lines[len(lines)-1] != "`````" || strings.Count(text.String(), "`````") != 2 {
		t.Error(text.String())
	}
}
