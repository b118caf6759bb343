package check_test

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// live is a running set of the lab.
type live struct {
	t      *testing.T
	set    *sets.Set
	folder string
	here   bool // the daemons are this host's
	// known are the findings when nothing is broken.
	known map[string]bool
	// logged has the sizes of the logs when the round began, by their paths.
	logged map[string]int64
	steps  *steps
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
	switch tool {
	case "awaitflow":
		return l.awaitFlow(node, words[1], words[2], words[3])
	case "awaitlog":
		return l.awaitLog(node, words[1], words[2], words[3:])
	case "await":
		return l.await(words[1], words[2:])
	case "multiply":
		return l.multiply(node, words[1], words[2])
	}
	home, central := l.homes(node)
	argv := map[string][]string{
		"nb":     {"ovn-nbctl", "--db=unix:" + filepath.Join(central, "ovnnb_db.sock")},
		"sb":     {"ovn-sbctl", "--db=unix:" + filepath.Join(central, "ovnsb_db.sock")},
		"northd": {"ovn-appctl", "-t", "ovn-northd"}, "vsctl": {"ovs-vsctl"}, "ofctl": {"ovs-ofctl", "-O", "OpenFlow15"},
		"appctl":   {"ovs-appctl"},
		"sbserver": {"ovs-appctl", "-t", filepath.Join(central, "ovnsb_db.ctl")},
	}[tool]
	if argv == nil {
		l.t.Fatalf("no tool %s", tool)
	}
	env := append(os.Environ(), "OVS_RUNDIR="+filepath.Join(home, "ovs"), "OVN_RUNDIR="+central)
	if tool != "northd" {
		argv = append(argv, ovs.Timeout())
	}
	out, err := command.Run(l.t.Context(), command.Command{Argv: append(argv, words[1:]...), Env: env})
	if err != nil {
		l.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return string(out)
}

// awaitFlow returns the flows of a bridge that match, when one of them has a text.
func (l *live) awaitFlow(node, bridge, match, text string) (flows string) {
	l.t.Helper()
	ovs.Await(l.t, fmt.Sprintf("a flow %s of bridge %s of %s with %s", match, bridge, node, text), func() bool {
		flows = l.tool([]string{"ofctl@" + node, "dump-flows", bridge, match})
		return strings.Contains(flows, text)
	}, func() string { return flows })
	return flows
}

// await returns what a tool prints, when that has a text.
func (l *live) await(text string, words []string) (printed string) {
	l.t.Helper()
	ovs.Await(l.t, fmt.Sprintf("%q of %q", text, words), func() bool {
		printed = l.tool(words)
		return strings.Contains(printed, text)
	}, func() string { return printed })
	return printed
}

// awaitLog returns when a program of a node has logged a text since the round began. words are the tool that sends a
// packet about which it does, if it takes one, which may be lost.
func (l *live) awaitLog(node, program, text string, words []string) string {
	l.t.Helper()
	path, logged := l.logsOf(node)[program], ""
	what := fmt.Sprintf("%q in the log of %s of %s", text, program, node)
	has := func() bool {
		logged = l.since(path)
		return strings.Contains(logged, text)
	}
	if len(words) > 0 {
		ovs.Resend(l.t, what, func() { l.tool(words) }, has)
	}
	ovs.Await(l.t, what, has, func() string { return logged })
	return text
}

// since returns what a log has since the round began.
func (l *live) since(path string) string {
	l.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(content[l.logged[path]:])
}

// multiply adds the flows of an ACL to a bridge that ovn-controller writes where it makes no conjunction:
// one for each of 40 addresses and 30 ports.
func (l *live) multiply(node, bridge, acl string) string {
	l.t.Helper()
	found := strings.Fields(l.tool([]string{"sb@" + node, "--bare", "--columns=_uuid", "find", "Logical_Flow",
		"external_ids:stage-hint=" + acl[:8]}))
	if len(found) == 0 {
		l.t.Fatalf("ACL %s has no logical flow", acl)
	}
	var text strings.Builder
	for address := range 40 {
		for port := range 30 {
			fmt.Fprintf(&text, "cookie=0x%s,table=44,priority=2001,tcp,metadata=0x1,nw_src=10.66.%d.1,tp_dst=%d,actions=drop\n",
				found[0][:8], address, 2000+port)
		}
	}
	file := filepath.Join(l.t.TempDir(), "flows")
	l.write(file, text.String())
	return l.tool([]string{"ofctl@" + node, "add-flows", bridge, file})
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
// interface of port N, and {folder} the folder of the set; {nb TABLE CONDITION COLUMN} is a column of a row, and so
// for sb. Of the zone of a node these are {nb@NODE ...}.
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
			return strings.TrimSpace(l.tool([]string{parts[1] + parts[2], "--bare", "--columns=" + words[2], "find", words[0],
				words[1]}))
		}
		return found
	})
}

