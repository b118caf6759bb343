package match_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/ovn/match"
	"ovs-offline/test/daemons/ovs"
)

// TestProblemsAreThoseOfOVN gives matches to a real ovn-northd as ACLs, and has ovn-trace, which reads logical
// flows as ovn-controller does, say which of them it can't read.
func TestProblemsAreThoseOfOVN(t *testing.T) {
	ovs.Need(t, "ovn-trace")
	central := ovs.StartCentral(t)
	central.Northd()
	central.Nbctl("ls-add", "sw", "--", "lsp-add", "sw", "p", "--", "lsp-set-addresses", "p", "02:00:00:00:00:01 10.0.0.1",
		"--", "pg-add", "pg_1b", "p", "--", "pg-add", "a", "p", "--", "pg-add", "g", "p", "--", "pg-add", "group", "p")
	for _, set := range []string{"a1", "a2", "a_v4", "a.b_c"} {
		central.Nbctl("create", "Address_Set", "name="+set, "addresses=10.0.0.1")
	}
	var all []string
	for line := range strings.Lines(readable) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "newpredicate") {
			all = append(all, line)
		}
	}
	for text := range problems() {
		if text != "" && len(text) < 100 {
			all = append(all, text)
		}
	}
	for _, f := range []string{"eth.src", "eth.dst", "eth.type", "vlan.tci", "vlan.vid", "vlan.pcp", "ip.proto", "ip.dscp",
		"ip.ecn", "ip.ttl", "ip.frag", "ip4.src", "ip6.src", "ip6.label", "arp.op", "arp.spa", "arp.sha", "tcp.src",
		"tcp.flags", "udp.dst", "sctp.src", "icmp4.type", "icmp4.code", "icmp6.type", "icmp6.code", "nd.target", "nd.sll",
		"reg0", "ct_mark"} {
		all = append(all, f+" != 1", f+" < 2")
	}
	all = append(all, `inport != "p"`, `!(inport != "p")`, `!(inport == "p")`, `"p" != inport`,
		"!(ip.proto == 6 && tcp.dst == 1)", "!(!(ip.proto == 6))", "1 < ip.ttl < 5", "6 == ip.proto")
	for _, p := range []string{"eth.bcast", "eth.mcast", "vlan.present", "ip4", "ip6", "ip", "ip4.mcast", "ip6.mcast",
		"ip6.mcast_rsvd", "icmp", "icmp4", "icmp6", "igmp", "mldv1", "mldv2", "tcp", "udp", "sctp", "arp", "rarp", "nd",
		"nd_ns", "nd_na", "nd_rs", "nd_ra", "ip.is_frag", "ip.later_frag", "ip.first_frag"} {
		all = append(all, p, "!"+p)
	}
	for i, text := range all {
		central.Nbctl("acl-add", "sw", "from-lport", fmt.Sprint(1000+i), text, "drop")
	}
	central.Nbctl("--wait=sb", "sync")
	log := filepath.Join(central.Dir, "trace.log")
	central.Run("ovn-trace", "--db="+central.Remote, "-vconsole:off", "--log-file="+log, "sw",
		`inport == "p" && eth.src == 02:00:00:00:00:01 && ip4.src == 10.0.0.1`)
	written, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		refused := strings.Contains(string(written), "|"+text+": parsing expression failed")
		if why := match.Problem(text); (why != "") != refused {
			t.Errorf("%q: the problem is %q, and that OVN refuses it is %v", text, why, refused)
		}
	}
	if t.Failed() {
		t.Logf("%s", written)
	}
}
