//go:build linux

package keeper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/linux/keeper"
	"ovs-offline/replica/report"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// hostileRules are rules of iptables that would reach out of a namespace, or are none.
func hostileRules(mark string) []string {
	return []string{
		"-A INPUT --modprobe=/bin/touch -j ACCEPT",
		"-A INPUT -p tcp --modprobe " + mark + " -j ACCEPT",
		"-A INPUT --modp=" + mark + " -m odd -j ACCEPT",
		"-A INPUT -M " + mark + " -j ACCEPT",
		"-A INPUT --help -j ACCEPT",
		"-A INPUT --he",
		"-A INPUT -h",
		"-A INPUT -p tcp -m tcp -hx -j DROP",
		"-A INPUT --version -j ACCEPT",
		"-A INPUT -V -j ACCEPT",
		"-A INPUT --list",
		"-A INPUT -F",
		"-A INPUT -X",
		"-A INPUT --zero -j DROP",
		"-A INPUT --policy ACCEPT",
		"-A INPUT -6 -j DROP",
		"-A INPUT --ipv6 -j DROP",
		"-A INPUT -v -j DROP",
		"-A INPUT --wait 5 -j DROP",
		"-A INPUT --line-numbers -j DROP",
		"-A INPUT --jump=LED",
		"-A INPUT --match bpf --object-pinned /etc/passwd -j DROP",
		"-A INPUT -m hashlimit --hashlimit-htable-siz 5 --hashlimit-upto 1/sec --hashlimit-name x -j DROP",
		"-A INPUT -m bpf --object-pinned /etc/passwd -j ACCEPT",
		"-A INPUT -m cgroup --path ../../x -j ACCEPT",
		"-A INPUT -m ../../../tmp/x -j ACCEPT",
		"-A INPUT -j LED --led-trigger-id x",
		"-A INPUT -j IDLETIMER --timeout 5 --label x",
		"-A INPUT -t nat -j ACCEPT",
		"-A INPUT -s 1.2.3.4 -j NOWHERE",
		"-A NOWHERE -j ACCEPT",
		"-I INPUT -j ACCEPT",
		"-F INPUT",
		"-D INPUT 1",
		"-A INPUT -m comment --comment \"unclosed -j ACCEPT",
		"-A INPUT -s 300.1.2.3 -j DROP",
		"-A INPUT -p tcp -m tcp --dport 99999 -j DROP",
		"-A INPUT -m set --match-set missing src -j DROP",
		"-A INPUT -m string --algo bm --from 1 -j DROP",
	}
}

const hostileNft = `include "/etc/passwd"
define x = 5
flush ruleset
table inet t {
	set s {
		type ipv4_addr
		elements = { 1.2.3.4 }
		include "/etc/passwd"
	}
	set bad {
		type nonsense
	}
	chain c {
		type filter hook input priority filter; policy accept;
		include "/etc/shadow"
		accept } chain x { accept
		accept; include "/etc/passwd"
		ip saddr $x drop
		ip saddr 1.2.3.4 drop
		xt match "comment" counter accept
		counter # xt_comment accept
		ip saddr 1.2.3.5 nonsense
		ip saddr @missing drop
		tcp dport 80 accept
	}
	chain noted {
		comment "a chain"
		return
	}
}
table inet ovs_offline {
	chain first {
		drop
	}
}
`

