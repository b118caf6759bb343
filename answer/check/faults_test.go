package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// fault is something that a person breaks in a running set.
type fault struct {
	name string
	// plant and undo are commands, one on each line: a tool and its arguments. The tools are nb
	// and sb (ovn-nbctl and ovn-sbctl), northd, and vsctl, ofctl and appctl with @NODE; of a set with
	// databases for each node, nb, sb and northd have @NODE too; sbserver is ovs-appctl for the server of the
	// southbound database. await, awaitflow, awaitlog and multiply are functions of live. Double quotes join words.
	// In {braces} is what the lab calls something: see live.expand.
	plant, undo string
	rule        string // has to find it
	says        string // a part of the sentence
	// later are commands that run when no OVN database has changed for more than the time that daemons may
	// take. quiet waits for that without commands.
	later string
	quiet bool
	// sync is how far the daemons follow: "hv" (by default) until all nodes have, "sb" until
	// ovn-northd has, "none" where they do not.
	sync string
	// outputs has the outputs of commands on the nodes recorded too, dumps also their flows, of which drift
	// is then computed, and logs what the daemons have logged since the fault was planted.
	outputs, dumps, logs bool
	// causes names the rules that find what follows from the fault.
	causes []string
	// beside plants the fault in the same round as the fault before it. The two do not touch each other, or are one
	// fault that two rules see. The round's findings come first: one other finding may precede the finding of a single
	// fault. In make test, which joins rounds, one other finding may come for each fault.
	beside bool
	// also has make test plant the fault, though one of its rule is planted in the other set or before it: for words that
	// the other one does not have, as the names of pods, or for databases of each node.
	also bool
	// alone plants the fault in a round of its own, also in make test: it touches what its neighbours touch.
	alone bool
	// here leaves the fault out with the daemons of other releases, as drift, which needs their programs.
	here bool
}

// TestPlantedFaultsAreFoundFirst breaks one thing after the other in live sets. What is wrong has to be
// the first or the second of the findings that the set does not have when nothing is broken; and these
// have to be there again, and no others, when all is mended. make test has one fault of each rule, and a sweep all.
func TestPlantedFaultsAreFoundFirst(t *testing.T) { plantFaults(t, "") }

// TestPlantedFaultsOfEachRelease does the same with the daemons of other releases.
func TestPlantedFaultsOfEachRelease(t *testing.T) {
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	for _, release := range sweep.Last([]string{"trixie", "sid"}) {
		t.Run(release, func(t *testing.T) { plantFaults(t, filepath.Join(roots, release)) })
	}
}

