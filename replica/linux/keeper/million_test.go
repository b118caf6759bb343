//go:build linux

package keeper_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/linux/keeper"
	"ovs-offline/replica/report"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// million is how many rules, entries of sets or connections a hostile report has of each kind.
const million = 1000000

// few is how many lines such a report has outside of a sweep, where TestOnlyTheFirstAreRead has the bounds.
const few = 10000

// hostile is a recorded output of many lines, and what is restored of it.
type hostile struct {
	lines      int    // outside of a sweep; in it, a million
	output     string // where it is recorded
	begin, end string
	line       func(i int) string
	part       report.Part
	want       report.Parted // only the most that are Restored; without it, it depends on the programs how many are restored
	says       string        // a part of a remark
}

// hostiles are rules of iptables and nft, entries of a set and connections, and rules of each kind that is odd.
func hostiles() map[string]hostile {
	const beginNft = "table inet many {\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n"
	address := func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }
	return map[string]hostile{
		"rules": {few, workdir.NamespaceFilters, "*filter\n:FORWARD ACCEPT [0:0]\n", "COMMIT\n",
			func(i int) string { return "-A FORWARD -s " + address(i) + "/32 -j DROP" },
			report.FilterRules, report.Parted{Restored: 100000}, "more are not"},
		"nft": {few, workdir.HostNftables, beginNft, "\t}\n}\n",
			func(i int) string { return "\t\tip saddr " + address(i) + " drop" },
			report.FilterRules, report.Parted{Restored: 100000}, "more are not"},
		"sets": {few, workdir.NamespaceSets, "create all hash:ip family inet hashsize 1024 maxelem 1000000\n", "",
			func(i int) string { return "add all " + address(i) },
			report.Sets, report.Parted{Restored: 500000}, "only the first 500000 lines"},
		"connections": {few, workdir.NamespaceConntrack, "", "",
			func(i int) string {
				return fmt.Sprintf("ipv4     2 udp      17 29 src=%s dst=8.8.8.8 sport=5000 dport=53 src=8.8.8.8 dst=%s sport=53 dport=5000 [ASSURED] mark=0 use=1", address(i), address(i))
			},
			report.Connections, report.Parted{Restored: 200000}, "only the first 200000 connections"},
		"odd rules": {24000, workdir.NamespaceFilters, "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.1/32 -j DROP\n",
			"COMMIT\n", oddRule,
			report.FilterRules, report.Parted{}, "lines are no part of what iptables-save prints"},
		"odd nft": {200000, workdir.HostNftables, beginNft + "\t\tip saddr 10.0.0.1 drop\n", "\t}\n}\n", oddStatement,
			report.FilterRules, report.Parted{}, "only the first 500 entries of filter rules"},
	}
}

// mostMemory is what the processes of the namespaces may need at the same time, in bytes.
const mostMemory = 500 << 20

// TestAMillionOfEachAreBounded restores a million lines of each kind in one namespace, beside another one; outside of a
// sweep, fewer lines. The first ones are restored, what was left out is counted and named, the processes need a
// bounded amount of memory, and the other namespace is complete.
func TestAMillionOfEachAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	ovs.Need(t, "iptables-nft-restore", "nft", "ipset")
	for name, h := range hostiles() {
		t.Run(name, func(t *testing.T) {
			wd := newWorkdir(t)
			simple(t, wd, "hostile")
			simple(t, wd, "plain")
			compose(t, wd.NamespaceRecorded("hostile", h.output), h)
			write(t, wd.NamespaceRecorded("plain", workdir.NamespaceFilters), established)
			most := memoryOf(t, wd)
			began := time.Now()
			list, client := restored(t, wd)
			used := most()
			t.Logf("restored in %v, with %d MB", time.Since(began), used>>20)
			if used > mostMemory || used == 0 {
				t.Errorf("the processes of the namespaces need %d MB, more than %d MB", used>>20, mostMemory>>20)
			}
			h.judge(t, list[0])
			complete(t, list[1:])
			frame := linux.Frame{Device: "qr-1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 2, 64)}
			for _, namespace := range []string{"hostile", "plain"} {
				if _, err := client.Pass(t.Context(), linux.Question{Namespace: namespace, Frame: frame}); err != nil {
					t.Errorf("a question to %s: %v", namespace, err)
				}
			}
		})
	}
}