// madeUUID returns the UUID that the lab makes of a text: made_uuid of scripts/lab/set.sh.
func madeUUID(text string) string {
	sum := fmt.Sprintf("%x", md5.Sum([]byte(text)))
	return sum[:8] + "-" + sum[8:12] + "-4" + sum[13:16] + "-8" + sum[17:20] + "-" + sum[20:]
}

// check checks the workdirs of the nodes in a folder.
func (l *live) check(folder string) []rule.Finding {
	l.t.Helper()
	s, err := snapshot.Open(folder, nil)
	if err != nil || s == nil {
		l.t.Fatal(s, err)
	}
	report, err := check.Run(l.t.Context(), s,
		check.Options{Programs: rule.Programs{Runtime: process.Name, Runtimes: local.Runtimes}})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, text := range report.Unjudged {
		// A fault was planted a moment ago, or only another release of OVN is installed here.
		if !strings.Contains(text, "ovn-controller was installing flows") &&
			!strings.Contains(text, "no OVN of the node's release") {
			l.t.Errorf("not judged: %s", text)
		}
	}
	return report.Findings
}

// recording says what is recorded of nodes beside their databases: what commands print that rules read, the
// dumps as well, and what the daemons have logged since the round began.
type recording struct{ outputs, dumps, logs bool }

// collect records all nodes in a folder.
func (l *live) collect(what recording) (folder string) {
	l.t.Helper()
	folder = l.t.TempDir()
	for _, node := range l.set.Nodes {
		wd, err := workdir.Find(filepath.Join(folder, node))
		if err != nil {
			l.t.Fatal(err)
		}
		l.recordDatabases(wd, node)
		if what.outputs || what.dumps {
			l.recordOutputs(wd, node)
		}
		if what.dumps {
			l.recordDumps(wd, node)
		}
		if what.logs {
			l.recordLogs(wd, node)
		}
		manifest := workdir.Manifest{Format: workdir.FormatVersion,
			Collections: []workdir.Collection{{Kind: workdir.OVS, Host: node, Recorded: time.Now()}}}
		if err := workdir.WriteJSON(filepath.Join(wd.Path(), "manifest.json"), manifest); err != nil {
			l.t.Fatal(err)
		}
	}
	return folder
}

// homes returns the folders of the daemons of a node, and of the OVN databases that it uses.
func (l *live) homes(node string) (home, central string) {
	home, central = filepath.Join(l.folder, "nodes", node), filepath.Join(l.folder, "central", "ovn")
	if _, err := os.Stat(central); err != nil && node != "" {
		central = filepath.Join(home, "ovn")
	}
	return home, central
}

// recordDatabases copies the files of the databases of a node, as a collection does.
func (l *live) recordDatabases(wd *workdir.Dir, node string) {
	l.t.Helper()
	home, central := l.homes(node)
	for kind, path := range map[workdir.Kind]string{workdir.OVS: filepath.Join(home, "ovs", "conf.db"),
		workdir.NB: filepath.Join(central, "ovnnb_db.db"), workdir.SB: filepath.Join(central, "ovnsb_db.db")} {
		content, err := os.ReadFile(path)
		if err != nil {
			l.t.Fatal(err)
		}
		l.write(wd.Database(kind), string(content))
	}
	l.write(wd.Recorded(workdir.RecordedList("Interface")), l.tool([]string{"vsctl@" + node, "list", "Interface"}))
}

