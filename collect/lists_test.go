package collect

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// listed are the lists of ovn-nbctl that are rows of a table, the options that make rows, and what is known of them.
type listed struct {
	makes [][]string
	lists []string // the words of each list
	table string
	want  file.KnownTable
	key   []string          // columns that tell the rows apart
	unset map[string]string // what a list prints for values that are not set, by columns
}

func lists() map[string]listed {
	return map[string]listed{
		"ACLs": {
			makes: [][]string{
				{"ls-add", "sw0", "--", "lsp-add", "sw0", "vm1", "--", "pg-add", "pg0", "vm1"},
				{"acl-add", "sw0", "from-lport", "1000", `ip4 && (tcp.dst == 80 || tcp.dst == 443) && inport == "vm1"`,
					"allow-related"},
				{"--log", "--severity=alert", "--meter=m 1", "--name=my (acl), 1", "acl-add", "sw0", "to-lport", "1001",
					"ip4.src == $as && (udp)", "drop"},
				{"--log", "acl-add", "sw0", "to-lport", "999", "ip", "reject"},
				{"--log", "--name=plain", "acl-add", "sw0", "to-lport", "998", "ip6", "allow-stateless"},
				{"--log", "--severity=info", "acl-add", "sw0", "to-lport", "997", "ip6", "allow"},
				{"--label=1234", "acl-add", "sw0", "to-lport", "1002", "ip4 && icmp", "allow-related"},
				{"--apply-after-lb", "acl-add", "sw0", "from-lport", "5", `ip4 && inport == "a) drop"`, "allow"},
				{"--type=port-group", "acl-add", "pg0", "to-lport", "1", "outport == @pg0 && ip", "drop"},
			},
			lists: []string{"acl-list sw0", "--type=port-group acl-list pg0"}, table: "ACL",
			want: file.KnownTable{Unnamed: true,
				Columns: []string{"action", "direction", "label", "log", "match", "priority"}},
			key: []string{"direction", "priority"},
		},
		"routes": {
			makes: [][]string{
				{"lr-add", "r0", "--", "lrp-add", "r0", "r0-p", "0a:00:00:00:00:01", "10.0.0.1/24", "fd00::1/64"},
				{"lr-route-add", "r0", "1.2.3.0/24", "10.0.0.2"},
				{"--policy=src-ip", "lr-route-add", "r0", "1.2.4.0/24", "10.0.0.2", "r0-p"},
				{"--ecmp", "lr-route-add", "r0", "1.2.5.0/24", "10.0.0.2"},
				{"--ecmp", "lr-route-add", "r0", "1.2.5.0/24", "10.0.0.3"},
				{"--ecmp-symmetric-reply", "lr-route-add", "r0", "1.2.6.0/24", "10.0.0.3"},
				{"--bfd", "lr-route-add", "r0", "1.2.7.0/24", "10.0.0.3", "r0-p"},
				{"lr-route-add", "r0", "1.2.8.0/24", "discard"},
				{"--route-table=t1", "lr-route-add", "r0", "1.2.8.0/24", "10.0.0.9"},
				{"--route-table=t 2", "lr-route-add", "r0", "::/0", "fd00::2"},
				{"lr-route-add", "r0", "2001:db8:aaaa:bbbb:cccc:dddd::/96", "fd00::5555:6666:7777:8888", "r0-p"},
				{"lr-route-add", "r0", "9.9.9.9", "10.0.0.254"},
			},
			lists: []string{"lr-route-list r0"}, table: "Logical_Router_Static_Route",
			want: file.KnownTable{Unnamed: true,
				Columns: []string{"ip_prefix", "nexthop", "output_port", "policy", "route_table"}},
			key:   []string{"ip_prefix", "nexthop", "route_table"},
			unset: map[string]string{"policy": "dst-ip"},
		},
		"NAT": {
			makes: [][]string{
				{"lr-add", "r1", "--", "ls-add", "sw1", "--", "lsp-add", "sw1", "vm 2"},
				{"lr-nat-add", "r1", "snat", "172.16.0.1", "10.0.0.0/24"},
				{"lr-nat-add", "r1", "dnat", "172.168.100.102", "10.0.0.5"},
				{"lr-nat-add", "r1", "dnat_and_snat", "172.16.0.3", "192.168.100.106", "vm 2", "0a:00:00:00:00:99"},
				{"--portrange", "lr-nat-add", "r1", "dnat_and_snat", "172.16.0.5", "10.0.0.8", "1000-2000"},
				{"--stateless", "lr-nat-add", "r1", "dnat_and_snat", "172.16.0.7", "10.0.0.9"},
				{"lr-nat-add", "r1", "snat", "fd00::1", "fd00:aaaa:bbbb:cccc:dddd::/96"},
			},
			lists: []string{"lr-nat-list r1"}, table: "NAT",
			want: file.KnownTable{Unnamed: true,
				Columns: []string{"external_ip", "external_port_range", "logical_ip", "type"}}, key: []string{"type", "logical_ip"},
		},
		"load balancers": {
			makes: [][]string{
				{"lb-add", "lb0", "10.1.0.1:80", "10.0.0.2:8080,10.0.0.3:8080"},
				{"lb-add", "lb0", "10.1.0.2:80", "10.0.0.2:8080"},
				{"lb-add", "lb udp", "10.1.0.3:53", "10.0.0.2:53", "udp"},
				{"lb-add", "lbno", "10.1.0.5", "10.0.0.2"},
				{"lb-add", "a-very-long-name-of-a-load-balancer", "10.1.0.6:80", ""},
				{"lb-add", "a-very-long-name-of-a-load-balancer", "10.1.0.7:80", "10.0.0.2:80"},
				{"lb-add", "lb\u00e4", "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:8080", "[fd00::1]:80,[fd00::2]:80"},
			},
			lists: []string{"lb-list"}, table: "Load_Balancer",
			want: file.KnownTable{Columns: []string{"_uuid", "vips"}}, key: []string{"vips"},
		},
		"QoS": {
			makes: [][]string{
				{"ls-add", "sw2"},
				{"qos-add", "sw2", "from-lport", "100", "ip4 && (tcp)", "dscp=10"},
				{"qos-add", "sw2", "to-lport", "101", "ip4.dst == {1.1.1.1, 2.2.2.2}", "rate=1000", "burst=200", "dscp=3"},
				{"qos-add", "sw2", "to-lport", "102", `inport == "a) rate=5"`, "rate=1000"},
			},
			lists: []string{"qos-list sw2"}, table: "QoS",
			want: file.KnownTable{Unnamed: true, Columns: []string{"action", "bandwidth", "direction", "match", "priority"}},
			key:  []string{"priority"},
		},
	}
}