// size returns how many lines the report has in this run.
func (h hostile) size() int { return sweep.Count(million, h.lines) }

// judge checks what the report says of the namespace.
func (h hostile) judge(t *testing.T, n *report.Namespace) {
	t.Helper()
	c := n.Counts[h.part]
	t.Logf("%+v, %d named; %q", *c, len(n.Named), n.Remarks)
	if h.want.Restored > 0 {
		h.want.Recorded = h.size()
		if h.part == report.Sets {
			h.want.Recorded++ // the set itself
		}
		h.want.Restored = min(h.want.Restored, h.want.Recorded)
		h.want.Rejected = h.want.Recorded - h.want.Restored
		counted(t, n, h.part, h.want)
		if h.want.Rejected == 0 {
			h.says = ""
		}
	} else if c.Restored == 0 || c.Restored+c.Different+c.Rejected != c.Recorded || len(n.Named) < 100 {
		t.Errorf("%+v, and %d entries are named", *c, len(n.Named))
	}
	if h.says != "" && !slices.ContainsFunc(n.Remarks,
		func(remark string) bool { return strings.Contains(remark, h.says) }) {
		t.Errorf("no remark says %q: %q", h.says, n.Remarks)
	}
	for _, entry := range n.Named {
		if len(entry.Text) > 1100 || len(entry.Reason) > 600 {
			t.Errorf("an entry of %d bytes for a reason of %d", len(entry.Text), len(entry.Reason))
		}
	}
}

// oddRule returns a line that a hostile report may have among the rules of iptables.
func oddRule(i int) string {
	switch i % 24 {
	case 0:
		return fmt.Sprintf("-A FORWARD -m odd%d --odd 1 -j ACCEPT", i)
	case 1:
		return fmt.Sprintf("-A FORWARD -j ODD%d", i)
	case 2:
		return fmt.Sprintf("-A FORWARD -m u32 --u32 \"0>>%d&0xFFFF=0x%x:0xffffffff&&6&0xFF=%d\" -j DROP", i, i, i)
	case 3:
		return `-A FORWARD -j LOG --log-prefix "a \"quote\", a \\ and $(touch /tmp/x) ;"`
	case 4:
		return fmt.Sprintf(":chain%d - [0:0]", i)
	case 5:
		if i%2400 == 5 {
			return ":" + strings.Repeat("x", 10000) + " - [0:0]"
		}
		return ":" + strings.Repeat("y", 65) + " - [0:0]"
	case 6:
		if i%2400 == 6 {
			return "-A " + strings.Repeat("x", 10000) + " -j ACCEPT"
		}
		return fmt.Sprintf("-A chain%d -j ACCEPT", i-2)
	case 7:
		return "-A FORWARD -s 10.0.0.1/32 \x00-j ACCEPT"
	case 8:
		return `include "/etc/passwd"`
	case 9:
		return "define x = 5"
	case 10:
		return "-f"
	case 11:
		return "COMMIT"
	case 12:
		return "*" + []string{"filter", "nat", "mangle", "raw", "security", "odd"}[i/24%6]
	case 13:
		return `-A FORWARD -m comment --comment "never closed -j ACCEPT`
	case 14:
		return "-A FORWARD { { { -j ACCEPT"
	case 15:
		return "-A FORWARD -m bpf --object-pinned /etc/passwd -j ACCEPT"
	case 16:
		return ":FORWARD ACCEPT [0:0]"
	case 17:
		return fmt.Sprintf("-A FORWARD -p tcp -m tcp --dport %d -j DROP", i)
	case 18:
		return fmt.Sprintf("-A FORWARD -m set --match-set none%d src -j DROP", i)
	case 19:
		return "-A FORWARD -g FORWARD"
	case 20:
		return fmt.Sprintf("-A FORWARD -f -m string --algo bm --from %d --string \"%s\" -j DROP", i,
			strings.Repeat("s", i%300))
	case 21:
		return strings.Repeat("-A ", 50)
	case 22:
		return fmt.Sprintf("-A FORWARD -m multiport --dports %s1 -j DROP", strings.Repeat("1,", i%40))
	}
	return fmt.Sprintf("-A FORWARD -s 10.%d.%d.%d/32 -j DROP", i>>16, i>>8&255, i&255)
}

