//go:build linux

package keeper_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// mostOfKernel is what sets and the tables of rules may take of the kernel's memory, in bytes.
const mostOfKernel = 64 << 20

// greedy is a recorded output whose lines ask the kernel for memory.
type greedy struct {
	output string
	text   string
	part   report.Part
	argv   []string // what lists in the namespace what the kernel has
	// size matches the size of each object that this prints: bytes and each are what the kernel takes for it beside bytes
	// for each unit.
	size        string
	bytes, each int
	says        string // a part of a remark or a reason
}

// greedyTexts ask for 200 MB to 4 GB.
func greedyTexts() map[string]greedy {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "@", strconv.Itoa(i)) + "\n")
		}
		return b.String()
	}
	rules := func(n int, format string) string {
		return "*filter\n:FORWARD ACCEPT [0:0]\n" + lines(n, "-A FORWARD "+format) + "COMMIT\n"
	}
	const over = "48 MB of the kernel's memory"
	listSets, listRules := []string{"ipset", "list", "-t"}, []string{"iptables-nft-save"}
	return map[string]greedy{
		"large sets": {workdir.NamespaceSets, lines(12, "create s@ hash:ip family inet hashsize 16777216 maxelem 4294967295"),
			report.Sets, listSets, `hashsize (\d+)`, 0, 8, "12 sets begin with hashsize 65536 instead of more"},
		"many sets": {workdir.NamespaceSets, lines(4000, "create s@ hash:net family inet6 hashsize 65536 maxelem 65536"),
			report.Sets, listSets, `hashsize (\d+)`, 0, 8, over},
		"bitmaps": {workdir.NamespaceSets, lines(100, "create s@ bitmap:port range 0-65535 timeout 0 counters comment skbinfo"),
			report.Sets, listSets, `Size in memory: (\d+)`, 0, 1, over},
		"hashlimit": {workdir.NamespaceFilters, rules(2000, "-m hashlimit --hashlimit-upto 1/sec --hashlimit-name n@ -j DROP"),
			report.FilterRules, listRules, `--hashlimit-name n(\d)`, 128 << 10, 0, over},
		"large hashlimit": {workdir.NamespaceFilters,
			rules(40, "-m hashlimit --hashlimit-upto 1/sec --hashlimit-name n@ --hashlimit-htable-size 16777216 -j DROP"),
			report.FilterRules, listRules, `--hashlimit-htable-size (\d+)`, 0, 8, over},
		"connlimit": {workdir.NamespaceFilters, rules(40000, "-m connlimit --connlimit-above @ -j DROP"),
			report.FilterRules, listRules, `--connlimit-above (\d)`, 3 << 10, 0, over},
		"nft": {workdir.HostNftables, "table ip t {\n" + lines(4, "set s@ {\ntype ipv4_addr\nsize 16777216\n}") + "}\n",
			report.Sets, []string{"nft", "list", "ruleset"}, `size (\d+)`, 0, 16, over},
	}
}

// TestMemoryOfTheKernelIsBounded restores sets and rules that ask for large tables, or for many, in two namespaces: the
// kernel's own lists say what they took of it together, and the report says what was left out.
func TestMemoryOfTheKernelIsBounded(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore", "nft", "ipset")
	for name, g := range greedyTexts() {
		t.Run(name, func(t *testing.T) {
			wd := newWorkdir(t)
			for _, namespace := range []string{"one", "two"} {
				simple(t, wd, namespace)
				write(t, wd.NamespaceRecorded(namespace, g.output), g.text)
			}
			list, _ := restored(t, wd)
			taken := 0
			var said []string
			for _, n := range list {
				c := n.Counts[g.part]
				t.Logf("%+v %q", *c, n.Remarks)
				if c.Recorded != c.Restored+c.Rejected+c.Different {
					t.Errorf("%+v", *c)
				}
				said = append(said, n.Remarks...)
				for _, entry := range n.Named {
					said = append(said, entry.Reason)
				}
				for _, match := range regexp.MustCompile(g.size).FindAllStringSubmatch(inside(t, wd, n.Name, g.argv...), -1) {
					size, err := strconv.Atoi(match[1])
					if err != nil {
						t.Fatal(err)
					}
					taken += g.bytes + g.each*size
				}
			}
			if taken > mostOfKernel {
				t.Errorf("the kernel gave %d MB", taken>>20)
			}
			if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, g.says) }) {
				t.Errorf("nothing says %q: %.2000s", g.says, fmt.Sprint(said))
			}
		})
	}
}