// TestLists makes rows with ovn-nbctl, and compares what is read of its lists with what is in the database.
func TestLists(t *testing.T) {
	central := ovs.StartCentral(t)
	for name, c := range lists() {
		for _, words := range c.makes {
			central.Nbctl(words...)
		}
		all := rowsIn(t, filepath.Join(folder(t,
			map[string]string{"all": c.table + " table\n" + central.Nbctl("list", c.table)}), "all"), c.table)
		read := 0
		for _, list := range c.lists {
			printed := central.Nbctl(strings.Fields(list)...)
			known, path, lost := partIn(t, workdir.NB,
				"Here:\n\n[root@n1 ~]# ovn-nbctl "+list+"\n"+printed+"[root@n1 ~]# ovs-vsctl show\n"+shownBridges)
			c.want.Rows = known[c.table].Rows
			expect.Equal(t, known, map[string]file.KnownTable{c.table: c.want}, name+": "+list)
			expect.Equal(t, strings.Contains(lost,
				fmt.Sprintf("of the table %s of the OVN NB database, a part was printed: %s; a replica has nothing of it: give the output of `ovn-nbctl list %s`", c.table, c.want, c.table)), true, lost)
			for _, row := range rowsIn(t, path, c.table) {
				read++
				key := func(r ovsdb.Record) (text string) {
					for _, column := range c.key {
						text += " " + r.Column(column)
					}
					return text
				}
				at := slices.IndexFunc(all, func(r ovsdb.Record) bool { return key(r) == key(row) })
				if at < 0 {
					t.Errorf("%s: no row%s of %s in the database", list, key(row), c.table)
					continue
				}
				for _, value := range row.Columns {
					got, want := row.Column(value.Column),
						cmp.Or(strings.TrimPrefix(all[at].Column(value.Column), "[]"), c.unset[value.Column])
					expect.Equal(t, strings.TrimPrefix(got, "[]"), want, list+": "+value.Column)
				}
				if !c.want.Unnamed {
					expect.Equal(t, row.UUID, all[at].UUID, list)
				}
			}
		}
		expect.Equal(t, read, len(all), name)
	}
}