// TestHostileRulesAreNamed restores rules that would reach out of the namespace beside good ones: each of them is
// named, the good ones are restored, and nothing is written.
func TestHostileRulesAreNamed(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore", "nft", "ipset")
	wd := newWorkdir(t)
	simple(t, wd, "bad")
	mark := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(mark, []byte("#!/bin/sh\ntouch "+mark+".was\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	good := []string{"-A INPUT -s 1.2.3.4/32 -j DROP", "-A FORWARD -m comment --comment --help -j DROP",
		"-A FORWARD -m policy --dir in --pol none -j DROP", "-A INPUT -p tcp -m tcp --dport 80 -j ACCEPT",
		"-A FORWARD -m comment --comment \"fine --modprobe=x\" -j ACCEPT"}
	all := "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:-Z - [0:0]\n" +
		strings.Join(slices.Concat(good[:1], hostileRules(mark), good[1:]), "\n") +
		"\nCOMMIT\n*odd\n-A INPUT -j ACCEPT\nCOMMIT\nnonsense\n"
	write(t, wd.NamespaceRecorded("bad", workdir.NamespaceFilters), all)
	write(t, wd.NamespaceRecorded("bad", workdir.HostNftables), hostileNft)
	write(t, wd.NamespaceRecorded("bad", workdir.NamespaceSets),
		"create a hash:ip family inet\nadd a 1.2.3.4\nadd a nonsense\ncreate -f /tmp/x\nadd a 1.1.1.1 -file /tmp/x\ncreate b odd:ip\ndestroy\nadd c 1.1.1.1\n")
	write(t, wd.NamespaceRecorded("bad", workdir.NamespaceConntrack),
		"nonsense src=1\nipv4 2 tcp 6 100 ESTABLISHED src=1.1.1.1 dst=::1 sport=1 dport=2 src=1.1.1.1 dst=2.2.2.2 sport=2 dport=1\nipv4 2 tcp 6 100 ESTABLISHED src=1.1.1.1 dst=2.2.2.2 sport=99999 dport=2 src=2.2.2.2 dst=1.1.1.1 sport=2 dport=1 use=1\n")
	write(t, wd.NamespaceRecorded("bad", workdir.HostRules),
		"5:\tfrom 1.2.3.4 lookup odd\n6:\tnonsense\n7:\tfrom all nop\n")
	write(t, wd.NamespaceRecorded("bad", workdir.HostSysctl),
		"net.ipv4.ip_forward = 1\nnet.ipv4.conf.all/../../../kernel.forwarding = 1\nnet.ipv4.conf.qr-1.rp_filter = nonsense\n")
	list, client := restored(t, wd)
	for _, entry := range list[0].Named {
		t.Logf("%+v", entry)
	}
	for _, remark := range list[0].Remarks {
		t.Log(remark)
	}
	for _, part := range report.Parts() {
		c := list[0].Counts[part]
		if c.Restored+c.Different+c.Rejected != c.Recorded {
			t.Errorf("%s: %+v", part, *c)
		}
	}
	rules := list[0].Counts[report.FilterRules]
	if want := len(good) + 3; rules.Restored != want {
		t.Errorf("%d rules are restored, want %d", rules.Restored, want)
	}
	for _, rule := range hostileRules(mark) {
		if !slices.ContainsFunc(list[0].Named, func(n report.NamedEntry) bool { return strings.Contains(n.Text, rule) }) {
			t.Errorf("%s is not named", rule)
		}
	}
	if files, _ := filepath.Glob(mark + ".*"); len(files) > 0 {
		t.Errorf("a rule wrote %s", files)
	}
	if _, err := client.Pass(t.Context(), linux.Question{Namespace: "bad",
		Frame: linux.Frame{Device: "qr-1", Bytes: udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 2, 64)}}); err != nil {
		t.Error(err)
	}
}

// TestManyRefusedRulesAreNamed restores two thousand rules that the programs refuse, beside as many good ones.
func TestManyRefusedRulesAreNamed(t *testing.T) {
	ovs.Need(t, "iptables-nft-restore")
	wd := newWorkdir(t)
	simple(t, wd, "refused")
	var refused strings.Builder
	refused.WriteString("*filter\n:FORWARD ACCEPT [0:0]\n")
	for i := range 2000 {
		fmt.Fprintf(&refused, "-A FORWARD -m set --match-set none%d src -j DROP\n-A FORWARD -s 10.0.%d.%d/32 -j DROP\n", i,
			i>>8, i&255)
	}
	write(t, wd.NamespaceRecorded("refused", workdir.NamespaceFilters), refused.String()+"COMMIT\n")
	list, _ := restored(t, wd)
	counted(t, list[0], report.FilterRules, report.Parted{Recorded: 4000, Restored: 2000, Rejected: 2000})
}