// oddStatement returns a line that a hostile report may have among the rules of nft.
func oddStatement(i int) string {
	switch i % 16 {
	case 0:
		return `include "/etc/passwd"`
	case 1:
		return "define x = 5"
	case 2:
		return "ip saddr $x drop"
	case 3:
		return fmt.Sprintf("odd%d statement", i)
	case 4:
		return `comment "never closed`
	case 5:
		return "ip saddr { 10.0.0.1, { drop"
	case 6:
		return "} } } }"
	case 7:
		return fmt.Sprintf("table inet other%d {", i)
	case 8:
		return fmt.Sprintf("chain c%d {", i)
	case 9:
		return "accept\x00drop"
	case 10:
		return "flush ruleset"
	case 11:
		return fmt.Sprintf("jump c%d", i)
	case 12:
		return fmt.Sprintf("ip saddr @none%d drop", i)
	case 13:
		return fmt.Sprintf("set s%d {", i)
	case 14:
		return "xt match \"comment\" counter accept"
	}
	return fmt.Sprintf("ip saddr 10.%d.%d.%d drop", i>>16, i>>8&255, i&255)
}

// compose writes a recorded output of so many lines.
func compose(t *testing.T, path string, h hostile) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(file, 1<<20)
	_, _ = io.WriteString(out, h.begin)
	for i := range h.size() {
		_, _ = io.WriteString(out, h.line(i)+"\n")
	}
	_, _ = io.WriteString(out, h.end)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// counted compares the counts of a part of a namespace.
func counted(t *testing.T, n *report.Namespace, part report.Part, want report.Parted) {
	t.Helper()
	c := n.Counts[part]
	if c.Recorded != want.Recorded || c.Restored != want.Restored || c.Different != want.Different ||
		c.Rejected != want.Rejected {
		t.Errorf("%s: %+v, want %+v; %q", n.Name, *c, want, n.Remarks)
	}
}

// memoryOf measures the memory that the keeper of a workdir and its programs have at the same time, until the function
// is called that it returns, which returns the most, in bytes.
func memoryOf(t *testing.T, wd *workdir.Dir) (most func() int) {
	t.Helper()
	stop, result := make(chan struct{}), make(chan int)
	go func() {
		highest := 0
		for {
			highest = max(highest, residentOf(wd))
			select {
			case <-stop:
				result <- highest
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int {
		close(stop)
		return <-result
	}
}

// residentOf returns the memory of the keeper of a workdir, and of the programs that it runs now.
func residentOf(wd *workdir.Dir) (bytes int) {
	parents, resident, keepers := map[string]string{}, map[string]int{}, map[string]bool{}
	statuses, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid := filepath.Base(filepath.Dir(path))
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch value = strings.TrimSpace(value); name {
			case "PPid":
				parents[pid] = value
			case "VmRSS":
				n := 0
				_, _ = fmt.Sscanf(value, "%d kB", &n)
				resident[pid] = n << 10
			}
		}
		keepers[pid] = isKeeperOf(pid, wd)
	}
	for pid, size := range resident {
		if keepers[pid] || keepers[parents[pid]] {
			bytes += size
		}
	}
	return bytes
}

// isKeeperOf reports whether a process keeps the namespaces of a workdir.
func isKeeperOf(pid string, wd *workdir.Dir) bool {
	line, err := os.ReadFile("/proc/" + pid + "/cmdline")
	return err == nil && bytes.Equal(line, []byte(keeper.Name+"\x00"+wd.Path()+"\x00"))
}
