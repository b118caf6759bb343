package restore_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
)

// bondsNode starts a node with a bond of every kind, and the switches behind them.
func bondsNode(t *testing.T) *liveNode {
	t.Helper()
	node, partner := newLiveNode(t), newLiveNode(t)
	for i, l := range []*liveNode{node, partner} {
		l.vsctl("add-br", "br0", "--", "set", "Bridge", "br0", fmt.Sprintf(`other_config:hwaddr="52:54:00:00:00:0%d"`, i+1))
	}
	// Packets that the bridges send over the cables must not loop.
	partner.vsctl("set-fail-mode", "br0", "secure")
	bond := func(l *liveNode, name string, args ...string) {
		l.vsctl(append([]string{"add-bond", "br0", name, name + "-1", name + "-2"}, args...)...)
	}
	const fast = "other_config:lacp-time=fast"
	bond(node, "backup", "bond_mode=active-backup")
	bond(node, "primary", "bond_mode=active-backup", "other_config:bond-primary=primary-2")
	bond(node, "slb", "bond_mode=balance-slb")
	bond(node, "alone", "bond_mode=balance-tcp", "lacp=active", fast)
	bond(node, "falls", "bond_mode=balance-tcp", "lacp=active", fast, "other_config:lacp-fallback-ab=true")
	bond(node, "off", "bond_mode=balance-tcp", "lacp=off")
	bond(node, "slow", "bond_mode=balance-tcp", "lacp=active", "other_config:lacp-system-priority=100")
	bond(partner, "slow", "bond_mode=balance-tcp", "lacp=passive", `other_config:lacp-system-id="02:aa:00:00:00:02"`,
		"other_config:lacp-system-priority=77")
	bond(node, "passive", "bond_mode=balance-tcp", "lacp=passive")
	bond(partner, "passive", "bond_mode=balance-tcp", "lacp=active")
	bond(node, "half", "bond_mode=balance-tcp", "lacp=active", fast)
	bond(partner, "half", "bond_mode=balance-tcp", "lacp=active", fast)
	bond(node, "delayed", "bond_mode=active-backup", "bond_updelay=100000", "bond_downdelay=200000")
	for _, cable := range []string{"slow-1", "slow-2", "passive-1", "passive-2", "half-1"} {
		node.link(cable, partner, cable)
	}
	node.vsctl("add-port", "br0", "vm")
	node.likeKernel("br0")
	for _, bond := range []string{"slow", "passive"} {
		node.wait(`(?s)current attached.*current attached`, "lacp/show", bond)
		node.wait(`(?s)may_enable: true.*may_enable: true`, "bond/show", bond)
	}
	node.wait(`(?s)half-1: current attached.*half-2: defaulted`, "lacp/show", "half")
	for _, bond := range []string{"alone", "falls"} {
		node.wait(`(?s)defaulted.*defaulted`, "lacp/show", bond)
	}
	node.wait(`(?s)may_enable: true.*may_enable: true`, "bond/show", "falls")
	node.wait(`(?s)may_enable: false.*may_enable: false`, "bond/show", "alone")
	for _, down := range []string{"slow-2", "delayed-2", "slb-1"} { // with two, slb would take turns: see TestBondHashes
		node.appctl("netdev-dummy/set-admin-state", down, "down")
	}
	node.appctl("bond/set-active-member", "backup", "backup-2")
	node.appctl("bond/set-active-member", "falls", "falls-2")
	node.wait("slow-2: disabled", "bond/show", "slow")
	node.wait("(?s)slb-2: enabled\n  active member", "bond/show", "slb")
	node.wait("downdelay expires", "bond/show", "delayed")
	return node
}

func bondPackets() []string {
	var packets []string
	for i, bond := range []string{"backup", "primary", "slb", "alone", "falls", "off", "slow", "passive", "half",
		"delayed"} {
		for member := 1; member <= 2; member++ {
			packets = append(packets,
				fmt.Sprintf("br0 in_port=%s-%d,ip,dl_src=02:00:00:00:01:%02d,dl_dst=01:00:5e:00:00:05", bond, member, i),
				fmt.Sprintf("br0 in_port=%s-%d,ip,dl_src=02:00:00:00:01:%02d,dl_dst=02:00:00:00:00:99", bond, member, i))
		}
	}
	return packets
}

// TestBonds checks that LACP partners, enabled and active members of every kind
// of bond are restored. Without the step no bond with a partner works.
func TestBonds(t *testing.T) {
	node := bondsNode(t)
	sos := node.report()
	r := replay(t, sos, process.Options{})
	r.wantStep("bonds", report.Restored)
	r.sameShown(node, "lacp/show")
	r.sameShown(node, "bond/show")
	if flows := r.appctl("dpctl/dump-flows"); strings.Contains(flows, "slow_path") {
		t.Errorf("the packets of the restore left datapath flows:\n%s", flows)
	}
	bare := replay(t, sos, process.Options{}, "bonds")
	needs(t, node, r, bare, bondPackets())
}

