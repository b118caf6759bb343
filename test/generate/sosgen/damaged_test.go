package sosgen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

const flowsOf = "sos_commands/openvswitch/ovs-ofctl_-O_OpenFlow15_dump-flows_"

// TestCutFilesAreUsedAndReported replays reports whose files sos has cut.
func TestCutFilesAreUsedAndReported(t *testing.T) {
	n := recorded(t, "openstack")
	e := newest()
	name := fmt.Sprintf(reportName, n.Host)
	whole := n.Report(e)
	t.Run("a dump cut by sos", func(t *testing.T) {
		tree, err := Tailed(whole, flowsOf+"br-int", 60_000)
		if err != nil {
			t.Fatal(err)
		}
		r := replay(t, writeTop(t, name, tree))
		// The dump in the next lower version is complete.
		s := supplies(e, n)
		checkBridges(t, n, r, func(b Bridge) supply {
			has := s(b)
			if b.Name == "br-int" {
				has.flows = "OpenFlow14"
			}
			return has
		})
	})
	t.Run("all dumps cut by sos", func(t *testing.T) { checkCutDumps(t, n, name, whole, Tailed) })
	t.Run("all dumps cut without a mark", func(t *testing.T) { checkCutDumps(t, n, name, whole, CutInPlace) })
	t.Run("all dumps cut between two flows", func(t *testing.T) { checkCutDumps(t, n, name, whole, cutBetweenLines) })
	t.Run("the database cut by sos", func(t *testing.T) {
		tree, err := Tailed(whole, "etc/openvswitch/conf.db", 20_000)
		if err != nil {
			t.Fatal(err)
		}
		for what, report := range map[string]Tree{
			"with lists of its tables": tree,
			"without":                  tree.Without("sos_commands/openvswitch/ovs-vsctl_-t_5_list_"),
		} {
			t.Run(what, func(t *testing.T) {
				r := replay(t, writeTop(t, name, report))
				if r.collected.code != 3 || !strings.Contains(r.collected.err, "--all-logs") {
					t.Errorf("%d %s", r.collected.code, r.collected.err)
				}
				checkBridges(t, n, r, supplies(e, n))
				if sweep.Whole() {
					r.log(t, n) // figures for people: no packet decides here
				}
			})
		}
	})
	t.Run("a dangling link to the database", func(t *testing.T) {
		tree := whole.Without("var/lib/openvswitch/",
			"etc/openvswitch/").With(Tree{"etc/openvswitch/conf.db": {Link: "../../var/lib/openvswitch/conf.db"}})
		r := replay(t, writeTop(t, name, tree))
		if r.collected.code != 3 || !strings.Contains(r.collected.err, "conf.db") {
			t.Errorf("%d %s", r.collected.code, r.collected.err)
		}
	})
}

// cutBetweenLines works like CutInPlace, but keeps only whole lines.
func cutBetweenLines(report Tree, name string, limit int) (Tree, error) {
	end := Tail(report[name].Body, limit)
	return CutInPlace(report, name, len(end)-bytes.IndexByte(end, '\n')-1)
}

