package reach

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

func TestPortsInMatches(t *testing.T) {
	for match, want := range map[string]string{
		"outport == @db && tcp && tcp.dst == {5432, 8080}":                   "[tcp/5432 tcp/8080]",
		"tcp && 9100 <= tcp.dst <= 9110":                                     "[tcp/9110 tcp/9100]",
		"udp && udp.dst >= 5000 && udp.dst <= 5010":                          "[udp/5000 udp/5010]",
		"tcp.dst > 1023 && tcp.dst < 2000":                                   "[tcp/1024 tcp/1999]",
		"(tcp.dst == 23 || udp.dst == 69) && ip4.src == 10.0.0.0/8":          "[tcp/23 udp/69]",
		"tcp.src == 80 && sctp.dst == 3868 && icmp4.type == 8":               "[sctp/3868]",
		"tcp.dst == 99999 || tcp.dst == 0 || tcp.dst < 0 || udp.dst > 65535": "[]",
	} {
		expect.Equal(t, fmt.Sprint(portsIn(match)), want, match)
	}
}

// TestPairsCoverNodes checks that each node's member sends and receives, and that one pair
// is on the same node.
func TestPairsCoverNodes(t *testing.T) {
	group := func(members string) Group {
		g := Group{}
		for text := range strings.FieldsSeq(members) {
			name, node, _ := strings.Cut(text, "@")
			g.members = append(g.members, member{name: name, node: node})
		}
		return g
	}
	for _, c := range []struct{ from, to, want string }{
		{"a@1 b@1 c@2", "x@1 y@2", "a-x a-y c-x"},
		{"a@1 b@2 c@3", "x@1 y@2 z@3", "a-x a-y b-z c-x"},
		{"a@1", "x@1 y@2 z@3", "a-x a-y a-z"},
		{"a@1 b@2", "a@1 b@2", "a-b b-a"},
		{"a@1 b@1", "a@1 b@1", "a-b"},
		{"a@1", "a@1", ""},
		{"a@1 b@2", "svc@", "a-svc b-svc"},
	} {
		var got []string
		for _, p := range pairs(group(c.from), group(c.to), false) {
			got = append(got, p.from.name+"-"+p.to.name)
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(strings.FieldsSeq(c.want))) {
			t.Errorf("%s to %s: %q, not %s", c.from, c.to, got, c.want)
		}
	}
}

// TestLargeMatrixAsksTwoPairsOfEachCell checks that each node of a group is asked all the
// same, as a sender and as a receiver.
func TestLargeMatrixAsksTwoPairsOfEachCell(t *testing.T) {
	m := Matrix{Ports: []Port{{Protocol: "icmp"}, {Protocol: "tcp", Number: 80}, {Protocol: "tcp", Number: 5432}}}
	for n := range 100 {
		var g Group
		for k := range 6 {
			g.members = append(g.members, member{name: fmt.Sprintf("g%d-%d", n, k), node: fmt.Sprint(k % 3)})
		}
		m.From, m.To = append(m.From, g), append(m.To, g)
	}
	m.choose()
	if want := 100 * 100 * 2 * 3; m.Questions != want || len(m.Remarks) != 1 ||
		!strings.Contains(m.Remarks[0], "120000 questions") {
		t.Errorf("%d questions, not %d: %q", m.Questions, want, m.Remarks)
	}
	sent, received, near := map[string]bool{}, map[string]bool{}, 0
	for f := range m.From {
		for to := range m.To {
			for _, p := range m.pairs(f, to) {
				sent[m.From[f].members[0].name+p.from.node], received[m.To[to].members[0].name+p.to.node] = true, true
				if p.from.node == p.to.node {
					near++
				}
			}
		}
	}
	if len(sent) != 300 || len(received) != 300 || near != 100*100 {
		t.Errorf("%d nodes of groups send, and %d receive, of 300; %d pairs are on one node", len(sent), len(received), near)
	}
}