// recordOutputs writes what commands print on a node.
func (l *live) recordOutputs(wd *workdir.Dir, node string) {
	l.t.Helper()
	for _, table := range []string{"Controller", "Manager"} {
		l.write(wd.Recorded(workdir.RecordedList(table)), l.tool([]string{"vsctl@" + node, "list", table}))
	}
	for _, name := range []string{"bfd/show", "dpif/show", "dpctl/show", "coverage/show", "upcall/show", "memory/show"} {
		l.write(wd.Recorded(strings.ReplaceAll(name, "/", ".")), l.tool([]string{"appctl@" + node, name}))
	}
	for _, bridge := range l.bridges(node) {
		l.write(wd.BridgeRecorded(bridge, workdir.RecordedFDB), l.tool([]string{"appctl@" + node, "fdb/show", bridge}))
		l.write(wd.BridgeRecorded(bridge, workdir.RecordedFDBStats),
			l.tool([]string{"appctl@" + node, "fdb/stats-show", bridge}))
	}
}

// recordDumps writes the dumps of the bridges of a node.
func (l *live) recordDumps(wd *workdir.Dir, node string) {
	l.t.Helper()
	for _, bridge := range l.bridges(node) {
		for dump, name := range map[workdir.Dump]string{workdir.Flows: "dump-flows", workdir.Groups: "dump-groups",
			workdir.Meters: "dump-meters"} {
			l.write(wd.DumpFile(bridge, dump), l.tool([]string{"ofctl@" + node, name, bridge}))
		}
		l.write(wd.BridgeRecorded(bridge, workdir.RecordedShow), l.tool([]string{"ofctl@" + node, "show", bridge}))
	}
}

func (l *live) bridges(node string) []string {
	return strings.Fields(l.tool([]string{"vsctl@" + node, "list-br"}))
}

// logsOf returns the paths of the logs of a node's daemons by the programs that write them. Those of the
// shared databases are logs of the first node.
func (l *live) logsOf(node string) map[string]string {
	home, central := l.homes(node)
	logs := map[string]string{"ovs-vswitchd": filepath.Join(home, "ovs", "ovs-vswitchd.log"),
		"ovn-controller": filepath.Join(home, "ovn", "ovn-controller.log")}
	if node == l.set.Nodes[0] || strings.HasPrefix(central, home) {
		logs["ovn-northd"] = filepath.Join(central, "ovn-northd.log")
	}
	return logs
}

// noteLogs begins a round: what the logs have until now is not recorded. With flush, what the daemons have logged is in
// the logs.
func (l *live) noteLogs(flush bool) {
	l.t.Helper()
	l.logged = map[string]int64{}
	for _, node := range l.set.Nodes {
		if flush {
			l.flushLogs(node)
		}
		for _, path := range l.logsOf(node) {
			info, err := os.Stat(path)
			if err != nil {
				l.t.Fatal(err)
			}
			l.logged[path] = info.Size()
		}
	}
}

// flushLogs has the daemons of a node write what they have logged: a thread of its own does that otherwise, at some
// time.
func (l *live) flushLogs(node string) {
	l.t.Helper()
	for program, path := range l.logsOf(node) {
		env := append(os.Environ(), "OVS_RUNDIR="+filepath.Dir(path), "OVN_RUNDIR="+filepath.Dir(path))
		argv := []string{"ovn-appctl", "-t", program, "vlog/reopen"}
		if program == "ovs-vswitchd" {
			argv[0] = "ovs-appctl"
		}
		if _, err := command.Run(l.t.Context(), command.Command{Argv: argv, Env: env}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// recordLogs writes what the daemons of a node have logged since the round began.
func (l *live) recordLogs(wd *workdir.Dir, node string) {
	l.t.Helper()
	l.flushLogs(node)
	for program, path := range l.logsOf(node) {
		l.write(wd.HostLog(program, filepath.Base(path)), l.since(path))
	}
}

// waitQuiet returns when no OVN database has changed for longer than the time after which the rules count
// a daemon as behind. That time itself is under test.
func (l *live) waitQuiet() {
	l.t.Helper()
	const behind = 10*time.Second + 200*time.Millisecond
	for _, node := range l.set.Nodes {
		_, central := l.homes(node)
		for _, name := range []string{"ovnnb_db.db", "ovnsb_db.db"} {
			ovs.Await(l.t, name+" to be quiet", func() bool {
				info, err := os.Stat(filepath.Join(central, name))
				if err != nil {
					l.t.Fatal(err)
				}
				return time.Since(info.ModTime()) >= behind
			})
		}
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