// checkCutDumps replays a report that holds only the ends of br-int's flow dumps, and
// checks that the user gets a message.
func checkCutDumps(t *testing.T, n *Node, name string, whole Tree, cut func(Tree, string, int) (Tree, error)) {
	tree := whole.Without("sos_commands/ovn_host/", "sos_commands/openvswitch/ovs-appctl_bridge.dump-flows")
	for file := range whole {
		if strings.Contains(file, "dump-flows_br-int") && strings.HasPrefix(file, "sos_commands/openvswitch/ovs-ofctl") {
			var err error
			if tree, err = cut(tree, file, 60_000); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := replay(t, writeTop(t, name, tree))
	c := bridgeCheck{n: n, r: r, bridge: "br-int", version: "OpenFlow15"}
	live, have := flowsByMatch(c.truth(t, "flows")), flowsByMatch(c.dump(t, "dump-flows", "--no-stats"))
	_, _, extra := compare(live, have)
	if len(extra) > 0 || len(have) < 100 || len(have) >= len(live) {
		t.Errorf("%d flows of %d live ones, %d extra: %.300q", len(have), len(live), len(extra), extra)
	}
	if !strings.Contains(r.words(), "only its end") && !strings.Contains(r.words(), "cut") {
		t.Errorf("no message about the cut dumps: %s", r.collected.err)
	}
}

// TestErrorMessagesAreNotData replays reports that hold the error message of a failed
// command in place of its output.
func TestErrorMessagesAreNotData(t *testing.T) {
	n := recorded(t, "openstack")
	e := era("4.4-4.7.1")
	name := fmt.Sprintf(reportName, n.Host)
	const alarm = "2026-01-02T10:00:00Z|00001|fatal_signal|WARN|terminating with signal 14 (Alarm clock)\n"
	const refusal = "ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed (No such file or directory)\n"
	const bridges, flows, groups = "ovs-vsctl_-t_5_list-br", "ovs-ofctl_-O_OpenFlow15_dump-flows_br-int",
		"ovs-ofctl_-O_OpenFlow15_dump-groups_br-int"
	const noBridge = "ovs-ofctl: br-int is not a bridge or a socket\n"
	cases := map[string]map[string]string{ // what is in a file
		"list-br":            {bridges: refusal},
		"list-br, cut":       {bridges: alarm},
		"highest dump":       {flows: alarm},
		"highest groups":     {groups: noBridge},
		"half a dump":        {flows: "HALF"},
		"a dump not decoded": {flows: "DECODE"},
	}
	if !sweep.Whole() { // bridges, flows and groups are counted each by itself: a report has a fault of each
		cases = map[string]map[string]string{
			"list-br, highest dump, highest groups": {bridges: refusal, flows: alarm, groups: noBridge},
			"list-br, cut, half a dump":             {bridges: alarm, flows: "HALF"},
			"a dump not decoded":                    {flows: "DECODE"},
		}
	}
	for what, texts := range cases {
		t.Run(what, func(t *testing.T) {
			report := n.Report(e)
			for output, text := range texts {
				file := "sos_commands/openvswitch/" + output
				body := string(report[file].Body)
				switch text {
				case "HALF":
					body = body[:len(body)/2] + "\n" + alarm
				case "DECODE":
					body = body[:len(body)/2] + "\n***decode error: OFPBMC_BAD_FIELD***\n00000000  06 13 00 40 00 00 00 02-00 01 00 00 00 00 00 00 |...@............|\n"
				default:
					body = text
				}
				report = report.With(Tree{file: {Body: []byte(body)}})
			}
			r := replay(t, writeTop(t, name, report))
			checkBridges(t, n, r, func(b Bridge) supply {
				s := supplies(e, n)(b)
				if b.Name == "br-int" {
					s.flows, s.groups = "OpenFlow14", "OpenFlow14"
				}
				return s
			})
		})
	}
}

// TestBridgesWithSameFileName replays bridges whose names sos maps to the same file
// name.
func TestBridgesWithSameFileName(t *testing.T) {
	n := recorded(t, "ml2-ovs").Renamed("odd", "br-ex", "br@odd", "br-vlan", "br@@odd", "tbr-c1b50ad9-b", "br-tail-")
	e := newest()
	for what, tree := range map[string]Tree{"manifest": n.Report(e), "names": WithoutManifest(n.Report(e))} {
		t.Run(what, func(t *testing.T) {
			r := replay(t, writeTop(t, fmt.Sprintf(reportName, n.Host), tree))
			checkBridges(t, n, r, supplies(e, n))
		})
	}
}

// TestCleanedDatabasesServeEveryRow replays reports after `sos clean`, whose databases
// no longer match their checksums.
func TestCleanedDatabasesServeEveryRow(t *testing.T) {
	for _, topology := range []string{"openstack", "kubernetes"} {
		t.Run(topology, func(t *testing.T) {
			n := recorded(t, topology)
			cleaner := n.NewCleaner()
			// Where the databases lie does not change how a cleaned one is read.
			for _, e := range sweep.Last([]Era{era("4.0-4.1"), newest()}) {
				t.Run(e.Name, func(t *testing.T) {
					r := replay(t, writeTop(t, "sosreport-host0-obfuscated-2026-01-02-abcdefg", cleaner.Cleaned(n.Report(e))))
					for name, kind := range map[string]workdir.Kind{NB: workdir.NB, SB: workdir.SB} {
						live, err := n.Rows(name)
						if err != nil {
							t.Fatal(err)
						}
						sameRows(t, n, cleaner.Clean(live), "unix:"+r.Workdir.Socket(kind), name)
					}
					for _, b := range r.report.Bridges {
						live, err := n.Truth(b.Name, "flows")
						if err != nil {
							t.Fatal(err)
						}
						if got, want := b.Counts[workdir.Flows].Restored, len(flowsByMatch(string(cleaner.Clean(live)))); e.files &&
							got != want {
							t.Errorf("%s: %d flows of %d", b.Name, got, want)
						}
					}
				})
			}
		})
	}
}
