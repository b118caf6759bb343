package openflow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// numberOfPorts is the number of ports of the switch that compares spellings.
const numberOfPorts = 40

// forms returns the canonical forms of all flows in a dump by table and priority, or by
// criteria if all is set.
func forms(t *testing.T, c *Canonical, dump string) map[string][]string {
	t.Helper()
	flows, problems := allFlows(strings.NewReader(header + dump))
	for _, p := range problems {
		t.Errorf("a dump of a real switch can't be read: %v", p)
	}
	found := map[string][]string{}
	for _, f := range flows {
		key := fmt.Sprint(c.Key(f))
		found[key] = append(found[key], c.Actions(f.Actions()))
	}
	return found
}

// dumped is a dump of a switch in one spelling.
type dumped struct {
	version Version
	names   string
	text    string
}

// everySpelling dumps the flows of the switch in each version of OpenFlow, with and without
// names. A version that can't express one of the flows has no dump.
func (s testSwitch) everySpelling(t *testing.T) (list []dumped) {
	t.Helper()
	for _, v := range Versions() {
		for _, names := range []string{"--no-names", "--names"} {
			text, err := s.run(t, "ovs-ofctl", "-O", v.String(), names, "--no-stats", "dump-flows", "br0")
			if err != nil {
				t.Logf("%s can't express the flows: %.300v", v, err)
				continue
			}
			list = append(list, dumped{v, names, text})
		}
	}
	return list
}

// sameForms checks that all dumps of the switch have one canonical form.
func (s testSwitch) sameForms(t *testing.T, flows int) {
	t.Helper()
	list := s.everySpelling(t)
	ports := map[string]int{}
	for _, p := range Show(strings.NewReader(s.must(t, "ovs-ofctl", "show", "br0"))).Ports {
		ports[p.Name] = p.Number
	}
	first := list[0]
	for _, other := range list[1:] {
		c := &Canonical{Oldest: OlderOf(first.version, other.version), Ports: ports}
		if n := compareForms(t, c, first.text, other.text, other.version.String()+" "+other.names); n != flows {
			t.Errorf("%s: %d flows have %d canonical matches", other.version, flows, n)
		}
	}
}

// compareForms checks that two dumps of one switch have the same canonical forms, and returns
// the number of different matches.
func compareForms(t *testing.T, c *Canonical, one, other, name string) int {
	t.Helper()
	want, have := forms(t, c, one), forms(t, c, other)
	differ := 0
	for key, actions := range have {
		if !slices.Equal(actions, want[key]) {
			if differ++; differ < 6 {
				t.Errorf("%s: %s\nhave %q\nwant %q", name, key, actions, want[key])
			}
		}
	}
	if differ > 0 || len(have) != len(want) {
		t.Errorf("%s: %d of %d flows differ", name, differ, len(have))
	}
	return len(want)
}

// newest are words of flows that ovs-ofctl can't dump in an older version of OpenFlow than
// 1.3, or that OpenFlow 1.0 prints with another meaning.
func inexpressible(source string) bool {
	return slices.ContainsFunc([]string{"encap(", "decap(", "dec_nsh_ttl", "write_metadata:1,goto", "write_actions",
		"tun_metadata"}, func(word string) bool {
		return strings.Contains(source, word)
	})
}

