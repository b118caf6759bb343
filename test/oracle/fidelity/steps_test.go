package fidelity

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/command"
	"ovs-offline/replica"
	"ovs-offline/replica/restore"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// stepCase shows the effect of a step: without the step, the replica scores lower.
type stepCase struct {
	step     string
	topology string // a topology of the lab, or a capture
	// together is the number of a group of steps of the topology that are left out of one start: none of them lowers the
	// score of another, which a sweep checks. 0 is for a step that is left out alone.
	together int
	score    func(t *testing.T, n *Replica, r Recording) int
}

// stepCases returns a case for each step, which TestEachStepIsNeeded checks.
func stepCases() []stepCase {
	const compute, worker = "ovn-openstack-compute", "ovn-kubernetes-worker"
	return []stepCase{
		{"dead ports", "ml2-ovs", 0, results},
		{"port numbers", compute, 1, is(requestedNumberIsIgnored)},
		{"port types", "dpdk", 0, results},
		{"datapath types", "dpdk", 0, results},
		{"fail mode", "monitoring", 1, resultsOn("br-open", "br-open2")},
		{"identity", compute, 1, is(sameIdentity)},
		{"monitors", "monitoring", 2, resultsOn("br-sflow")},
		{"host settings", compute, 1, is(oneHandlerThread)},
		{"flood order", "ml2-ovs", 0, results},
		{"datapath features", compute, 0, results},
		{"datapath ports", worker, 1, is(samePortNumbers)},
		{"TLV maps", worker, 0, is(sameTLVMap)},
		{"meters", worker, 1, is(sameDump(workdir.Meters))},
		{"groups", worker, 0, results},
		{"flows", worker, 0, results},
		{"learned MACs", worker, 1, resultsOn("breth0")},
		{"port states", "switching", 1, resultsOn("br-set")},
		{"fragments", "switching", 1, is(sameFragments)},
		{"spanning trees", "switching", 1, is(sameTreeStates)},
		{"native tunnels", "dpdk", 0, results},
		{"BFD", compute, 1, is(sameForwarding)},
		{"CFM", "monitoring", 2, resultsOn("br-sample")},
		{"bonds", "dpdk", 0, results},
		{"liveness", "monitoring", 1, resultsOn("br-sample")},
		{"multicast groups", "switching", 1, is(sameMulticast)},
		{"clock", compute, 1, is(clockIsStopped)},
	}
}

// withoutCase returns the steps that have no effect on the traces and dumps of an
// isolated replica, with the reason.
func withoutCase() map[string]string {
	return map[string]string{
		"controllers": "it changes nothing where daemons are isolated; replica/restore tests it where they are not",
		"table names": "no recorded table has a name; answer/trace asks about flows that name tables",
	}
}

