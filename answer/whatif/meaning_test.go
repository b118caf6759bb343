package whatif

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/prove"
	"ovs-offline/internal/unixctl"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
)

// policy is an ACL for what a pod or an instance sends, and what it means.
type policy struct {
	capture, what                  string
	group, priority, match, action string

	from, to string // of the packets that get nowhere with it; "" if none behaves differently
	unjudged string // what is not judged; "" for nothing
}

func (p policy) acl(command string, action ...string) []string {
	return append([]string{command, p.group, "from-lport", p.priority, p.match}, action...)
}

// unlimited is more time than a meaning takes.
const unlimited = time.Hour

// TestAChangeSaysWhatItMeans adds policies and removes them again. With and without them, the switch that has its flows
// from ovn-controller has to treat packets as the meaning says. One of the policies is for packets to a tunnel, on a
// node that sets a part of a field.
func TestAChangeSaysWhatItMeans(t *testing.T) {
	fidelity.NeedScratch(t)
	const worker, compute = "captures/ovn-kubernetes-worker", "captures/ovn-openstack-compute"
	pod := func(match string) string { return "inport == @pg_ns1 && " + match }
	all := []policy{
		{worker, "ARP", "pg_ns1", "2000", pod("arp.spa == 10.244.1.5"), "drop", "ns1/client", "ns1/web1", ""},
		{worker, "ARP that is allowed", "pg_ns1", "900", pod("arp.spa == 10.244.1.5"), "allow", "", "", ""},
		{worker, "a connection", "pg_ns1", "2000", pod("ip4.src == 10.244.1.5 && tcp.dst == 80"), "drop",
			"ns1/client", "ns1/web1", ""},
		{worker, "what no pod sends", "pg_ns1", "2000", pod("ip4.src == 10.244.1.99 && tcp.dst == 80"), "drop",
			"", "", ""},
		{compute, "to a tunnel", "neutron-b2b2b2b2-0002", "2000", `inport == "p-vm1" && arp.spa == 192.168.10.5`,
			"drop", "p-vm1", "ovn-4c4c45-1", "packets with a VLAN tag get another one"},
	}
	all = sweep.Named(t, all, func(p policy) string { return p.what }, "ARP", "ARP that is allowed", "to a tunnel")
	for _, capture := range []string{worker, compute} {
		wd := collected.Report(t, captures.Report(t, capture))
		onNode(t, wd, Options{Meaning: unlimited}, func(s *Session) {
			for _, p := range all {
				if p.capture == capture {
					t.Run(p.what, func(t *testing.T) { p.check(t, s) })
				}
			}
		})
	}
}

// check adds a policy, and removes it again if it does something.
func (p policy) check(t *testing.T, s *Session) {
	added := apply(t, s, p.acl("acl-add", p.action)...).Nodes[0]
	if added.Equal() || added.Meaning == nil {
		t.Fatalf("%s: %+v", added.Summary(), added.Meaning)
	}
	p.checkMeaning(t, added.Meaning)
	if p.from == "" {
		return
	}
	for _, with := range []bool{true, false} {
		for _, packet := range added.Meaning.Packets {
			if packet.Certain && sends(t, s, packet.Witness) == with {
				t.Errorf("%s is sent: %v, with the policy: %v", packet.Witness, !with, with)
			}
		}
		if with {
			s.options.Meaning = 0
			apply(t, s, p.acl("acl-del")...)
			s.options.Meaning = unlimited
		}
	}
}

// checkMeaning compares what a policy means with what it should.
func (p policy) checkMeaning(t *testing.T, got *prove.Meaning) {
	t.Helper()
	want := prove.Same
	switch {
	case p.unjudged != "":
		want = prove.Undetermined
	case p.from != "":
		want = prove.Differs
	}
	if got.Verdict != want || strings.Join(got.Missing, "; ") != p.unjudged || got.Asked == 0 || len(got.Disagree) > 0 {
		t.Errorf("%+v", got)
	}
	for _, packet := range got.Packets {
		if !slices.Equal(packet.From, []string{p.from}) || packet.After != "dropped" {
			t.Errorf("from %s, %s; then %s", packet.From, packet.Before, packet.After)
		}
	}
	isExpected := func(packet prove.Treated) bool { return packet.Certain && packet.Before == "to "+p.to }
	if p.from != "" && !slices.ContainsFunc(got.Packets, isExpected) {
		t.Errorf("no packets to %s: %+v", p.to, got.Packets)
	}
}

// sends reports whether the integration bridge, which has no ports here, would send a packet to one.
func sends(t *testing.T, s *Session, packet string) bool {
	t.Helper()
	conn, err := unixctl.Connect(t.Context(), filepath.Join(s.options.Dir.VarRuns(), "node0"), "ovs-vswitchd")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	printed, err := conn.Run(t.Context(), "ofproto/trace", "br-int", packet)
	if err != nil || !strings.Contains(string(printed), "Datapath actions:") {
		t.Fatalf("%s: %v\n%s", packet, err, printed)
	}
	return strings.Contains(string(printed), "Nonexistent output port")
}
