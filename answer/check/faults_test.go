package check_test

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/check"
	"ovs-offline/answer/check/rules"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/command"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/set"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// fault is something that a person breaks in a running set.
type fault struct {
	name string
	// plant and undo are commands, one on each line: a tool and its arguments. The tools are nb
	// and sb (ovn-nbctl and ovn-sbctl), northd, and vsctl, ofctl and appctl with @NODE; of a set with
	// databases for each node, nb, sb and northd have @NODE too. Double quotes join words. In {braces} is
	// what the lab calls something: see live.expand.
	plant, undo string
	// rule is the rule that has to find it. The fault is pending if there is no such rule.
	rule string
	says string // a part of the sentence
	// sync is how far the daemons follow: "hv" (by default) until all nodes have, "sb" until
	// ovn-northd has, "none" where they do not.
	sync string
	// outputs has the outputs of commands on the nodes recorded too.
	outputs bool
	// causes names the rules that find what follows from the fault.
	causes []string
}

// TestPlantedFaultsAreFoundFirst breaks one thing after the other in live sets. What is wrong has to be
// the first or the second of the findings that the set does not have when nothing is broken; and these
// have to be there again, and no others, when all is mended.
func TestPlantedFaultsAreFoundFirst(t *testing.T) { plantFaults(t, "") }

// TestPlantedFaultsOfEachRelease does the same with the daemons of other releases.
func TestPlantedFaultsOfEachRelease(t *testing.T) {
	roots := os.Getenv("OVS_OFFLINE_ROOTS")
	if roots == "" {
		t.Skip("OVS_OFFLINE_ROOTS names no folder with root file systems of other releases: make test-versions makes them")
	}
	for _, release := range []string{"trixie", "sid"} {
		t.Run(release, func(t *testing.T) { plantFaults(t, filepath.Join(roots, release)) })
	}
}