// rowsIn returns the rows of a table in a file of printed tables.
func rowsIn(t *testing.T, path, table string) []ovsdb.Record {
	t.Helper()
	tables, err := file.PrintedTables(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return tables[table]
}

// newNAT is the heading of NAT rules since OVN 24.09.
const newNAT = "TYPE             GATEWAY_PORT          MATCH                 EXTERNAL_IP        EXTERNAL_PORT    LOGICAL_IP          EXTERNAL_MAC         LOGICAL_PORT\n"

// twoVIPs is a load balancer with two VIPs.
const twoVIPs = "UUID                                    LB                  PROTO      VIP            IPs\n" +
	"7e10cac0-1f92-4474-bf72-489e7ff12d24    lb0                 tcp        10.1.0.1:80    10.0.0.2:8080,10.0.0.3:8080\n" +
	"                                                            tcp        10.1.0.2:80    10.0.0.2:8080\n"

// TestListsThatAreNotWhole checks what is read of lists with lines that can't be read, and of those without rows.
func TestListsThatAreNotWhole(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		rows int
		said string
	}{
		"a match that ends twice": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) drop) drop\n  to-lport  3 (c) drop log(name=x) drop)\n  to-lport  2 (b) drop log(name=x) drop log(name=y)\n", 2, "1 line can't be read, the first is: to-lport  2 (b) drop log(name=x) drop log(name=y)"},
		"a line that was cut": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) drop\n  to-lport  2 (b && c\n", 1,
			"1 line can't be read, the first is: to-lport  2 (b && c"},
		"an unknown mark": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) drop new=1\n  to-lport  2 (b) drop\n", 1,
			"1 line can't be read, the first is: to-lport  1 (a) drop new=1"},
		"an unknown action": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) explode\n  to-lport  2 (b) drop\n", 1,
			"1 line can't be read"},
		"a line that was wrapped": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) drop\nlog(name=x)\n  to-lport  2 (b) drop\n",
			1, "2 lines can't be read, the first is: to-lport  1 (a) drop"},
		"other text": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) drop\nAnd that is all?\n", 1,
			"1 line can't be read, the first is: And that is all?"},
		"other text further below": {"# ovn-nbctl acl-list sw0\n  to-lport  1 (a) drop\n\nThat is all.\n", 1,
			"ACL of the OVN NB database, a part was printed: 1 row, and not all"},
		"the marks of newer OVN": {"# ovn-nbctl --all acl-list sw0\n  to-lport  1 (a) drop network-function-group=g log(severity=info,meter=\"m\") label=5 [tier 2] [after-lb] [pg0]\n", 1, "10 columns: action, direction, label, log, match, meter, name, priority, severity, tier"},
		"routes of an old OVN":   {"# ovn-nbctl lr-route-list r0\nIPv4 Routes\n              10.9.0.0/16                  10.0.0.9 dst-ip\n", 1, "4 columns: ip_prefix, nexthop, output_port, policy;"},
		"the heading of routes": {"# ovn-nbctl lr-route-list r0\nIPv4 Routes\nRoute Table <main>:\n", 0,
			"it prints some of the rows, or some of their columns: give ovn-nbctl list Logical_Router_Static_Route"},
		"the marks of routes":        {"# ovn-nbctl lr-route-list r0\nIPv4 Routes\nRoute Table <main>:\n 10.9.0.0/16 10.0.0.9 dst-ip p1 (learned) ecmp ecmp-symmetric-reply override-connected bfd\n 10.9.0.0/16 10.0.0.8 dst-ip p1 new bfd\n", 1, "1 line can't be read, the first is: 10.9.0.0/16 10.0.0.8 dst-ip p1 new bfd"},
		"a route without a next hop": {"# ovn-nbctl lr-route-list r0\nIPv4 Routes\nRoute Table <main>:\n               1.2.3.0/24                           dst-ip p1\n 10.9.0.0/16 10.0.0.8 src-ip\n", 1, "1 line can't be read, the first is: 1.2.3.0/24"},
		"a port that was wrapped":    {"# ovn-nbctl lr-route-list r0\nIPv4 Routes\nRoute Table <main>:\n 10.9.0.0/16 10.0.0.8 src-ip\nr0-p\n 10.8.0.0/16 10.0.0.8 src-ip\n", 1, "2 lines can't be read"},
		"values of NAT rules that are cut off": {"# ovn-nbctl lr-nat-list r0\n" + newNAT +
			"dnat_and_snat                                                2001:db8:aaaa:b                     fd00::1\n" +
			"dnat_and_snat    r0-public             ip4.src == 10.0.0.    172.16.0.6         1-2              10.0.0.1            0a:00:00:00:00:99    vm1\n", 2, "external_ip may be cut off in 1 row; "},
		"the match of a NAT rule": {"# ovn-nbctl lr-nat-list r0\n" + newNAT +
			"snat                                   ip4                   172.16.0.6                          10.0.0.0/24\n", 1,
			"5 columns: external_ip, external_port_range, logical_ip, match, type;"},
		"NAT rules of OVN 20.03":   {"# ovn-nbctl lr-nat-list r0\nTYPE             EXTERNAL_IP        LOGICAL_IP            EXTERNAL_MAC         LOGICAL_PORT\nsnat             172.16.0.6         10.0.0.0/24\n", 1, "3 columns: external_ip, logical_ip, type;"},
		"the heading of NAT rules": {"# ovn-nbctl lr-nat-list r0\n" + newNAT, 0, "give ovn-nbctl list NAT"},
		"NAT rules that were cut": {"# ovn-nbctl lr-nat-list r0\n" + newNAT +
			"snat                                   ip4                   172.16.0.6                          10.0.0.0/24\nsnat           ip4\ndnat_and_snat                                                172.16.0.6         1-2              10.0.0.1            0a:00:00:00:00\n", 1, "2 lines can't be read, the first is: snat           ip4"},
		"marks of QoS rules": {"# ovn-nbctl qos-list sw0\n  to-lport   100 (ip4) rate=1 dscp=5 mark=7\n  to-lport   100 (ip4) new=1\n", 1, "1 line can't be read, the first is: to-lport   100 (ip4) new=1"},
		"load balancers after grep": {"# ovn-nbctl lb-list | grep -e UUID -e lb\n" + twoVIPs, 1,
			"vips may be cut off in 1 row"},
		"a VIP behind an empty line": {"# ovn-nbctl lb-list\n" + strings.Replace(twoVIPs, ":8080\n", ":8080\n\n", 1), 1,
			"vips may be cut off in 1 row"},
		"load balancers": {"# ovn-nbctl lb-list\n" + twoVIPs, 1, "4 columns: _uuid, name, protocol, vips;"},
		"load balancers without a heading": {"# ovn-nbctl lb-list\n" + strings.SplitAfter(twoVIPs, "\n")[1], 0,
			"give ovn-nbctl list Load_Balancer"},
		"lines that grep has chosen": {"# ovn-nbctl acl-list sw0 | grep drop\n  to-lport  1 (a) drop\n", 1,
			"1 row, and not all"},
		"lines that cut has cut": {"# ovn-nbctl acl-list sw0 | cut -c1-30\n  to-lport  1 (a) drop\n", 0,
			"it prints some of the rows, or some of their columns: give ovn-nbctl list ACL"},
		"no output": {"# ovn-nbctl acl-list sw0\n", 0,
			"ovn-nbctl acl-list sw0 printed nothing: it found no row of ACL then"},
	} {
		known, path, lost := partIn(t, workdir.NB, c.text+"# ovs-vsctl show\n"+shownBridges)
		rows := 0
		for _, table := range known {
			rows += table.Rows
		}
		if rows != c.rows || !strings.Contains(lost, c.said) || len(known) > 1 || len(known) == 1 && rows == 0 {
			t.Errorf("%s: %v in %s: %s", name, known, path, lost)
		}
	}
}

