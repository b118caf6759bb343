package restore_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
)

// TestActionsThatTranslateDifferentlyAreNamed checks that the report names the actions of
// flows that a replica translates in another way than a node with the kernel's datapath.
func TestActionsThatTranslateDifferentlyAreNamed(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0", "--", "add-port", "br0", "a", "--", "add-port", "br0", "b")
	node.likeKernel("br0")
	node.ofctl("add-flow", "br0", "in_port=a,ip,actions=dec_ttl,set_queue:3,output:b")
	sos := node.report()
	flows := strings.Replace(node.ofctl("-O", "OpenFlow15", "dump-flows", "br0"), "dec_ttl", "dec_ttl()",
		1) // as ovn-controller sends it
	write(t, sos, "ovs-ofctl_-O_OpenFlow15_dump-flows_br0", flows)
	r := replay(t, sos, process.Options{})
	for _, want := range []string{"skb_priority(0x10001 + N)", "for a packet with TTL 1"} {
		if !slices.ContainsFunc(r.report.Remarks, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no remark with %q: %q", want, r.report.Remarks)
		}
	}
	if trace := r.appctl("ofproto/trace", "br0", "in_port=a,ip,nw_ttl=9"); !strings.Contains(trace,
		"set(skb_priority(0x3))") {
		t.Errorf("the replica shows no queue:\n%s", trace)
	}
}

// TestMetersOfEqualAgeAreNamed checks that the report names meters whose order
// meter-stats does not show, because they were made in the same millisecond.
func TestMetersOfEqualAgeAreNamed(t *testing.T) {
	node := newLiveNode(t)
	node.vsctl("add-br", "br0")
	node.ofctl("-O", "OpenFlow15", "add-meter", "br0", "meter=7,kbps,band=type=drop,rate=1000")
	node.ofctl("-O", "OpenFlow15", "add-meter", "br0", "meter=3,kbps,band=type=drop,rate=2000")
	sos := node.report()
	stats := node.ofctl("-O", "OpenFlow15", "meter-stats", "br0")
	for _, c := range []struct {
		ages []string // of meters 7 and 3
		want report.Status
	}{{[]string{"9.002s", "9.001s"}, report.Restored}, {[]string{"9.002s", "9.002s"}, report.Approximated}} {
		ages := map[string]string{"7": c.ages[0], "3": c.ages[1]}
		text := regexp.MustCompile(`(meter:)(\d+)(.*duration:)\S+`).ReplaceAllStringFunc(stats, func(line string) string {
			m := regexp.MustCompile(`(meter:)(\d+)(.*duration:)\S+`).FindStringSubmatch(line)
			return m[1] + m[2] + m[3] + ages[m[2]]
		})
		remove(t, sos, "ovs-ofctl_-O_OpenFlow15_meter-stats_br0")
		write(t, sos, "ovs-ofctl_-O_OpenFlow15_meter-stats_br0", text)
		replay(t, sos, process.Options{}).wantStep("meters", c.want)
	}
}