// plantFaults plants the faults in sets with the daemons of a root file system; "" for this host's.
func plantFaults(t *testing.T, root string) {
	t.Helper()
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl", "unshare", "xz")
	for name, faults := range map[string][]fault{"openstack": openstackFaults(), "kubernetes-ic": kubernetesFaults()} {
		t.Run(name, func(t *testing.T) {
			err := sets.Live(t.Context(), sets.Options{Lab: "../../scripts/lab/lab", Root: root, Name: name}, func(s *sets.Set, folder string) error {
				l := &live{t: t, set: s, folder: folder}
				l.breakAll(faults)
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

// live is a running set of the lab.
type live struct {
	t      *testing.T
	set    *sets.Set
	folder string
}

func (l *live) breakAll(faults []fault) {
	before := l.check(true)
	for _, f := range before {
		if !slices.Contains(healthy(), f.Rule) {
			l.t.Errorf("nothing is broken, and yet: %s", check.Line(f))
		}
	}
	known := keys(before)
	for _, f := range faults {
		start := time.Now()
		if !slices.ContainsFunc(rules.All(), func(r rule.Rule) bool { return r.Name == f.rule }) {
			l.t.Logf("pending: %s: there is no rule %s yet", f.name, f.rule)
			continue
		}
		l.run(f.plant)
		l.settle(f.sync)
		found := slices.DeleteFunc(l.check(f.outputs), func(one rule.Finding) bool { return known[key(one)] || slices.Contains(f.causes, one.Rule) })
		l.run(f.undo)
		at := slices.IndexFunc(found, func(one rule.Finding) bool {
			return one.Rule == f.rule && strings.Contains(check.Line(one), l.expand(f.says))
		})
		if at < 0 || at > 1 {
			l.t.Errorf("%s: %s with %q is at place %d of:\n%s", f.name, f.rule, l.expand(f.says), at+1, linesOf(found))
			continue
		}
		l.t.Logf("%s: found at place %d of %d in %.1f s: %s", f.name, at+1, len(found), time.Since(start).Seconds(), check.Line(found[at]))
	}
	l.settle("hv")
	// After so many changes, some ovn-controllers really lack flows, so that drift is left out.
	after, before := withoutDrift(l.check(true)), withoutDrift(before)
	for _, f := range after {
		if !known[key(f)] {
			l.t.Errorf("all is mended, and yet: %s", check.Line(f))
		}
	}
	if len(after) != len(before) {
		l.t.Errorf("all is mended, and there are:\n%snot:\n%s", linesOf(after), linesOf(before))
	}
}

func withoutDrift(list []rule.Finding) []rule.Finding {
	return slices.DeleteFunc(list, func(f rule.Finding) bool { return f.Rule == "drift" })
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

// run runs commands, one on each line.
func (l *live) run(commands string) {
	l.t.Helper()
	for line := range strings.Lines(commands) {
		if words := lines.Words(l.expand(strings.TrimSpace(line))); len(words) > 0 {
			l.tool(words)
		}
	}
}

// tool runs a tool on a node or a database, and returns what it printed.
func (l *live) tool(words []string) string {
	l.t.Helper()
	tool, node, _ := strings.Cut(words[0], "@")
	central := filepath.Join(l.folder, "central", "ovn")
	home := filepath.Join(l.folder, "nodes", node)
	if _, err := os.Stat(central); err != nil && node != "" {
		central = filepath.Join(home, "ovn")
	}
	argv := map[string][]string{
		"nb": {"ovn-nbctl", "--db=unix:" + filepath.Join(central, "ovnnb_db.sock")}, "sb": {"ovn-sbctl", "--db=unix:" + filepath.Join(central, "ovnsb_db.sock")},
		"northd": {"ovn-appctl", "-t", "ovn-northd"}, "vsctl": {"ovs-vsctl"}, "ofctl": {"ovs-ofctl", "-O", "OpenFlow15"}, "appctl": {"ovs-appctl"}, "sleep": {"sleep"},
	}[tool]
	if argv == nil {
		l.t.Fatalf("no tool %s", tool)
	}
	env := append(os.Environ(), "OVS_RUNDIR="+filepath.Join(home, "ovs"), "OVN_RUNDIR="+central)
	if tool != "sleep" && tool != "northd" {
		argv = append(argv, "--timeout=20")
	}
	out, err := command.Run(l.t.Context(), command.Command{Argv: append(argv, words[1:]...), Env: env})
	if err != nil {
		l.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return string(out)
}

// settle returns when the daemons have followed all changes.
func (l *live) settle(how string) {
	l.t.Helper()
	nodes := []string{""}
	if _, err := os.Stat(filepath.Join(l.folder, "central")); err != nil {
		nodes = l.set.Nodes
	}
	for _, node := range nodes {
		at := "@" + node
		switch how {
		case "", "hv":
			l.tool([]string{"nb" + at, "--wait=hv", "sync"})
			l.tool([]string{"nb" + at, "--wait=hv", "sync"}) // what the nodes wrote into the databases
		case "sb":
			l.tool([]string{"nb" + at, "--wait=sb", "sync"})
		}
	}
}

var braces = regexp.MustCompile(`\{([a-z]+)(@[a-z0-9]+)?(?: ([^{}]*))?\}`)

// expand replaces what is in braces: {net N}, {router N}, {port N}, {lrp N}, {pg N} and {provnet N} are the
// names in OVN of what the lab calls N, as its functions of these names make them; {tap N} is the
// interface of port N, and {folder} the folder of the set; {nb TABLE CONDITION COLUMN} is a column of a row, and so for sb. Of the zone of a
// node these are {nb@NODE ...}.
func (l *live) expand(text string) string {
	for range strings.Count(text, "{") { // one may be within another
		text = l.expandInner(text)
	}
	return text
}

func (l *live) expandInner(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		parts := braces.FindStringSubmatch(found)
		name := parts[3]
		switch parts[1] {
		case "folder":
			return l.folder
		case "net", "router":
			return "neutron-" + madeUUID(parts[1]+"-"+name)
		case "port":
			return madeUUID("port-" + name)
		case "lrp":
			return "lrp-" + madeUUID("port-"+name)
		case "provnet":
			return "provnet-" + madeUUID("segment-"+name)
		case "pg":
			return "pg_" + strings.ReplaceAll(madeUUID("sg-"+name), "-", "_")
		case "tap":
			return "tap" + madeUUID("port-" + name)[:11]
		case "nb", "sb":
			words := strings.Fields(name)
			return strings.TrimSpace(l.tool([]string{parts[1] + parts[2], "--bare", "--columns=" + words[2], "find", words[0], words[1]}))
		}
		return found
	})
}

// madeUUID returns the UUID that the lab makes of a text: made_uuid of scripts/lab/set.sh.
func madeUUID(text string) string {
	sum := fmt.Sprintf("%x", md5.Sum([]byte(text)))
	return sum[:8] + "-" + sum[8:12] + "-4" + sum[13:16] + "-8" + sum[17:20] + "-" + sum[20:]
}

// check records the set and checks it.
func (l *live) check(outputs bool) []rule.Finding {
	l.t.Helper()
	folder := l.t.TempDir()
	for _, node := range l.set.Nodes {
		wd, err := workdir.Find(filepath.Join(folder, node))
		if err != nil {
			l.t.Fatal(err)
		}
		l.record(wd, node, outputs)
	}
	s, err := set.Open(folder, "test", nil)
	if err != nil || s == nil {
		l.t.Fatal(s, err)
	}
	report, err := check.Run(l.t.Context(), s, check.Options{Programs: rule.Programs{Runtime: choose.Process, Version: "test"}})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, text := range report.Unjudged {
		// A fault was planted a moment ago, or only another release of OVN is installed here.
		if !strings.Contains(text, "ovn-controller was installing flows") && !strings.Contains(text, "no OVN of the node's release") {
			l.t.Errorf("not judged: %s", text)
		}
	}
	return report.Findings
}

// record writes the workdir of a node, as a collection does: the files of the databases, and if outputs
// is set, what the other commands print that rules read.
func (l *live) record(wd *workdir.Dir, node string, outputs bool) {
	l.t.Helper()
	home := filepath.Join(l.folder, "nodes", node)
	central := filepath.Join(l.folder, "central", "ovn")
	if _, err := os.Stat(central); err != nil {
		central = filepath.Join(home, "ovn")
	}
	for kind, path := range map[workdir.Kind]string{workdir.OVS: filepath.Join(home, "ovs", "conf.db"),
		workdir.NB: filepath.Join(central, "ovnnb_db.db"), workdir.SB: filepath.Join(central, "ovnsb_db.db")} {
		content, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		l.write(wd.Database(kind), string(content))
	}
	l.write(wd.Recorded(workdir.RecordedList("Interface")), l.tool([]string{"vsctl@" + node, "list", "Interface"}))
	if !outputs {
		return
	}
	l.write(wd.Recorded(workdir.RecordedList("Controller")), l.tool([]string{"vsctl@" + node, "list", "Controller"}))
	for _, name := range []string{"bfd/show", "dpif/show", "coverage/show", "upcall/show", "memory/show"} {
		l.write(wd.Recorded(strings.ReplaceAll(name, "/", ".")), l.tool([]string{"appctl@" + node, name}))
	}
	for bridge := range strings.FieldsSeq(l.tool([]string{"vsctl@" + node, "list-br"})) {
		for dump, name := range map[workdir.Dump]string{workdir.Flows: "dump-flows", workdir.Groups: "dump-groups", workdir.Meters: "dump-meters"} {
			l.write(wd.DumpFile(bridge, dump), l.tool([]string{"ofctl@" + node, name, bridge}))
		}
		l.write(wd.BridgeRecorded(bridge, "fdb.show"), l.tool([]string{"appctl@" + node, "fdb/show", bridge}))
	}
}

func (l *live) write(path, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}
