package check_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/test/check/expect"
)

// row is a row as ovs-vsctl list prints it, with a UUID of a number.
func row(uuid int, columns ...string) string {
	text := fmt.Sprintf("_uuid               : 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b%04d\n", uuid)
	for i := 0; i < len(columns); i += 2 {
		text += fmt.Sprintf("%-20s: %s\n", columns[i], columns[i+1])
	}
	return text + "\n"
}

// TestTablesInPart prints only some rows or some columns of tables. It checks what the rules find there, and that no
// rule takes the rest for empty.
func TestTablesInPart(t *testing.T) {
	const broken = `"ip4 && tcp.dst = 80"`
	for name, c := range map[string]struct {
		text    string
		want    []string // the rules of the findings
		unknown string   // in what was not judged
		missing string   // in what was not there
	}{
		"an ACL of which all columns are known": {"# ovn-nbctl find ACL name=web\n" +
			row(1, "action", "drop", "direction", "to-lport", "external_ids", "{}", "match", broken, "name", "web", "priority",
				"1"),
			[]string{"match-malformed"}, "match-malformed: it has looked only at 1 row of the table ACL",
			"the table Logical_Switch of the OVN NB database"},
		"the matches of all ACLs": {"# ovn-nbctl --columns=_uuid,match list ACL\n" +
			row(1, "match", broken) + row(2, "match", "ip4"), []string{"match-malformed"}, "nothing of the table QoS", ""},
		"ACLs without their matches": {"# ovn-nbctl --columns=_uuid,priority list ACL\n" + row(1, "priority", "1"), nil, "",
			"OVN NB database"},
		"a switch with ports that are not there": {"# ovn-nbctl list Logical_Switch\n" +
			row(1, "name", "sw0", "ports", "[5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0009]", "acls", "[]") +
			"# ovn-nbctl list Logical_Router\n" +
			row(3, "name", "r0", "ports", "[5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0004]", "nat",
				"[5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0005]", "enabled", "[]", "options", "{}") +
			"# ovn-nbctl --columns=_uuid,name,networks list Logical_Router_Port\n" +
			row(4, "name", "r0-sw0", "networks", `["10.0.0.1/24"]`), nil, "", "the column mac of the table Logical_Router_Port"},
		"two routers with the same address": {"# ovn-nbctl --columns=_uuid,name,addresses list Logical_Switch_Port\n" +
			row(1, "name", "a", "addresses", `"0a:00:00:00:00:01 10.0.0.1"`) + row(2, "name", "b", "addresses",
			`"0a:00:00:00:00:01 10.0.0.1"`),
			nil, "", "the table Logical_Switch of the OVN NB database"},
		"an interface": {"# ovs-vsctl --columns=name,ofport,error list Interface\nname                : tap1\nofport              : -1\nerror               : \"could not open network device tap1 (No such device)\"\n", []string{"interface-without-port-number"}, "", ""},
		"an interface that was asked for": {"# ovs-vsctl list Interface tap1\n" +
			row(1, "name", "tap1", "ofport", "-1", "error", "[]", "type", `""`, "admin_state", "down", "link_state", "down",
				"external_ids", "{}"),
			[]string{"interface-down", "interface-without-port-number"}, "1 row of the table Interface", ""},
		"an interface without its number": {"# ovs-vsctl --columns=name,type,external_ids list Interface\nname                : tap1\ntype                : internal\nexternal_ids        : {}\n", nil, "", "output of ovs-vsctl list Interface"},
	} {
		r := checkTicket(t, "ticket.md", c.text)
		var rules []string
		for _, f := range r.Findings {
			if f.Rule != "data-lost" {
				rules = append(rules, f.Rule)
			}
		}
		slices.Sort(rules)
		expect.Equal(t, rules, c.want, name)
		if all := strings.Join(r.Unjudged, "\n"); !strings.Contains(all, c.unknown) {
			t.Errorf("%s: not judged: %s", name, all)
		}
		if all := missingIn(r); !strings.Contains(all, c.missing) {
			t.Errorf("%s: missing: %s", name, all)
		}
	}
}

func missingIn(r *check.Report) string {
	var names []string
	for _, m := range r.Missing {
		names = append(names, m.Data)
	}
	return strings.Join(names, "\n")
}

// TestListsAlone checks what is found in lists of ovn-nbctl alone, and that rules that need more say what they lack.
func TestListsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    []string // the findings
		missing string   // in what was not there
	}{
		"ACLs": {"[root@n1 ~]# ovn-nbctl acl-list sw0\n  to-lport  1001 (ip4 && tcp.dst = 80) drop log(name=web)\n  to-lport  1000 (ip4 && tcp.dst == 80) drop log(name=web)\nfrom-lport     7 (ip4 &&) allow\n",
			[]string{"ACL from-lport with priority 7", "ACL web"}, "the table Logical_Switch of the OVN NB database"},
		"routes": {"[root@n1 ~]# ovn-nbctl lr-route-list r0\nIPv4 Routes\nRoute Table <main>:\n  10.9.0.0/16  10.0.0.9 dst-ip\n", nil, "the table Logical_Router of the OVN NB database"},
		"QoS rules": {"[root@n1 ~]# ovn-nbctl qos-list sw0\n  to-lport    12 (ip4 && tcp.dst = 80) rate=5\n",
			[]string{"QoS rule to-lport with priority 12"}, "the table Logical_Switch of the OVN NB database"},
	} {
		r := checkTicket(t, "ticket.md", c.text)
		var found []string
		for _, f := range r.Findings {
			title, _, _ := strings.Cut(f.What, ": ")
			if f.Rule != "data-lost" {
				found = append(found, title)
			}
			if all := fmt.Sprint(f.What, f.Evidence, f.Next); f.Rule != "data-lost" &&
				regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-`).MatchString(all) {
				t.Errorf("%s: a UUID that nobody knows: %s", name, all)
			}
		}
		slices.Sort(found)
		expect.Equal(t, found, c.want, name)
		if all := missingIn(r); !strings.Contains(all, c.missing) {
			t.Errorf("%s: missing: %s", name, all)
		}
	}
}
