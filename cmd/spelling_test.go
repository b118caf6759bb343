package cmd

import (
	"context"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/sets"
)

// spelled is an object of a capture: its name in OVN or Open vSwitch, and what its user calls it.
type spelled struct {
	name, called string
	flag         string // by which flows select it, "" for none
	table        string // of its rows where other objects have the name as well, "" for all
}

// spelledObjects returns objects of the captures, as ovn-nbctl show and the commands that made the captures name them.
func spelledObjects() map[string][]spelled {
	same := func(flag string, names ...string) (all []spelled) {
		for _, name := range names {
			all = append(all, spelled{name, name, flag, ""})
		}
		return all
	}
	worker := []spelled{{"ns1_client", "ns1/client", "--port", ""}, {"ns1_web1", "ns1/web1", "--port", ""},
		{"kube-system_coredns1", "kube-system/coredns1", "--port", ""},
		{"k8s-ovn-worker", "node/ovn-worker", "--port", ""},
		{"6b8b4567-0000-4000-8000-000000000001", "ovn-worker", "", "Chassis"}}
	worker = append(worker, same("--port", "breth0_ovn-worker", "rtoe-GR_ovn-worker", "stor-ovn-worker", "rtos-ovn-worker",
		"jtor-GR_ovn-worker", "0e10b2c3d4e5f60")...)
	worker = append(worker, same("--switch", "ovn-worker", "join", "ext_ovn-worker")...)
	worker = append(worker, same("--router", "GR_ovn-worker", "ovn_cluster_router")...)
	worker = append(worker, same("", "br-int", "pg_ns1", "ns1_allow_web", "Service_web_TCP")...)
	compute := same("--port", "p-vm1", "p-vm2", "p-sub", "provnet-1", "provnet-3", "ext-r", "int-r", "vlan-r", "lrp-ext",
		"lrp-int", "lrp-vlan", "metadata1", "tapvm1aaaaa-aa")
	compute = append(compute, same("--switch", "neutron-a1a1a1a1-0001", "neutron-b2b2b2b2-0002",
		"neutron-c3c3c3c3-0003")...)
	compute = append(compute, same("--router", "neutron-d4d4d4d4-0004")...)
	compute = append(compute, same("", "br-int", "neutron_pg_drop", "gw1")...)
	return map[string][]spelled{"ovn-kubernetes-worker": worker, "ovn-openstack-compute": compute}
}

// quotations matches what history quotes: the comments of transactions, the matches of logical flows, and rows that
// have no other name.
var quotations = regexp.MustCompile(`(?m)^\d{4}-.*$|^  [-+~] (Logical_Flow|Chassis_Private) .*$`)

// TestEachObjectHasOneSpelling asks commands about the captures. A line that names an object by its name in OVN has
// what its user calls it as well, but where it quotes; and each command answers for either name in the same way.
func TestEachObjectHasOneSpelling(t *testing.T) {
	for capture, objects := range spelledObjects() {
		s := &steps{t, filepath.Join(t.TempDir(), "wd"), map[string]bool{}}
		if exit, _, errs := s.run("-w", s.folder, "collect", captures.Report(t, "captures/"+capture)); exit != 0 {
			t.Fatal(errs)
		}
		s.start()
		printed := s.spelledOnce(objects, objects[0].called, objects[1].called)
		for _, o := range objects {
			if !hasName(printed, o.called) {
				t.Errorf("no command names %s", o.called)
			}
		}
		if command := "lsp-add ovn-worker ns1_client --"; capture == "ovn-kubernetes-worker" &&
			!strings.Contains(printed, command) {
			t.Errorf("no command quotes %s as it was", command)
		}
	}
}

// start starts the replicas, which end with the test.
func (s *steps) start() {
	s.t.Helper()
	if exit, _, errs := s.run("-w", s.folder, "start"); exit != exitDone && exit != exitIncomplete {
		s.t.Fatal(errs)
	}
	s.t.Cleanup(func() {
		if exit := run(context.Background(), []string{"-w", s.folder, "stop"}, IO{In: strings.NewReader(""), Out: io.Discard, Err: s.t.Output(), Program: programName}, nil); exit != exitDone {
			s.t.Errorf("stop ended with %d", exit)
		}
	})
}

// spelledOnce asks commands, trace for a packet between two of the objects, and returns what they print.
func (s *steps) spelledOnce(objects []spelled, from, to string) (printed string) {
	s.t.Helper()
	for _, command := range [][]string{{"flows"}, {"top"}, {"slow"}, {"check"}, {"history"}, {"timeline", "--all"},
		{"graph", "-o", "dot"}, {"graph", "--logical", "-o", "dot"}, {"drift"}, {"reach", "-o", "csv"},
		{"trace", from, to}, {"__complete", "-w", s.folder, "trace", ""}} {
		exit, out, errs := s.run(append([]string{"-w", s.folder}, command...)...)
		if exit != exitDone && exit != exitFound && exit != exitIncomplete {
			s.t.Fatalf("%v: %d %s", command, exit, errs)
		}
		if command[0] == "history" {
			out = quotations.ReplaceAllString(out, "")
		}
		printed += out
		for _, o := range objects {
			for line := range strings.Lines(out) {
				if hasName(line, o.name) && !hasName(line, o.called) {
					s.t.Errorf("%v calls %s by its name in OVN: %s", command, o.called, line)
					break
				}
			}
		}
	}
	for _, o := range sweep.Rows(objects, firstOfShapes()) {
		s.sameFor(o)
		s.sameTraced(o, to)
	}
	return printed
}