// TestSpellingsOfASwitchHaveOneForm adds flows with all fields and actions to a real switch.
// Its dumps in all versions of OpenFlow, with and without names, have one canonical form.
func TestSpellingsOfASwitchHaveOneForm(t *testing.T) {
	s := startSwitch(t)
	s.must(t, "ovs-vsctl", "add-port", "br0", "9a,b(", "--", "set", "interface", "9a,b(", "type=dummy", "ofport_request=9")
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-meter", "br0", "meter=1 kbps bands=type=drop rate=1")
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-group", "br0", "group_id=1,type=all")
	var sources []string
	add := func(source string) {
		if !inexpressible(source) {
			sources = append(sources, fmt.Sprintf("table=1,priority=%d,%s", len(sources)+1, source))
		}
	}
	for _, m := range matches {
		add(m + " actions=drop")
	}
	for _, a := range slices.Concat(actions, spelledActions) {
		match, action, _ := strings.Cut(a, "|")
		add(match + " actions=" + action)
	}
	failed := s.addAll(t, sources)
	for source, err := range failed {
		t.Logf("OVS %s does not know %s: %.200v", s.version(t), source, err)
	}
	if len(failed) > len(sources)/10 {
		t.Errorf("only %d of %d flows could be added", len(sources)-len(failed), len(sources))
	}
	s.sameForms(t, len(sources)-len(failed))
}

// spelledActions are more actions that versions of OpenFlow spell differently.
var spelledActions = []string{
	"ip|set_field:aa:55:aa:00:00:00/ff:ff:ff:00:00:00->eth_src",
	"ip,dl_vlan=5|set_field:4098/0x1003->vlan_vid,set_field:1->vlan_pcp",
	"ip|load:0xffff->NXM_OF_IN_PORT[],output:9", "ip|load:0->NXM_OF_IN_PORT[]", "ip|set_field:9->in_port,enqueue:9:5",
	"ip|load:104->NXM_OF_IP_TOS[],mod_nw_ttl:3", "ip|load:4->NXM_NX_IP_TTL[]",
	"ip|learn(table=2,in_port=9,output:in_port)", "mpls|load:3->OXM_OF_MPLS_TC[],set_mpls_label:3",
	"mpls|set_mpls_tc:1,set_mpls_ttl:4", "ip|dec_ttl(0),dec_ttl", "tcp|set_field:80->tcp_src,set_field:81->tcp_src",
	"ip|set_tunnel:5,mod_vlan_vid:6,mod_nw_tos:8", "ip|resubmit(9,5),resubmit:9,bundle(eth_src,0,hrw,ofport,members:9,1)",
	"ip|ct(commit,zone=NXM_NX_REG13[0..15],exec(load:0x1->NXM_NX_CT_MARK[1],move:NXM_OF_ETH_SRC[]->NXM_NX_CT_LABEL[32..79]),nat(src))",
	"dl_vlan=3|load:0->NXM_OF_VLAN_TCI[],output:2",
	"ip|load:0x3->NXM_NX_REG0[0..1],load:0x3->NXM_NX_REG0[4..5],load:0x1->NXM_NX_REG1[0..31]",
}

// TestDumpsOfCapturesHaveOneForm adds the flows of the captured nodes to a real switch, and
// compares its dumps. Where a capture has several dumps of one bridge, these are compared as
// well: other releases of Open vSwitch wrote them.
func TestDumpsOfCapturesHaveOneForm(t *testing.T) {
	recorded := regexp.MustCompile(`^(.*)/ovs-ofctl_-O_(OpenFlow1[0-5])_dump-flows_(.*)$`)
	bridges := map[string]map[Version]string{}
	for name, raw := range dumps(t) {
		if m := recorded.FindStringSubmatch(name); m != nil && strings.Contains(string(raw), "actions=") {
			key := m[1] + " " + m[3]
			if bridges[key] == nil {
				bridges[key] = map[Version]string{}
			}
			bridges[key][ParseVersion(m[2])] = string(raw)
		}
	}
	for name, byVersion := range bridges {
		t.Run(name, func(t *testing.T) {
			newest := slices.Max(slices.Collect(maps.Keys(byVersion)))
			for v, text := range byVersion {
				compareForms(t, &Canonical{Oldest: OlderOf(v, newest)}, byVersion[newest], text, v.String())
			}
			startSwitch(t).load(t, byVersion[newest])
		})
	}
	if len(bridges) < 3 {
		t.Errorf("%d bridges in all the captures", len(bridges))
	}
}

