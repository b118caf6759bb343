package sosgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// TestEveryEraHasNamespaces checks that the outputs of network namespaces in the reports of every era arrive
// as they were, with the manifest of sos and without it, and that inspect and the manifest name them.
func TestEveryEraHasNamespaces(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	// TestEveryEraReplays checks the files and the names of every era.
	for _, e := range sweep.Last(Eras()) {
		t.Run(e.Name, func(t *testing.T) {
			report := n.Report(e)
			for _, tree := range []Tree{report, WithoutManifest(report)} {
				path := reportFolder(t, n, tree)
				dir := collectedDir(t, 0, path)
				checkMachine(t, n.Namespaces(e), dir)
				checkNamespaces(t, dir, namespaceNames()...)
				seen, _ := inspect(t, path)
				for _, node := range seen.Nodes {
					expect.Equal(t, len(node.Namespaces), len(namespaceNames()))
					expect.Equal(t, len(node.Namespaces[0].Recorded), len(e.inNamespaces), node.Namespaces[0].Recorded)
				}
			}
		})
	}
}

// TestHostileNamespaces collects a report whose network namespaces have names that lead out of a folder, that
// no folder can have, or that sos mangles to one name.
func TestHostileNamespaces(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	report := &sosReport{node: n, tree: n.Report(era("4.2"))}
	if err := json.Unmarshal(report.tree["sos_reports/manifest.json"].Body, &report.m); err != nil {
		t.Fatal(err)
	}
	sound := []string{"net:1", "net,1", "%2e%2e", "\x1b[31mred"}
	for _, namespace := range append([]string{"../../x", "..", "/etc", strings.Repeat("n", 190),
		strings.Repeat("n", 10_000)}, sound...) {
		report.add(pluginCommand{"networking", "ip netns exec " + namespace + " iptables-save"},
			fmt.Appendf(nil, "# of %.50s\n", namespace))
	}
	text, err := json.Marshal(&report.m)
	if err != nil {
		t.Fatal(err)
	}
	report.tree.put("sos_reports/manifest.json", text)
	dir := shortDir(t)
	o := collectInto(t, dir, reportFolder(t, n, report.tree))
	if o.code != 3 || !strings.Contains(o.err,
		"4 network namespaces whose names can't be those of namespaces, or are too long") {
		t.Errorf("%d: %s", o.code, o.err)
	}
	checkNamespaces(t, dir, append(sound, namespaceNames()...)...)
	for _, namespace := range sound {
		checkMachine(t, []MachineFile{{Workdir: filepath.Join("recorded/namespaces", workdir.EncodeName(namespace),
			"iptables-save"),
			Body: fmt.Appendf(nil, "# of %s\n", namespace)}}, dir)
	}
}

// TestLargeNamespace collects the rules and connections of a network namespace with a million lines each.
func TestLargeNamespace(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	large := func(line string) []byte { return bytes.Repeat([]byte(line), 1_000_000) }
	files := []MachineFile{
		{"sos_commands/networking/namespaces/net1/ip_netns_exec_net1_iptables-save", "recorded/namespaces/net1/iptables-save",
			large("-A INPUT -s 192.0.2.7/32 -j DROP\n")},
		{"sos_commands/conntrack/ip_netns_exec_net1_conntrack_-L_-o_extended", "recorded/namespaces/net1/conntrack",
			large("ipv4     2 udp      17 29 src=192.0.2.1 dst=192.0.2.2 sport=1 dport=2 [UNREPLIED] src=192.0.2.2 dst=192.0.2.1 sport=2 dport=1 mark=0 use=1\n")},
	}
	report := n.Report(newest())
	report.putMachine(files)
	dir := collectedDir(t, 0, reportFolder(t, n, report))
	checkMachine(t, append(files, n.Namespaces(newest())...), dir)
}

// TestNamespacesOfOneMangledName collects reports without manifest, in which sos numbers the files of two
// namespaces: which file belongs to which is known only if every namespace of the list has one.
func TestNamespacesOfOneMangledName(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	output := MachineFile{Workdir: "recorded/namespaces/net%2C1/iptables-save", Body: []byte("# of net,1\n")}
	report := WithoutManifest(n.Report(era("4.2"))).Without("sos_commands/networking/ip_netns")
	report.putText("sos_commands/networking/ip_netns", "net:1 (id: 1)\nnet,1 (id: 0)\n")
	report.putText("sos_commands/networking/ip_netns_exec_net_1_iptables-save", "# of net:1\n")
	report.put("sos_commands/networking/ip_netns_exec_net_1_iptables-save.1", output.Body)
	dir := collectedDir(t, 0, reportFolder(t, n, report))
	checkNamespaces(t, dir, append(namespaceNames(), "net:1", "net,1")...)
	checkMachine(t, []MachineFile{output}, dir)

	report.putText("sos_commands/networking/ip_netns", "net:1\nnet,1\nnet;1\nother\n")
	dir = shortDir(t)
	o := collectInto(t, dir, reportFolder(t, n, report))
	for _, want := range []string{"network namespaces net:1, net,1, net;1: sos gives their files the same names",
		"no outputs of 1 network namespace that the node lists (other)"} {
		if o.code != 0 || !strings.Contains(o.err, want) {
			t.Errorf("%d: %s; want %s", o.code, o.err, want)
		}
	}
	checkNamespaces(t, dir, namespaceNames()...)
}

// TestTooManyNamespaces collects a report with 100,000 network namespaces.
func TestTooManyNamespaces(t *testing.T) {
	n := recorded(t, "ml2-ovs")
	report := n.Report(newest())
	var list strings.Builder
	for i := range sweep.Count(100_000, 5_000) { // 4,096 are taken
		fmt.Fprintf(&list, "ns%d\n", i)
		report.putText(fmt.Sprintf("sos_commands/networking/namespaces/ns%[1]d/ip_netns_exec_ns%[1]d_iptables-save", i),
			"# %d\n", i)
	}
	report.putText("sos_commands/networking/ip_netns", "%s", &list)
	path, err := WriteArchive(t.TempDir(), fmt.Sprintf(reportName, n.Host), report, Packings()[7])
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	o := collectInto(t, dir, path)
	if want := "only those of the first 4096 are taken"; o.code != 3 || !strings.Contains(o.err, want) ||
		len(o.err) > 20_000 {
		t.Errorf("%d: %d bytes: %.2000s; want %s", o.code, len(o.err), o.err, want)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "recorded/namespaces")); len(entries) != 4096 {
		t.Errorf("%d namespaces were taken: %v", len(entries), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "db/ovs/conf.db")); err != nil {
		t.Error("too many namespaces kept the database from being collected")
	}
}

// checkNamespaces checks of which network namespaces a workdir has outputs.
func checkNamespaces(t *testing.T, dir string, want ...string) {
	t.Helper()
	wd, err := workdir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, err := wd.RecordedNamespaces()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	expect.Equal(t, fmt.Sprintf("%q", names), fmt.Sprintf("%q", want))
}