// TestBondsWithoutLACP checks that without lacp/show a partner that agrees is
// assumed and reported.
func TestBondsWithoutLACP(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-bond", "br0", "lag", "lag-1", "lag-2", "bond_mode=balance-tcp", "lacp=passive")
	node.likeKernel("br0")
	sos := node.report()
	remove(t, sos, "ovs-appctl_lacp.show")
	remove(t, sos, "ovs-appctl_bond.show")
	r := replay(t, sos, process.Options{})
	r.wantStep("bonds", report.Unknown, "a partner that agrees on every member is assumed", "no bond/show was collected")
	if have := r.appctl("bond/show", "lag"); strings.Count(have, ": enabled") != 2 ||
		!strings.Contains(have, "lacp_status: negotiated") {
		t.Errorf("no partner was assumed:\n%s", have)
	}
}

// TestMemberDisabledForUnrecordedReason checks that such a member stays disabled.
func TestMemberDisabledForUnrecordedReason(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-bond", "br0", "pair", "pair-1", "pair-2", "bond_mode=active-backup")
	node.likeKernel("br0")
	node.appctl("netdev-dummy/set-admin-state", "pair-1", "down")
	node.wait("(?s)pair-1: disabled.*pair-2: enabled\n  active member", "bond/show")
	sos := node.report()
	remove(t, sos, "ovs-ofctl_show_br0")
	r := replay(t, sos, process.Options{})
	r.wantStep("bonds", report.Approximated, "for an unrecorded reason")
	r.sameShown(node, "bond/show")
}

// TestLastSectionOfBondCounts checks that of several sections of one bond the
// last one is restored.
func TestLastSectionOfBondCounts(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-bond", "br0", "pair", "pair-1", "pair-2", "bond_mode=active-backup")
	node.likeKernel("br0")
	sos := node.report()
	shown := node.appctl("bond/show")
	write(t, sos, "ovs-appctl_bond.show", strings.Repeat(strings.ReplaceAll(shown, "may_enable: true",
		"may_enable: false"), 50)+shown)
	r := replay(t, sos, process.Options{})
	r.wantStep("bonds", report.Restored)
	r.sameShown(node, "bond/show")
}

// TestBondsThatNeverSettle checks that the step waits for all bonds together.
func TestBondsThatNeverSettle(t *testing.T) {
	const many = 40
	node := newLiveNode(t)
	node.vsctl("add-br", "br0")
	for i := range many {
		name := fmt.Sprint("bond", i)
		node.vsctl("add-bond", "br0", name, name+"-1", name+"-2", "bond_mode=active-backup")
	}
	node.likeKernel("br0")
	sos := node.report()
	write(t, sos, "ovs-appctl_bond.show", strings.ReplaceAll(node.appctl("bond/show"), "may_enable: true",
		"may_enable: false"))
	var log bytes.Buffer
	r := replayLogged(t, &log, sos, process.New(process.Options{}), nil)
	r.wantStep("bonds", report.Failed, "may_enable was false, in the replica true")
	const most = 5 * 500 // waits, each of which asks less often in its second: retryUntil pauses for 2 ms
	if asked := strings.Count(log.String(), "command=[bond/show]"); asked == 0 || asked > most {
		t.Errorf("bond/show of %d bonds was asked for %d times, want at most %d", many, asked, most)
	}
}

// TestBondHashes checks that hashes stay on the members that carried them.
func TestBondHashes(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-bond", "br0", "slb", "slb-1", "slb-2", "bond_mode=balance-slb", "--",
		"add-port", "br0", "vm")
	node.likeKernel("br0")
	const hashes = 8
	var packets []string
	for i := range hashes {
		hash := strings.TrimSpace(node.appctl("bond/hash", fmt.Sprintf("02:00:00:00:02:%02d", i)))
		node.appctl("bond/migrate", "slb", hash, fmt.Sprintf("slb-%d", 1+2*i/hashes))
		packets = append(packets, fmt.Sprintf("br0 in_port=vm,ip,dl_src=02:00:00:00:02:%02d,dl_dst=02:00:00:00:00:99", i))
	}
	sos := node.report()
	carrying(t, sos, node, hashes) // bond/show lists a hash only after kilobytes and seconds of traffic
	r := replay(t, sos, process.Options{})
	r.wantStep("bonds", report.Approximated, "the next member in turn")
	bare := replay(t, sos, process.Options{}, "bonds")
	needs(t, node, r, bare, packets)
}

// carrying adds the hashes that each member carried to the recorded bond/show.
func carrying(t *testing.T, sos string, node *liveNode, n int) {
	t.Helper()
	text := node.appctl("bond/show")
	for member := 1; member <= 2; member++ {
		var load strings.Builder
		for i := (member - 1) * n / 2; i < member*n/2; i++ {
			hash := strings.TrimSpace(node.appctl("bond/hash", fmt.Sprintf("02:00:00:00:02:%02d", i)))
			fmt.Fprintf(&load, "  hash %s: 12 kB load\n", hash)
		}
		head := fmt.Sprintf("member slb-%d: enabled\n", member)
		text = strings.Replace(text, head, head+load.String(), 1)
	}
	write(t, sos, "ovs-appctl_bond.show", text)
}