// TestAlike groups ports by what a northbound database says about them.
func TestAlike(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-000000000001", n) }
	nb := ovndb.Create(t, ovs.NBSchema)
	ports, all := map[string]ovndb.Row{}, []any{}
	for n := 1; n <= 9; n++ {
		ports[id(n)] = ovndb.Row{"name": fmt.Sprintf("ns_p%d", n),
			"addresses": fmt.Sprintf("0a:58:0a:f4:00:%02x 10.244.0.%d", n, n), "external_ids": ovndb.Map("namespace", "ns")}
		all = append(all, ovndb.UUID(id(n)))
	}
	nb.Add(ovndb.Rows{
		"Logical_Switch_Port": ports,
		"Logical_Switch":      {id(20): {"name": "net", "ports": ovndb.Set(all...)}},
		"Port_Group":          {id(21): {"name": "g", "ports": ovndb.Set(ovndb.UUID(id(1)), ovndb.UUID(id(2)))}},
		"Address_Set":         {id(22): {"name": "s", "addresses": ovndb.Set("10.244.0.2", "10.244.0.3", "10.244.0.4")}},
		"ACL": {
			id(31): {"match": "ip4.src == 10.244.0.5 && ip4.dst == 10.9.0.1", "action": "allow", "priority": 1},
			id(32): {"match": "ip4.src == 10.244.0.6 && ip4.dst == 10.9.0.1", "action": "allow", "priority": 1},
			id(33): {"match": "ip4.src == 10.244.0.7 && ip4.dst == 10.9.0.2", "action": "allow", "priority": 1},
			id(34): {"match": "ip4.src == {10.244.0.8/30, 192.0.2.0/255.255.255.0}", "action": "drop", "priority": 1},
		},
		"Load_Balancer": {id(41): {"name": "lb", "protocol": "tcp", "vips": ovndb.Map("10.96.0.1:80", "10.244.0.9:8080")}},
	})
	db, err := file.OpenIndex(t.Context(), nb.Close())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	loaded, err := names.Load(t.Context(), []*snapshot.Deployment{{NB: db}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := newView(t.Context(), []*file.Index{db}, loaded)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := groups([]*view{v}, v.fitting())
	var got []string
	for _, g := range found {
		got = append(got, fmt.Sprint(g.Name, g.memberNames()))
	}
	// p1 and p2 share a port group, p2 to p4 an address set, p5 and p6 what ACLs say, p8 and
	// p9 a prefix; only p9 is a backend.
	want := "ns/p1[ns/p1] ns/p2[ns/p2] ns/p3 +1[ns/p3 ns/p4] ns/p5 +1[ns/p5 ns/p6] ns/p7[ns/p7] ns/p8[ns/p8] ns/p9[ns/p9]"
	expect.Equal(t, strings.Join(got, " "), want)
	expect.Equal(t, fmt.Sprint(portsOf([]*view{v})), "[icmp tcp/80 tcp/8080]")
}

// TestSecondaryNetworksAreApart asks about ports in secondary networks with those of their own network,
// with addresses outside, and with the groups that a user chose.
func TestSecondaryNetworksAreApart(t *testing.T) {
	group := func(name, secondary string) Group {
		g := groupOfOne(name, name, 1)
		g.secondary = secondary
		return g
	}
	web, v1, v2, other := group("shop/web", ""), group("lan.second_lan_v1", "lan/second"),
		group("lan.second_lan_v2", "lan/second"), group("lan.vlan20_lan_v1", "vlan20")
	outside, err := external([]string{"8.8.8.8"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to Group
		asked    bool
	}{{v1, v2, true}, {v1, web, false}, {web, v1, false}, {v1, other, false}, {v1, outside[0], true}, {web, web, false}} {
		m := Matrix{From: []Group{c.from}, To: []Group{c.to}, Ports: []Port{{Protocol: "icmp"}}}
		if got := len(m.pairs(0, 0)) > 0; got != c.asked {
			t.Errorf("%s to %s is asked: %t", c.from.Name, c.to.Name, got)
		}
		m.chosen = true
		if got := len(m.pairs(0, 0)) > 0; got != (c.from.Name != c.to.Name) {
			t.Errorf("%s to %s, chosen, is asked: %t", c.from.Name, c.to.Name, got)
		}
		if got := len(m.remarkApart()); got != 0 {
			t.Errorf("%d remarks about chosen groups", got)
		}
	}
}