// TestManyListedRows checks that lists of many lines, and of one long line, are read in linear time.
func TestManyListedRows(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 100,000 rows of each list")
	}
	for name, c := range map[string]struct{ line, row, heading string }{
		"load balancers": {"lb-list", "7e10cac0-1f92-4474-bf72-%012d    lb0                 tcp        10.1.0.1:80    10.0.0.2:8080\n", strings.SplitAfter(twoVIPs, "\n")[0]},
		"QoS":            {"qos-list sw0", "  to-lport %5d (ip4.src == $as && tcp) rate=5\n", ""},
		"ACLs":           {"acl-list sw0", "  to-lport %5d (ip4.src == $as && tcp) drop log(name=a)\n", ""},
		"routes":         {"lr-route-list r0", "  10.0.0.0/24 fd00::1 dst-ip r0-p%d bfd\n", ""},
		"NAT":            {"lr-nat-list r0", "snat                                   ip4                   172.16.0.6         %-17d10.0.0.0/24\n", newNAT},
	} {
		var text strings.Builder
		text.WriteString(c.heading)
		for i := range 100_000 {
			fmt.Fprintf(&text, c.row, i)
		}
		list, ok := ovn.ReadList(strings.Fields(c.line)[0], text.String(), true)
		expect.Equal(t, ok, true, name)
		expect.Equal(t, len(list.Rows), 100_000, name)
		expect.Equal(t, list.Lost, nil, name)
	}
	known, _, _ := partIn(t, workdir.NB, "# ovn-nbctl acl-list sw0\n  to-lport 1 ("+strings.Repeat(") drop log(", 500_000)+
		"\n  to-lport 2 (a) drop\n")
	expect.Equal(t, known["ACL"].Rows, 1)
}