// TestEachStepIsNeeded starts replicas without steps: outside of a sweep without all steps of a group at once, and in a
// sweep without each step, and without all others of its group.
func TestEachStepIsNeeded(t *testing.T) {
	var missing []string
	for _, s := range append(restore.Edits(), restore.Steps()...) {
		if _, excused := withoutCase()[s.Name]; !excused &&
			!slices.ContainsFunc(stepCases(), func(c stepCase) bool { return c.step == s.Name }) {
			missing = append(missing, s.Name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no case for these steps: %q", missing)
	}
	byTopology := map[string][]stepCase{}
	for _, c := range stepCases() {
		byTopology[c.topology] = append(byTopology[c.topology], c)
	}
	for topology, cases := range byTopology {
		t.Run(topology, func(t *testing.T) {
			t.Parallel() // recording a node is mostly waiting
			tryTopology(t, topology, cases)
		})
	}
}

// tryTopology starts a replica of a topology with all steps, and then without those of the cases.
func tryTopology(t *testing.T, topology string, cases []stepCase) {
	r := recording(t, topology)
	n := run(t, r, replica.Options{})
	checkIsolated(t, n)
	if topology == "ovn-openstack-compute" {
		changeDatabase(t, n)
		if err := n.Restart(t.Context(), replica.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	with := map[string]int{}
	for _, c := range cases {
		if with[c.step] = c.score(t, n, r); with[c.step] == 0 {
			t.Errorf("%s: with all steps the replica scores 0", c.step)
		}
	}
	for _, group := range grouped(cases) {
		t.Run(strings.ReplaceAll(strings.Join(stepsOf(group), ","), " ", "_"),
			func(t *testing.T) { tryWithout(t, n, r, group, with) })
		if sweep.Whole() && len(group) > 1 {
			t.Run("each of "+strings.Join(stepsOf(group), ","), func(t *testing.T) { tryApart(t, n, r, group, with) })
		}
	}
}

// grouped returns the cases that are left out together.
func grouped(cases []stepCase) (groups [][]stepCase) {
	at := map[int]int{}
	for _, c := range cases {
		if i, known := at[c.together]; known && c.together != 0 {
			groups[i] = append(groups[i], c)
			continue
		}
		at[c.together] = len(groups)
		groups = append(groups, []stepCase{c})
	}
	return groups
}

func stepsOf(cases []stepCase) (steps []string) {
	for _, c := range cases {
		steps = append(steps, c.step)
	}
	return steps
}

// checkIsolated checks the network namespace of ovs-vswitchd. Whatever controllers,
// managers, collectors and tunnels the database names, its only device is a loopback,
// and its only sockets are those of sFlow, IPFIX and NetFlow to the discard port.
func checkIsolated(t *testing.T, n *Replica) {
	t.Helper()
	pid := strings.TrimSpace(files.Read(t, filepath.Join(n.Workdir.VarRun(workdir.OVS), "ovs-vswitchd.pid")))
	proc := func(table string) []string {
		lines := strings.Split(strings.TrimSpace(files.Read(t, filepath.Join("/proc", pid, "net", table))), "\n")
		return lines[1:]
	}
	if devices := proc("dev")[1:]; len(devices) != 1 || !strings.HasPrefix(strings.TrimSpace(devices[0]), "lo:") {
		t.Errorf("devices in its namespace: %q", devices)
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6", "packet"} {
		for _, socket := range proc(table) {
			if table != "udp" || strings.Fields(socket)[2] != "0100007F:0009" {
				t.Errorf("%s socket: %s", table, socket)
			}
		}
	}
}

func recording(t *testing.T, name string) Recording {
	t.Helper()
	if !strings.HasPrefix(name, "ovn-") {
		return recordLab(t, name)
	}
	needTools(t)
	r, err := Capture(context.Background(), "../../../testdata/captures/"+name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tryWithout starts the replica without the steps of a group. The score of each is then lower than with all steps.
func tryWithout(t *testing.T, n *Replica, r Recording, group []stepCase, with map[string]int) {
	// Without its step, an order in which a switch floods can be the recorded one by chance.
	const starts = 5
	left := group
	for try := 0; try < starts && len(left) > 0; try++ {
		if !startWithout(t, n, stepsOf(group)) {
			if len(group) > 1 {
				t.Errorf("what each of these steps does cannot be told apart: %q", stepsOf(group))
			}
			return
		}
		left = slices.DeleteFunc(slices.Clone(left), func(c stepCase) bool { return c.score(t, n, r) < with[c.step] })
	}
	for _, c := range left {
		t.Errorf("%s: the replica scores no less without the step than with it, %d, in each of %d starts", c.step,
			with[c.step], starts)
	}
}

// tryApart starts the replica without each step of a group, and without all others of it, which leaves the step's
// score as it is.
func tryApart(t *testing.T, n *Replica, r Recording, group []stepCase, with map[string]int) {
	for i, c := range group {
		tryWithout(t, n, r, group[i:i+1], with)
		others := slices.Delete(stepsOf(group), i, i+1)
		if !startWithout(t, n, others) {
			t.Errorf("the replica does not start without %q", others)
		} else if score := c.score(t, n, r); score != with[c.step] {
			t.Errorf("%s: without %q the replica scores %d, and with all steps %d", c.step, others, score, with[c.step])
		}
	}
}

// startWithout starts the replica again without steps, and reports whether it starts.
func startWithout(t *testing.T, n *Replica, steps []string) bool {
	t.Helper()
	err := n.Restart(t.Context(), replica.Options{Without: steps})
	if err != nil {
		t.Logf("the replica does not start without %q: %v", steps, err)
	}
	return err == nil
}

// is returns a score of 1 where a check holds, and else 0.
func is(check func(*testing.T, *Replica, Recording) bool) func(*testing.T, *Replica, Recording) int {
	return func(t *testing.T, n *Replica, r Recording) int {
		if check(t, n, r) {
			return 1
		}
		return 0
	}
}

// results counts the packets whose result lines are equal.
func results(t *testing.T, n *Replica, r Recording) int {
	t.Helper()
	f, err := n.Compare(t.Context(), r.Packets, r.Live)
	if err != nil {
		t.Fatal(err)
	}
	return f.Results + f.Balanced
}

// resultsOn works like results, for the packets of some bridges.
func resultsOn(bridges ...string) func(*testing.T, *Replica, Recording) int {
	return func(t *testing.T, n *Replica, r Recording) int { return results(t, n, onBridges(t, r, bridges)) }
}

// onBridges returns the part of a recording that is about packets of some bridges.
func onBridges(t *testing.T, r Recording, bridges []string) Recording {
	t.Helper()
	packets, err := readPackets(r.Packets)
	if err != nil {
		t.Fatal(err)
	}
	lives, err := filepath.Glob(filepath.Join(r.Live, "[0-9]*"))
	if err != nil || len(lives) != len(packets) {
		t.Fatalf("%d packets, %d traces (%v)", len(packets), len(lives), err)
	}
	part := Recording{Packets: filepath.Join(t.TempDir(), "packets"), Live: t.TempDir()}
	var text strings.Builder
	for i, p := range packets {
		if !slices.Contains(bridges, p.Bridge) {
			continue
		}
		fmt.Fprintf(&text, "%s|%s|%s\n", p.Bridge, strings.Join(p.Options, " "), p.Flow)
		files.Write(t, filepath.Join(part.Live, filepath.Base(lives[i])), files.Read(t, lives[i]))
	}
	files.Write(t, part.Packets, text.String())
	return part
}

func tool(t *testing.T, n *Replica, argv ...string) string {
	t.Helper()
	out, err := n.Tool(context.Background(), argv[0], argv[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sameDump returns a check that compares a dump of ovs-ofctl with the collected one.
func sameDump(dump workdir.Dump) func(*testing.T, *Replica, Recording) bool {
	return func(t *testing.T, n *Replica, _ Recording) bool {
		want := Entries(dump, files.Read(t, n.Workdir.DumpFile("br-int", dump)))
		command := map[workdir.Dump]string{workdir.Meters: "dump-meters", workdir.TLV: "dump-tlv-map"}[dump]
		have := Entries(dump, tool(t, n, "ovs-ofctl", "-O", "OpenFlow15", command, "br-int"))
		missing, extra := lines.Difference(want, have)
		return len(want) > 0 && len(missing)+len(extra) == 0
	}
}

// sameTLVMap compares the TLV map, which must not be a placeholder: OVN's mapping is
// known even if no map was collected.
func sameTLVMap(t *testing.T, n *Replica, r Recording) bool {
	return sameDump(workdir.TLV)(t, n, r) && len(n.Report.Placeholders) == 0
}

// changeDatabase changes the collected database to that of a node whose switch could
// not give a port its requested number, and whose bridges have no configured MAC
// address.
func changeDatabase(t *testing.T, n *Replica) {
	t.Helper()
	const change = `["Open_vSwitch",
		{"op":"update","table":"Interface","where":[["name","==","tapvm1aaaaa-aa"]],"row":{"ofport_request":77}},
		{"op":"mutate","table":"Bridge","where":[],"mutations":[["other_config","delete",["set",["hwaddr","datapath-id"]]]]}]`
	if _, err := command.Run(context.Background(),
		command.Command{Argv: []string{"ovsdb-tool", "transact", n.Workdir.Database(workdir.OVS), change}}); err != nil {
		t.Fatal(err)
	}
}

func requestedNumberIsIgnored(t *testing.T, n *Replica, _ Recording) bool {
	return strings.Contains(tool(t, n, "ovs-ofctl", "-O", "OpenFlow15", "show", "br-int"), " 3(tapvm1aaaaa-aa)")
}

func sameIdentity(t *testing.T, n *Replica, _ Recording) bool {
	line := regexp.MustCompile(`dpid:[0-9a-f]+|(?m)^ LOCAL\(.*\): addr:.*$`)
	return sameShow(t, n, line)
}

// sameShow compares the matches of a pattern in ovs-ofctl show of each bridge.
func sameShow(t *testing.T, n *Replica, line *regexp.Regexp) bool {
	shows, err := filepath.Glob(filepath.Join(n.Workdir.Recorded("bridges"), "*", workdir.RecordedShow))
	if err != nil || len(shows) == 0 {
		t.Fatal(shows, err)
	}
	same := true
	for _, path := range shows {
		want := line.FindAllString(files.Read(t, path), -1)
		have := line.FindAllString(tool(t, n, "ovs-ofctl", "-O", "OpenFlow13", "show", filepath.Base(filepath.Dir(path))), -1)
		same = same && len(want) > 0 && slices.Equal(want, have)
	}
	return same
}

// oneHandlerThread checks that the replica does not start as many threads as the live
// node.
func oneHandlerThread(t *testing.T, n *Replica, _ Recording) bool {
	return strings.Contains(tool(t, n, "ovs-vsctl", "get", "Open_vSwitch", ".", "other_config"), `n-handler-threads="1"`)
}

func samePortNumbers(_ *testing.T, n *Replica, _ Recording) bool {
	same := len(n.Report.Ports) > 0
	for _, p := range n.Report.Ports {
		same = same && (p.Live == p.Replica || p.Replica == "6081") // the port of a tunnel has another number
	}
	return same
}

// sameFragments compares how bridges handle fragments: one bridge drops them.
func sameFragments(t *testing.T, n *Replica, _ Recording) bool {
	return sameShow(t, n, regexp.MustCompile(`frags=\S+`))
}

// sameTreeStates compares the RSTP states in ovs-vsctl list port with the collected
// ones.
func sameTreeStates(t *testing.T, n *Replica, _ Recording) bool {
	state := regexp.MustCompile(`rstp_port_state=(\w+)`)
	want := state.FindAllString(files.Read(t, n.Workdir.Recorded(workdir.RecordedListPort)), -1)
	have := state.FindAllString(tool(t, n, "ovs-vsctl", "list", "port"), -1)
	slices.Sort(want)
	slices.Sort(have)
	return len(want) > 0 && slices.Equal(want, have)
}

func sameForwarding(t *testing.T, n *Replica, _ Recording) bool {
	session := regexp.MustCompile(`(?m)^---- .* ----\n\s+Forwarding: .*$`)
	want := session.FindAllString(files.Read(t, n.Workdir.Recorded(workdir.RecordedBFD)), -1)
	have := session.FindAllString(tool(t, n, "ovs-appctl", "bfd/show"), -1)
	slices.Sort(want)
	slices.Sort(have)
	return len(want) > 0 && slices.Equal(want, have)
}

func sameMulticast(t *testing.T, n *Replica, _ Recording) bool {
	age := regexp.MustCompile(`(?m)\s+\d+$`)
	same, seen := true, false
	shows, err := filepath.Glob(filepath.Join(n.Workdir.Recorded("bridges"), "*", workdir.RecordedMDB))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range shows {
		text := files.Read(t, path)
		if strings.Contains(text, "snooping is disabled") {
			continue
		}
		want := strings.Split(age.ReplaceAllString(text, ""), "\n")
		have := strings.Split(age.ReplaceAllString(tool(t, n, "ovs-appctl", "mdb/show", filepath.Base(filepath.Dir(path))),
			""), "\n")
		missing, extra := lines.Difference(want, have)
		same = same && len(missing)+len(extra) == 0
		seen = seen || len(want) > 2
	}
	return same && seen
}

// clockIsStopped checks that the age of flows does not change for 200 ms, which are the time under test.
func clockIsStopped(t *testing.T, n *Replica, _ Recording) bool {
	age := regexp.MustCompile(`duration=[0-9.]+s`)
	read := func() []string { return age.FindAllString(tool(t, n, "ovs-ofctl", "dump-flows", "br-int"), -1) }
	first := read()
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
		if !slices.Equal(first, read()) {
			return false
		}
	}
	return len(first) > 0
}
