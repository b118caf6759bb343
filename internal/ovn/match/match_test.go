package match_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/ovn/match"
	"ovs-offline/test/check/expect"
)

// readable are matches of northd's logical flows, of neutron, ovn-kubernetes and kube-ovn, which
// ovn-controller reads.
const readable = `
1
ip
outport == @pg_1b && ip4 && ip4.src == 0.0.0.0/0 && tcp && tcp.dst == 80
outport == @pg_1b && ip4 && ip4.src == $pg_1b_ip4 && udp && udp.dst >= 5000 && udp.dst <= 5010
ip4.src == {$a1, $a2} && ip4.src != {10.244.1.7/32} && tcp && 9100 <= tcp.dst <= 9110
outport == @a && (arp || nd)
inport == "rtos-worker1" && ip4.dst == 172.18.0.2 /* worker1 */
(ip4.dst == 203.0.113.0/24) && ip4.src == {$a_v4}
outport == @g && (tcp.dst == 23 || udp.dst == 69)
ip4.src==10.244.1.2
ip4.src == 10.0.0.5/24 && ip4.src == 10.0.0.0/255.0.0.0 && eth.src == 0a:58:00:00:00:00/ff:ff:00:00:00:00
eth.dst == fa:16:3e:00:00:01 && ip6.dst == fd00::/64 && ip6.src == ::1
!(tcp.dst == 1) && !ip4.mcast && tcp.flags[1] && ct.est && reg0[7] == 1
ip.proto == 47 && ip.ttl == {0, 1} && vlan.tci[13..15] == 3 && icmp6.type == {135, 136} && icmp6.code == 0
is_chassis_resident("cr-lrp") && ip4
ip4 && ip4.src == $a.b_c && flags.loopback == 0
some.new.field == 5 && newpredicate
0x800 == eth.type && "vm" == inport
`

func TestReadableMatchesHaveNoProblem(t *testing.T) {
	for line := range strings.Lines(readable) {
		if line = strings.TrimSpace(line); line != "" {
			expect.Equal(t, match.Problem(line), "", line)
		}
	}
}

// problems has matches, and a part of what is wrong with each; "" where this package does not know.
func problems() map[string]string {
	return map[string]string{
		"":                              "it ends where",
		"ip4 && (tcp.dst == 80":         "it ends where ) is expected",
		"ip4 && tcp.dst == 80)":         "`)' is not expected",
		"ip4 &&":                        "it ends where",
		"ip4 && tcp || udp":             "&& and || must be in parentheses",
		"!ip4.src == 10.0.0.1":          "the operand of !",
		"ipv4 && tcp.dst == 80":         "no field `ipv4'",
		"ip4 && tcp.dport == 80":        "no field `tcp.dport'",
		"ip4.src == 10.0.0.300":         "no address or number",
		"ip4.src==10.244.r.2":           "no address or number",
		"tcp.dst == 80x":                "no address or number",
		"ip4.src == 10.0.0":             "no address or number",
		"ip6.src == fd00::1::2":         "a constant is expected",
		"ip4.src == 10.0.0.0/33":        "no address or number",
		"ip4.src = 10.0.0.1":            "compared with nothing",
		"tcp.dst":                       "compared with nothing",
		"tcp.dst == {80, 443":           "it ends where } is expected",
		"tcp.dst == {}":                 "a constant is expected at `}'",
		"inport == vm1":                 "a constant is expected at `vm1'",
		"inport == 5":                   "no name in quotes",
		"tcp.dst == \"80\"":             "field that has numbers",
		"ip4.src == @group":             "field that has numbers",
		"5":                             "compared with no field",
		"ip4 tcp":                       "`tcp' is not expected",
		strings.Repeat("(", 200) + "ip": "",
	}
}

func TestProblems(t *testing.T) {
	for text, want := range problems() {
		got := match.Problem(text)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestReferences(t *testing.T) {
	sets, groups := match.References(`outport == @pg && ip4.src == {$a_1, $b} && inport == "@none $none" /* $c */`)
	expect.Equal(t, slices.Concat(sets, groups), []string{"a_1", "b", "pg"})
}

func FuzzProblem(f *testing.F) {
	for line := range strings.Lines(readable) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = match.Problem(text)
		_, _ = match.References(text)
	})
}

func BenchmarkProblem(b *testing.B) {
	for b.Loop() {
		_ = match.Problem("outport == @a1234567890 && ip4.src == {$a9876543210, $a1111111111} && tcp && tcp.dst == {80, 443, 8080} && ip4.dst == 10.0.0.0/16")
	}
}