// TestManyRulesOfNft restores more rules of nft, and elements of a set, than fit into one message.
func TestManyRulesOfNft(t *testing.T) {
	ovs.Need(t, "nft")
	wd := newWorkdir(t)
	simple(t, wd, "many")
	var text strings.Builder
	text.WriteString("table inet many {\n\tmap small {\n\t\ttype inet_service : verdict\n\t\telements = { 22 : accept }\n\t}\n\tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "\t\tip saddr 10.0.%d.%d tcp dport %d counter packets 5 bytes 300 accept comment \"rule %d\" # handle %d\n", i>>8, i&255, i+1, i, i+10)
	}
	text.WriteString("\t\ttcp dport vmap @small\n\t}\n}\n")
	write(t, wd.NamespaceRecorded("many", workdir.HostNftables), text.String())
	list, _ := restored(t, wd)
	complete(t, list)
}

// TestNothingLeaves checks that no restored device leads anywhere, also where devices of a node's own namespace
// have the names of this machine's.
func TestNothingLeaves(t *testing.T) {
	ovs.Need(t, "ip", "nsenter")
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	_, client := restored(t, wd)
	list, err := client.Namespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := inside(t, wd, list[0].Name, "ip", "-d", "-o", "link")
	for line := range strings.Lines(out) {
		if !strings.Contains(line, ": lo:") && !strings.Contains(line, " tun type tap ") ||
			strings.Contains(line, "link-netns") {
			t.Errorf("a device that may lead out: %s", line)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", client.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 5 && words[4] != "/proc/sys/net" && !strings.HasPrefix(words[5], "ro") {
			t.Errorf("files that the keeper can write to: %s", line)
		}
	}
	for _, d := range list[0].Devices {
		if d.Name != "lo" && !d.Open {
			t.Errorf("%+v", d)
		}
	}
}

// BenchmarkStart restores ten namespaces with 500 rules each, and asks questions.
func BenchmarkStart(b *testing.B) {
	wd, err := workdir.Lock(filepath.Join(b.TempDir(), "wd"))
	if err != nil {
		b.Fatal(err)
	}
	defer wd.Unlock()
	t := &testing.T{}
	for n := range 10 {
		name := fmt.Sprintf("qrouter-%d", n)
		simple(t, wd, name)
		rules := strings.Builder{}
		rules.WriteString("*filter\n:FORWARD ACCEPT [0:0]\n")
		for i := range 500 {
			fmt.Fprintf(&rules, "-A FORWARD -d 10.2.%d.%d/32 -p tcp -m tcp --dport %d -m comment --comment \"rule %d\" -j ACCEPT\n", n, i&255, i, i)
		}
		write(t, wd.NamespaceRecorded(name, workdir.NamespaceFilters), rules.String()+"COMMIT\n")
	}
	for b.Loop() {
		started, err := keeper.Start(wd)
		if err != nil {
			b.Skip(err)
		}
		list, err := started.Report(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range list {
			if !n.Complete() {
				b.Fatalf("%+v", n.Named)
			}
		}
		b.StopTimer()
		client, err := linux.Dial(wd)
		if err != nil {
			b.Fatal(err)
		}
		frame := udp(t, vmMAC, routerMAC, "10.1.0.6", "8.8.8.8", 1, 2, 64)
		began := time.Now()
		const questions = 100
		for range questions {
			if _, err := client.Pass(b.Context(),
				linux.Question{Namespace: "qrouter-3", Frame: linux.Frame{Device: "qr-1", Bytes: frame}}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/questions, "µs/question")
		_ = client.Close()
		_ = started.Close()
		if err := keeper.Stop(b.Context(), wd); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
