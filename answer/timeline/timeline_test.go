package timeline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/collect"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// read returns the entries of a set, and what the timeline says of the rest.
func read(t testing.TB, folder string, query Query, limit int) (entries []*Entry, result Result) {
	t.Helper()
	selected, err := snapshot.OpenNodes(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(t.Context(), selected, query)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	result, err = opened.Read(t.Context(), limit, func(e *Entry) error { entries = append(entries, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return entries, result
}

// byHand returns a workdir with databases and logs: the content by program and name of the file.
func byHand(t testing.TB, path string, databases []string, logs map[string]string) {
	t.Helper()
	wd, err := workdir.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	if len(databases) > 0 {
		if _, _, err := collect.Collect(t.Context(), wd, collect.Files{Paths: databases}, collect.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range logs {
		program, file, _ := strings.Cut(name, "/")
		files.Write(t, wd.HostLog(program, file), text)
	}
}

// find returns the index of the first entry of a program with a text.
func find(entries []*Entry, program, text string) int {
	return slices.IndexFunc(entries, func(e *Entry) bool { return e.Program == program && strings.Contains(e.Text, text) })
}

// TestRealDeployment runs a deployment with two chassis, and claims a port, whose name in OVN is a UUID as
// in OpenStack. The timeline has who created it, the ovn-controller that claims it, and the transaction of
// that, in this order and under the name that the user gave.
func TestRealDeployment(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovn-controller", "ovn-northd")
	const port = "0a0b0c0d-1111-4222-8333-444455556666"
	central := ovs.StartCentral(t)
	central.Northd()
	folder := filepath.Join(ovs.Dir(t), "nodes")
	var switches []*ovs.Switch
	for _, name := range []string{"n1", "n2"} {
		s := ovs.Start(t)
		s.Join(central, name)
		switches = append(switches, s)
	}
	central.Nbctl("--wait=hv", "ls-add", "sw0", "--", "lsp-add", "sw0", port, "--", "lsp-set-addresses", port,
		"0a:00:00:00:00:01 10.0.0.1",
		"--", "set", "logical_switch_port", port, `external_ids:neutron\:port_name=web-1`)
	switches[0].Run("ovs-vsctl", "add-port", "br-int", "tap0", "--", "set", "interface", "tap0", "type=dummy",
		"external_ids:iface-id="+port)
	central.Nbctl("--wait=hv", "wait-until", "logical_switch_port", port, "up=true")
	central.Nbctl("--wait=hv", "set", "logical_switch", "sw0", "external_ids:a=b")
	for _, s := range switches {
		s.Stop()
	}
	central.Stop()
	for i, s := range switches {
		logs := map[string]string{}
		for _, program := range []string{"ovs-vswitchd", "ovsdb-server", "ovn-controller"} {
			logs[program+"/"+program+".log"] = files.Read(t, filepath.Join(s.Dir, program+".log"))
		}
		databases := []string{filepath.Join(s.Dir, "conf.db"), central.NB, central.SB}
		byHand(t, filepath.Join(folder, fmt.Sprintf("n%d", i+1)), databases, logs)
	}
	entries, result := read(t, folder, Query{}, 0)
	if result.Lost || !slices.IsSortedFunc(entries, func(a, b *Entry) int { return a.Time.Compare(b.Time) }) {
		t.Errorf("%+v, or not in order", result)
	}
	steps := []int{find(entries, "ovn-nbctl", "+ Logical_Switch_Port web-1"),
		find(entries, "ovn-northd", "+ Port_Binding"),
		find(entries, "ovs-vsctl", "+ Interface tap0"),
		find(entries, "ovn-controller", "Claiming lport "+port+" for this chassis."),
		find(entries, "ovn-controller", "~ Port_Binding web-1")}
	// The claim and its row in the database may have one time.
	inOrder := slices.IsSortedFunc(steps, func(a, b int) int {
		if a < 0 || b < 0 {
			return -1
		}
		return entries[a].Time.Compare(entries[b].Time)
	})
	if slices.Contains(steps, -1) || !inOrder {
		for _, e := range entries {
			t.Logf("%v %s %s %s %s: %s", e.Time, e.Node, e.Database, e.Program, e.Module, e.Text)
		}
		t.Fatalf("the steps are the entries %v", steps)
	}
	claim := entries[steps[3]]
	if claim.Node != "n1" || claim.Level != "info" || claim.Module != "binding" ||
		!slices.Contains(claim.Names, Name{port, "web-1"}) || !strings.HasPrefix(claim.Log, "ovn-controller.log:") {
		t.Errorf("%+v", claim)
	}
	added := entries[find(entries, "ovs-vswitchd", "added interface tap0")]
	expect.Equal(t, fmt.Sprint(added.Names), "[{tap0 web-1}]")
	if text := added.Annotated(); text != added.Text+"  [tap0 = web-1]" {
		t.Error(text)
	}
	for _, remark := range result.Remarks {
		if strings.Contains(remark, "clock") {
			t.Errorf("the nodes have one clock: %s", remark)
		}
	}
	programs := []string{"ovn-controller"}
	for name, q := range map[string]Query{"grep": {Grep: "WEB-1", Programs: programs, LogsOnly: true},
		"record":          {Record: "web-1", Programs: programs, LogsOnly: true},
		"its name in OVN": {Record: port, Programs: programs, LogsOnly: true}} {
		found := must(read(t, folder, q, 0))
		if find(found, "ovn-controller", "Claiming lport "+port) < 0 {
			t.Errorf("%s: the claim is missing", name)
		}
		for _, e := range found {
			if !strings.Contains(e.Annotated(), "web-1") || e.Program != "ovn-controller" || e.Database != "" {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
	last, _ := read(t, folder, Query{}, 3)
	expect.Equal(t, len(last), 3)
	expect.Equal(t, last[2].Text, entries[len(entries)-1].Text)
	bound, _ := read(t, folder, Query{Since: claim.Time, Until: claim.Time, LogsOnly: true}, 0)
	if len(bound) == 0 || find(bound, "ovn-controller", "Claiming") < 0 || bound[0].Time.Before(claim.Time) {
		t.Errorf("%+v", bound)
	}
	all, _ := read(t, folder, Query{All: true, LogsOnly: true}, 0)
	warned, _ := read(t, folder, Query{Level: daemonlog.Warn, LogsOnly: true}, 0)
	if len(all) <= len(warned) || slices.ContainsFunc(warned, func(e *Entry) bool { return e.Level == "info" }) {
		t.Errorf("%d and %d", len(all), len(warned))
	}
}

func must(entries []*Entry, _ Result) []*Entry { return entries }

// TestClockAheadIsNamed runs a chassis whose ovn-controller has a clock that is an hour ahead.
func TestClockAheadIsNamed(t *testing.T) {
	ovs.Need(t, "ovsdb-server", "ovn-sbctl")
	central := ovs.StartCentral(t)
	now := time.Now()
	central.Sbctl("--", "--id=@e", "create", "encap", "type=geneve", "ip=10.0.0.1", "chassis_name=id-1", "--", "create",
		"chassis", "name=id-1", "hostname=compute-1", "encaps=@e",
		"--", "create", "chassis_private", "name=id-1")
	for i := range 3 {
		central.Sbctl("set", "chassis_private", "id-1", fmt.Sprint("nb_cfg=", i+1),
			fmt.Sprint("nb_cfg_timestamp=", now.Add(time.Hour).UnixMilli()))
	}
	central.Stop()
	dir := filepath.Join(ovs.Dir(t), "n1")
	byHand(t, dir, []string{central.SB}, nil)
	_, result := read(t, dir, Query{}, 0)
	if text := strings.Join(result.Remarks, "\n"); !strings.Contains(text, "the clock of compute-1 is at least 59m5") {
		t.Error(text)
	}
}

const line = "2026-01-01T00:%02d:%02d.%03dZ|%05d|%s|%s|%s\n"

// TestRepeatsAreFolded folds lines that differ in numbers, and the lines that vlog says it dropped.
func TestRepeatsAreFolded(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, line, 0, i/2, i, i, "timeval", "WARN", fmt.Sprintf("Unreasonably long %dms poll interval", 1000+i))
	}
	fmt.Fprintf(&text, line, 1, 0, 0, 101, "timeval", "WARN",
		"Dropped 23 log messages in last 10 seconds (most recently, 5 seconds ago) due to excessive rate")
	fmt.Fprintf(&text, line, 1, 0, 0, 102, "poll_loop", "INFO", "wakeup")
	fmt.Fprintf(&text, line, 1, 0, 1, 103, "timeval", "WARN", "Unreasonably long 9ms poll interval")
	fmt.Fprintf(&text, line, 5, 0, 0, 104, "timeval", "WARN", "Unreasonably long 10ms poll interval")
	dir := filepath.Join(t.TempDir(), "n1")
	journal := "Jan  1 00:00:00 n1 ovs-vswitchd[1]: ovs|00000|timeval|WARN|Unreasonably long 1000ms poll interval\n"
	byHand(t, dir, nil, map[string]string{"ovs-vswitchd/ovs-vswitchd.log": text.String(), "journal/journal": journal})
	entries, result := read(t, dir, Query{}, 0)
	if len(entries) != 2 || result.Lost {
		t.Fatalf("%+v, %+v", entries, result)
	}
	first := entries[0]
	expect.Equal(t, first.Count, 100+23+1)
	expect.Equal(t, first.Dropped, 23)
	expect.Equal(t, first.Until, time.Date(2026, 1, 1, 0, 1, 0, 1e6, time.UTC))
	expect.Equal(t, first.Text, "Unreasonably long 1000ms poll interval")
	expect.Equal(t, entries[1].Count, 1)
	if text := strings.Join(result.Remarks, "\n"); !strings.Contains(text,
		"the times of 1 line name no time zone: UTC is assumed") {
		t.Error(text)
	}
}

// TestZoneOfAJournalIsKnown reads a journal in local time, with lines of a container that name theirs.
func TestZoneOfAJournalIsKnown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n1")
	byHand(t, dir, nil, map[string]string{"journal/journal": "Jan  1 01:59:58 n1 systemd[1]: Started Open vSwitch.\n" +
		"Jan  1 02:00:01 n1 ovn_controller[1]: 2026-01-01T00:00:00.500Z|00001|binding|INFO|Claiming lport a for this chassis.\n", "p/p.log": fmt.Sprintf(line, 0, 0, 0, 1, "a", "WARN", "b")})
	entries, result := read(t, dir, Query{}, 0)
	if len(entries) != 3 || entries[0].Program != "systemd" ||
		!entries[0].Time.Equal(time.Date(2025, 12, 31, 23, 59, 58, 0, time.UTC)) {
		t.Errorf("%+v", entries)
	}
	if text := strings.Join(result.Remarks, "\n"); !strings.Contains(text,
		"name no time zone: it is +02:00 by lines that also have a time in UTC") {
		t.Error(text)
	}
}

// TestRotatedLogsAreOne merges the files of two programs on two nodes, one of them compressed, one of an
// earlier time that is named later, and two that overlap.
func TestRotatedLogsAreOne(t *testing.T) {
	folder := t.TempDir()
	var part [4]bytes.Buffer
	for i := range 40 {
		fmt.Fprintf(&part[i/10], line, i, 0, 0, i, "a", "WARN", fmt.Sprintf("m-%02d.", i))
	}
	overlapping := fmt.Sprintf(line, 5, 0, 500, 0, "b", "ERR", "between-5.") + fmt.Sprintf(line, 35, 0, 500, 0, "b", "ERR",
		"between-35.")
	byHand(t, filepath.Join(folder, "n1"), nil,
		map[string]string{"p/p.log": part[3].String(), "p/p.log.1": part[2].String(),
			"p/p.log.2.gz": string(files.Gzip(t, part[1].Bytes()))})
	byHand(t, filepath.Join(folder, "n2"), nil, map[string]string{"p/p.log": part[0].String(), "q/q.log": overlapping})
	entries, result := read(t, folder, Query{}, 0)
	var texts []string
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	expect.Equal(t, len(texts), 42)
	expect.Equal(t, strings.Join(texts[4:8], ""), "m-04.m-05.between-5.m-06.")
	expect.Equal(t, strings.Join(texts[35:39], ""), "m-34.m-35.between-35.m-36.")
	expect.Equal(t, len(result.Remarks), 0)
}

// TestUnreadableLogsAreNamed costs what can't be read, and nothing else.
func TestUnreadableLogsAreNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n1")
	good := fmt.Sprintf(line, 1, 0, 0, 1, "a", "WARN", "b")
	packed := files.Gzip(t, []byte(strings.Repeat(good, 10_000)))
	byHand(t, dir, nil, map[string]string{"p/p.log": good, "p/cut.gz": string(packed[:len(packed)-20]),
		"p/no-time": "a\nb\n", "p/empty": "", "p/long": good + strings.Repeat("c", 17<<20) + "\n"})
	entries, result := read(t, dir, Query{}, 0)
	text := strings.Join(result.Remarks, "\n")
	for _, want := range []string{"n1: p: cut.gz can't be read beyond line ",
		"n1: p: no-time is left out: none of its first lines has a time",
		"n1: p: long: 1 line is longer than 65536 bytes, and cut"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if len(entries) != 1 || !result.Lost || entries[0].Count < 2 {
		t.Errorf("%+v", entries)
	}
	empty := filepath.Join(t.TempDir(), "n1")
	byHand(t, empty, nil, map[string]string{"p/empty": ""})
	selected, err := snapshot.OpenNodes(empty, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), selected, Query{}); err == nil ||
		!strings.Contains(err.Error(), "holds no logs and no database") {
		t.Error(err)
	}
}

func BenchmarkRead(b *testing.B) {
	folder := b.TempDir()
	size := 0
	for node := range 4 {
		var text bytes.Buffer
		for i := range 300_000 {
			level := "INFO"
			if i%10 == 0 {
				level = "WARN"
			}
			fmt.Fprintf(&text, line, i/10_000, i/200%60, i%1000, i, "dpif_netlink(handler10)", level,
				fmt.Sprintf("system@ovs-system: lost packet on handler %d of port-%d", i, i%50))
		}
		size += text.Len()
		path := filepath.Join(folder, fmt.Sprintf("n%d", node), "host", "logs", "ovs-vswitchd", "ovs-vswitchd.log")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		files.Write(b, path, text.String())
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		if entries, _ := read(b, folder, Query{}, 10); len(entries) != 10 {
			b.Fatal(len(entries))
		}
	}
}