// load adds the flows of a dump, with what they refer to, and checks their spellings.
func (s testSwitch) load(t *testing.T, dump string) {
	t.Helper()
	flows, _ := allFlows(strings.NewReader(dump))
	for i := 3; i < numberOfPorts; i++ {
		name := fmt.Sprintf("port%d", i)
		s.must(t, "ovs-vsctl", "--no-wait", "add-port", "br0", name, "--", "set", "interface", name, "type=dummy",
			fmt.Sprintf("ofport_request=%d", i))
	}
	s.must(t, "ovs-vsctl", "--no-wait", "set", "bridge", "br0", "other_config:x=y")
	s.must(t, "ovs-vsctl", "set", "bridge", "br0", "other_config:x=z")
	if strings.Contains(dump, "tun_metadata0") {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-tlv-map", "br0", "{class=0x102,type=0x80,len=4}->tun_metadata0")
	}
	var refers References
	var sources []string
	for _, f := range flows {
		refers.Add(f.Text)
		text, _ := Rewrite(f.Text)
		sources = append(sources, text)
	}
	for id := range refers.Meters {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-meter", "br0",
			fmt.Sprintf("meter=%d kbps bands=type=drop rate=1", id))
	}
	for id := range refers.Groups {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-group", "br0", fmt.Sprintf("group_id=%d,type=all", id))
	}
	for source, err := range s.addAll(t, sources) {
		t.Errorf("%s: %.200v", source, err)
	}
	s.sameForms(t, len(sources))
}

// TestOtherFlowsHaveOtherForms changes each digit in the actions and the matches of the
// captured flows. No form stays the same.
func TestOtherFlowsHaveOtherForms(t *testing.T) {
	c := &Canonical{}
	tried := 0
	for name, raw := range dumps(t) {
		if !strings.Contains(name, "_OpenFlow15_dump-flows_") && !strings.Contains(name, "_OpenFlow10_dump-flows_") {
			continue
		}
		seen := map[string]bool{}
		flows, _ := allFlows(strings.NewReader(string(raw)))
		for i, f := range flows {
			match := f.Key().Match
			if i%20 == 0 {
				tried += changeDigits(t, seen, match, c.Match) + changeDigits(t, seen, f.Actions(), c.Actions)
			}
		}
	}
	if t.Logf("%d digits", tried); tried < 1000 {
		t.Errorf("only %d digits were changed", tried)
	}
}

// inert matches digits that may change nothing: of ECN, which mod_nw_tos does not set.
var inert = regexp.MustCompile(`mod_nw_tos:\d+`)

func changeDigits(t *testing.T, seen map[string]bool, text string, form func(string) string) (tried int) {
	t.Helper()
	if seen[text] {
		return 0
	}
	seen[text] = true
	skip := inert.FindAllStringIndex(text, -1)
	for i := range text {
		if text[i] < '1' || text[i] > '9' || slices.ContainsFunc(skip,
			func(at []int) bool { return at[0] <= i && i < at[1] }) {
			continue
		}
		changed := text[:i] + string('1'+(text[i]-'0')%9) + text[i+1:]
		if tried++; form(changed) == form(text) {
			t.Errorf("%s\nis the same as\n%s", changed, text)
		}
	}
	return tried
}

// TestRegistersOfNewerSwitches checks that the registers which Open vSwitch has since 3.7 are
// fields of their width, as the older ones are.
func TestRegistersOfNewerSwitches(t *testing.T) {
	for name, bits := range map[string]int{"reg15": 32, "reg16": 32, "reg31": 32, "xreg8": 64, "xreg15": 64, "xxreg4": 128,
		"xxreg7": 128, "reg32": 0, "xxreg8": 0} {
		if got := fieldsByName()[name].bits; got != bits {
			t.Errorf("%s has %d bits, not %d", name, got, bits)
		}
	}
}