// firstOfShapes returns a function that reports whether an object is the first one of its shape: of those that the same
// flag selects and that have one name, or two of which the user's has as many parts.
func firstOfShapes() func(spelled) bool {
	type shape struct {
		flag, table string
		renamed     bool
		parts       int
	}
	seen := map[shape]bool{}
	return func(o spelled) bool {
		of := shape{o.flag, o.table, o.name != o.called, strings.Count(o.called, "/")}
		first := !seen[of]
		seen[of] = true
		return first
	}
}

// hasName reports whether a text has a name that is not a part of another one.
func hasName(text, name string) bool {
	if !strings.Contains(text, name) {
		return false // as most lines: an expression takes a thousand times as long to compile
	}
	return regexp.MustCompile(`(?:^|[^\w/-])` + regexp.QuoteMeta(name) + `(?:$|[^\w/-])`).MatchString(text)
}

// sameFor asks commands about an object by both of its names, and wants one answer.
func (s *steps) sameFor(o spelled) {
	s.t.Helper()
	questions := [][]string{{"history", "--table", o.table, "--record"}}
	if o.table == "" {
		questions = append(questions, []string{"timeline", "--all", "--record"}, []string{"graph", "-o", "dot", "--filter"},
			[]string{"graph", "--logical", "-o", "dot", "--filter"})
	}
	if o.flag != "" {
		questions = append(questions, []string{"flows", "--limit", "50", o.flag})
	}
	answered := 0
	for _, question := range questions {
		ask := func(name string) (int, string) {
			exit, out, _ := s.run(append(append([]string{"-w", s.folder}, question...), name)...)
			return exit, out
		}
		exit, out := ask(o.called)
		if exit == 0 && !strings.HasPrefix(out, "No ") {
			answered++
		}
		if o.name == o.called {
			continue
		}
		wanted, text := ask(o.name)
		expect.Equal(s.t, exit, wanted, question, o)
		if question[0] != "graph" { // whose filter takes a part of a name
			expect.Equal(s.t, out, text, question, o)
		}
	}
	if answered == 0 {
		s.t.Errorf("no command takes %s back", o.called)
	}
}

// sameTraced traces a packet from an object to another by both of its names, and wants one answer: it arrives or does
// not, or the name is of nothing that sends packets.
func (s *steps) sameTraced(o spelled, to string) {
	s.t.Helper()
	if o.flag != "--port" || o.name == o.called {
		return
	}
	wanted, text, _ := s.run("-w", s.folder, "trace", o.name, to)
	exit, out, _ := s.run("-w", s.folder, "trace", o.called, to)
	expect.Equal(s.t, exit, wanted, "trace", o)
	expect.Equal(s.t, out, text, "trace", o)
}

// TestSpellingsOfSetsAreTakenBack asks about the ports of recorded sets by what history calls them, and by their names
// in OVN.
func TestSpellingsOfSetsAreTakenBack(t *testing.T) {
	sweep.Only(t, "TestEachObjectHasOneSpelling")
	for _, set := range sets.Names() {
		s := &steps{t, t.TempDir(), map[string]bool{}}
		if _, err := sets.Recorded(t, "../scripts/lab/lab", set).Workdirs(t.Context(), s.folder, sets.Native); err != nil {
			t.Fatal(err)
		}
		s.start()
		_, out, _ := s.run("-w", s.folder, "history", "nb", "--at", "2100-01-01", "--table", "Logical_Switch_Port",
			"--detail")
		ports := portRow.FindAllStringSubmatch(out, 20)
		_, endpoints, _ := s.run("__complete", "-w", s.folder, "trace", "")
		var objects []spelled
		var asked []string
		for _, port := range ports {
			objects = append(objects, spelled{port[2], port[1], "--port", ""})
			if hasName(endpoints, port[1]) && strings.Count(out, "Logical_Switch_Port "+port[1]+" ") == 1 {
				asked = append(asked, port[1])
			}
		}
		if len(asked) > 1 {
			s.spelledOnce(objects, asked[0], asked[1])
		}
		t.Logf("%s: %d ports", set, len(ports))
	}
}

// portRow is a row of a port in the output of history: what users call it, and its name in OVN.
var portRow = regexp.MustCompile(`= Logical_Switch_Port (\S+) \([0-9a-f]{8}\)\n(?:      .*\n)*?      name "?([^"\s]+)"?\n`)