// plantFaults plants the faults in sets with the daemons of a root file system; "" for this host's.
func plantFaults(t *testing.T, root string) {
	t.Helper()
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl", "unshare", "xz")
	for name, planted := range map[string][][]fault{"openstack": kept(openstackFaults(), waiting()),
		"kubernetes-ic": kept(kubernetesFaults(), plantedInOpenStack())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some rounds only wait
			err := sets.Live(t.Context(), sets.Options{Lab: "../../scripts/lab/lab", Root: root, Name: name},
				func(s *sets.Set, folder string) error {
					l := &live{t: t, set: s, folder: folder, here: root == "", steps: newSteps(t)}
					l.breakAll(planted)
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// healthy are the rules that find something where nothing else is broken: the sets have a load balancer
// without backends, and a flow of a port is gone.
func healthy() []string { return []string{"balancer-without-backends", "drift"} }

// breakAll checks the set, breaks one thing after the other, and checks that all is mended.
func (l *live) breakAll(planted [][]fault) {
	folder := l.collect(recording{dumps: true})
	before := l.check(folder)
	for _, f := range before {
		if !slices.Contains(healthy(), f.Rule) {
			l.t.Errorf("nothing is broken, and yet: %s", check.Line(f))
		}
	}
	l.known = keys(before)
	if l.set.Name == "openstack" {
		l.changeFiles(folder)
	}
	for _, together := range planted {
		l.round(slices.DeleteFunc(together, func(f fault) bool { return f.here && !l.here }))
	}
	l.settle("hv")
	after, before := withoutTraces(l.check(l.collect(recording{dumps: true}))), withoutTraces(before)
	for _, f := range after {
		if !l.known[key(f)] {
			l.t.Errorf("all is mended, and yet: %s", check.Line(f))
		}
	}
	if len(after) != len(before) {
		l.t.Errorf("all is mended, and there are:\n%snot:\n%s", linesOf(after), linesOf(before))
	}
}

// rounds returns the faults that are planted together.
func rounds(faults []fault) (all [][]fault) {
	for _, f := range faults {
		if f.beside {
			all[len(all)-1] = append(all[len(all)-1], f)
		} else {
			all = append(all, []fault{f})
		}
	}
	return all
}

// waiting are the rules that judge databases in which nothing has changed for ten seconds: make test plants their
// faults in the other set.
func waiting() map[string]bool {
	return map[string]bool{"stale-southbound": true, "chassis-behind": true}
}

// plantedInOpenStack are the rules whose faults make test plants in the set openstack.
func plantedInOpenStack() map[string]bool {
	names := map[string]bool{}
	for _, f := range openstackFaults() {
		names[f.rule] = !waiting()[f.rule]
	}
	return names
}

// kept returns the rounds that have a fault of a rule that was not planted before, up to three as one; in a sweep,
// all, one by one.
func kept(faults []fault, planted map[string]bool) [][]fault {
	if sweep.Whole() {
		return rounds(faults)
	}
	var joined [][]fault
	for _, round := range firstOfEachRule(rounds(faults), planted) {
		last := len(joined) - 1
		if last >= 0 && len(joined[last]) < 3 && plain(joined[last]) && plain(round) {
			joined[last] = append(joined[last], round...)
		} else {
			joined = append(joined, round)
		}
	}
	return joined
}

// plain reports whether nothing but the sentence and the rule of the faults of a round matters.
func plain(round []fault) bool {
	return !slices.ContainsFunc(round, func(f fault) bool {
		return f.alone || f.sync != "" || f.quiet || f.later != "" || f.here || f.outputs || f.dumps || f.logs ||
			len(f.causes) > 0
	})
}

// firstOfEachRule returns the rounds that have a fault of a rule that was not planted before.
func firstOfEachRule(all [][]fault, planted map[string]bool) [][]fault {
	return slices.DeleteFunc(all, func(together []fault) (keep bool) {
		for _, f := range together {
			keep = keep || f.also || !planted[f.rule]
		}
		for _, f := range together {
			planted[f.rule] = planted[f.rule] || keep
		}
		return !keep
	})
}

// round plants faults, checks, and mends them. The first one says how far the daemons follow.
func (l *live) round(faults []fault) {
	if len(faults) == 0 {
		return
	}
	start := time.Now()
	var what recording
	var quiet bool
	var causes []string
	for _, f := range faults {
		what = recording{what.outputs || f.outputs, what.dumps || f.dumps, what.logs || f.logs}
		quiet, causes = quiet || f.quiet || f.later != "", append(causes, f.causes...)
	}
	l.noteLogs(what.logs)
	for _, f := range faults {
		l.run(f.plant)
	}
	if quiet {
		l.waitQuiet()
	}
	for _, f := range faults {
		l.run(f.later)
	}
	l.settle(faults[0].sync)
	collected := l.collect(what)
	found := slices.DeleteFunc(l.check(collected), func(one rule.Finding) bool {
		return l.known[key(one)] || slices.Contains(causes, one.Rule) || one.Rule == leftPorts && !plants(faults, leftPorts)
	})
	for _, f := range slices.Backward(faults) {
		l.run(f.undo)
	}
	l.steps.try(l.t, collected, l.set.Nodes, found)
	most := max(2, len(faults))
	if !sweep.Whole() {
		most = 2 * len(faults)
	}
	for _, f := range faults {
		l.expect(found, most, f.name, f.rule, l.expand(f.says), start)
	}
}

// expect has a rule's finding with a text among the first most.
func (l *live) expect(found []rule.Finding, most int, name, by, says string, start time.Time) {
	at := slices.IndexFunc(found, func(one rule.Finding) bool {
		return one.Rule == by &&
			strings.Contains(check.Line(one), says)
	})
	if at < 0 || at >= most {
		l.t.Errorf("%s: %s with %q is at place %d of:\n%s", name, by, says, at+1, linesOf(found))
		return
	}
	l.t.Logf("%s: found at place %d of %d in %.1f s: %s", name, at+1, len(found), time.Since(start).Seconds(),
		check.Line(found[at]))
}

// withoutTraces leaves out what the faults of a live set may really leave behind: ovn-controllers that lack flows, and
// patch ports that they made anew, with other numbers than those in the flows that the lab wrote once as ovnkube does. On a
// slow machine, rows change often for more than ten minutes.
func withoutTraces(list []rule.Finding) []rule.Finding {
	return slices.DeleteFunc(list, func(f rule.Finding) bool {
		return f.Rule == "drift" || f.Rule == leftPorts || f.Rule == "row-churn"
	})
}

// leftPorts is the rule of what patch ports leave that an earlier fault made anew: see withoutTraces.
const leftPorts = "output-to-missing-port"

// plants reports whether one of the faults is for a rule.
func plants(faults []fault, by string) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return f.rule == by })
}

func key(f rule.Finding) string { return f.Rule + "\x00" + f.What }

func keys(found []rule.Finding) map[string]bool {
	known := map[string]bool{}
	for _, f := range found {
		known[key(f)] = true
	}
	return known
}

func linesOf(found []rule.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "    %s\n", check.Line(f))
	}
	return b.String()
}
