package ovn_test

import (
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// TestShownRowsAreThoseOfTheDatabases compares what is read of ovn-nbctl show and ovn-sbctl show with the tables that
// the same tools list.
func TestShownRowsAreThoseOfTheDatabases(t *testing.T) {
	central := ovs.StartCentral(t)
	central.Nbctl("ls-add", "sw0", "--", "lsp-add", "sw0", "vm1", "--", "lsp-set-addresses", "vm1",
		"0a:00:00:00:00:01 10.0.0.1", "unknown", "--", "lsp-add", "sw0", "vm2 blank", "--", "lsp-set-addresses", "vm2 blank",
		"dynamic",
		"--", "lsp-add", "sw0", "child", "vm1", "7", "--", "set", "Logical_Switch_Port", "vm1",
		`external_ids:neutron\:port_name=web`, "--", "set", "Logical_Switch", "sw0", `external_ids:neutron\:network_name=net`,
		"--", "ls-add", "empty", "--", "lr-add", "r0", "--", "lrp-add", "r0", "r0-sw0", "0a:00:00:00:00:fe", "10.0.0.254/24",
		"fd00::1/64",
		"--", "lsp-add", "sw0", "sw0-r0", "--", "lsp-set-type", "sw0-r0", "router", "--", "lsp-set-addresses", "sw0-r0",
		"router", "--", "lsp-set-options", "sw0-r0", "router-port=r0-sw0",
		"--", "lr-nat-add", "r0", "snat", "172.16.0.5", "10.0.0.0/24", "--", "lr-nat-add", "r0", "dnat_and_snat",
		"172.16.0.6", "10.0.0.1")
	central.Sbctl("chassis-add", "n1", "geneve", "192.168.0.1", "--", "set", "Chassis", "n1", "hostname=node-1.example")
	central.Northd()
	central.Sbctl("lsp-bind", "vm1", "n1")
	for _, mark := range []string{"    ", ""} { // with and without indentation
		text := strings.ReplaceAll(central.Nbctl("show")+central.Sbctl("show"), "    ", mark)
		shown, err := ovn.Shown(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for table, records := range shown {
			counts[table] = len(records)
			list := central.Nbctl
			if table == "Chassis" || table == "Port_Binding" {
				list = central.Sbctl
			}
			all, err := ovsdb.Listing(strings.NewReader(list("list", table)))
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range records {
				compareRow(t, table, record, all)
			}
		}
		expect.Equal(t, counts, map[string]int{"Logical_Switch": 2, "Logical_Switch_Port": 4, "Logical_Router": 1,
			"Logical_Router_Port": 1, "NAT": 2, "Chassis": 1, "Port_Binding": 1}, "rows")
	}
}

// compareRow compares the columns that were shown of a row with those that are listed of it.
func compareRow(t *testing.T, table string, record ovsdb.Record, all []ovsdb.Record) {
	t.Helper()
	at := slices.IndexFunc(all, func(listed ovsdb.Record) bool {
		key := "name"
		if table == "Port_Binding" {
			key = "logical_port"
		}
		return listed.UUID == record.UUID || record.Column(key) != "" && listed.Column(key) == record.Column(key)
	})
	if at < 0 {
		t.Errorf("%s: no row is like %+v", table, record)
		return
	}
	plain := func(text string) string { return strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(text) }
	for _, value := range record.Columns {
		if value.Column == "ports" || value.Column == "chassis" { // of which the UUIDs are not shown
			continue
		}
		expect.Equal(t, plain(value.Text), plain(valueOf(all[at], value.Column)), table+"."+value.Column)
	}
}

func valueOf(record ovsdb.Record, column string) string {
	for _, value := range record.Columns {
		if value.Column == column {
			return value.Text
		}
	}
	return ""
}

// TestTextsThatAreNoShow checks that other texts give no rows.
func TestTextsThatAreNoShow(t *testing.T) {
	for _, text := range []string{"", "switch to another shell\n", "switch 1 (sw0)\n", "port vm1\n",
		"addresses: [\"x\"]\n", "Port_Binding vm1\n", "    hostname: n1\n", "router \x00\n"} {
		shown, err := ovn.Shown(strings.NewReader(text))
		if err != nil || len(shown) > 0 {
			t.Errorf("%q: %v %v", text, shown, err)
		}
	}
}

// FuzzShown checks that what is read of a text can be written and read again as the rows that ovn-nbctl list prints,
// and that each row has a UUID and a name or what stands for it.
func FuzzShown(f *testing.F) {
	f.Add("switch 212f73dd-d63d-4d72-864b-a537e9afbee2 (sw0) (aka net)\n    port lp1\n        parent: p0\n        tag: 7\n        addresses: [\"00:00:00:5C:12:E8 10.16.19.177\"]\n")
	f.Add("router 212f73dd-d63d-4d72-864b-a537e9afbee3 (r0)\n    port r0-sw0\n        mac: \"0a:00:00:00:00:fe\"\n        networks: [\"10.0.0.254/24\"]\n    nat 212f73dd-d63d-4d72-864b-a537e9afbee4\n        external ip: \"172.16.0.5\"\n        type: \"snat\"\n")
	f.Add("Chassis \"n1\"\n    hostname: n1\n    Encap geneve\n        ip: \"10.0.0.4\"\n    Port_Binding \"lp\\\"1\"\n")
	f.Add("port x\nswitch 212f73dd-d63d-4d72-864b-a537e9afbee2\nport \x00\n: \nnat nat\nChassis \n")
	f.Fuzz(func(t *testing.T, text string) {
		tables, err := ovn.Shown(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for table, records := range tables {
			rows += len(records)
			for _, record := range records {
				if !ovsdb.IsUUID(record.UUID) || table == "" {
					t.Errorf("a row of table %q with the UUID %q", table, record.UUID)
				}
				for _, value := range record.Columns {
					if value.Column == "" || value.Text == "" || strings.ContainsRune(value.Text, '\n') {
						t.Errorf("column %q of table %s is %q", value.Column, table, value.Text)
					}
				}
			}
		}
		if lines := strings.Count(text, "\n") + 1; rows > lines {
			t.Errorf("%d rows of %d lines", rows, lines)
		}
	})
}
