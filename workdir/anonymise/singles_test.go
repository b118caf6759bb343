package anonymise

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// TestNamesOfOneCommonWordAreReplacedWhereTheyAreNames has names that are words with a meaning elsewhere, and a chassis that is
// known by a UUID.
func TestNamesOfOneCommonWordAreReplacedWhereTheyAreNames(t *testing.T) {
	const id = "4c4c45aa-0000-4000-8000-0123456789ab"
	kinds := map[workdir.Kind]string{
		workdir.NB: `{"Logical_Switch_Port":{"x":{"name":"backup","type":"router","options":["map",[["router-port","gateway"],["requested-chassis","controller,host"]]]},` +
			`"y":{"type":"gateway","external_ids":["map",[["gateway","server"],["neutron:port_name","server"]]]}},` +
			`"Load_Balancer":{"x":{"ip_port_mappings":["map",[["10.0.0.2","backup:10.0.0.9"]]]}},"Logical_Router":{"y":{"name":"router"}},` +
			`"Logical_Router_Port":{"x":{"name":"gateway"}},"ACL":{"x":{"match":"inport == \"backup\" && ip4 && outport == @storage && backup"}},` +
			`"Port_Group":{"x":{"name":"storage"}},"_comment":"ovn-nbctl: lsp-add server backup"}`,
		workdir.SB: `{"Chassis":{"x":{"name":"controller","hostname":"host"},"y":{"name":"` + id + `"}},` +
			`"DHCP_Options":{"x":{"name":"server"}},"Address_Set":{"x":{"name":"storage_ip4"}},` +
			`"Port_Group":{"x":{"name":"1_storage","ports":["set",["backup","cr-gateway"]]}}}`,
		workdir.OVS: `{"Interface":{"x":{"name":"backup","external_ids":["map",[["iface-id","backup"]]]},"y":{"name":"ovn-4c4c45-0"}},` +
			`"Open_vSwitch":{"x":{"external_ids":["map",[["hostname","host"],["system-id","controller"]]]}},` +
			`"Bridge":{"x":{"external_ids":["map",[["ct-zone-backup","1"]]]}}}`,
	}
	f, stays := newFound(), vocabularyOf(wordList)
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB, workdir.OVS} {
		if err := f.addDatabase(t.Context(), []byte(kinds[kind]), string(kind), stays); err != nil {
			t.Fatal(err)
		}
	}
	r := newRenamer(newKey(), f, stays, vocabularyOf(proseList))
	to := map[string]string{}
	for _, name := range []string{"backup", "gateway", "controller", "host", "server", "storage"} {
		if to[name] = r.key.name(name); r.host(name) != to[name] {
			t.Errorf("%s becomes %s", name, r.host(name))
		}
	}
	tunnel := r.key.uuid(id, 0)
	if tunnel[:8] == id[:8] {
		t.Errorf("the UUID of a chassis becomes %s", tunnel)
	}
	in := func(text string, names ...string) string { // with the names, where a text has %
		for _, name := range names {
			text = strings.Replace(text, "%", to[name], 1)
		}
		return text
	}
	address := r.name("10.0.0.9")
	for kind, want := range map[workdir.Kind]string{
		workdir.NB: in(`{"Logical_Switch_Port":{"x":{"name":"%","type":"router","options":["map",[["router-port","%"],["requested-chassis","%,%"]]]},`,
			"backup", "gateway", "controller", "host") +
			in(`"y":{"type":"%","external_ids":["map",[["gateway","%"],["neutron:port_name","%"]]]}},`, "gateway", "server", "server") +
			in(`"Load_Balancer":{"x":{"ip_port_mappings":["map",[["`+r.name("10.0.0.2")+`","%:`+address+`"]]]}},`, "backup") +
			in(`"Logical_Router":{"y":{"name":"router"}},"Logical_Router_Port":{"x":{"name":"%"}},`, "gateway") +
			in(`"ACL":{"x":{"match":"inport == \"%\" && ip4 && outport == @% && backup"}},`, "backup", "storage") +
			in(`"Port_Group":{"x":{"name":"%"}},"_comment":"ovn-nbctl: lsp-add % %"}`, "storage", "server", "backup"),
		workdir.SB: in(`{"Chassis":{"x":{"name":"%","hostname":"%"},"y":{"name":"`+tunnel+`"}},`, "controller", "host") +
			in(`"DHCP_Options":{"x":{"name":"server"}},"Address_Set":{"x":{"name":"%_ip4"}},`, "storage") +
			in(`"Port_Group":{"x":{"name":"1_%","ports":["set",["%","cr-%"]]}}}`, "storage", "backup", "gateway"),
		workdir.OVS: in(`{"Interface":{"x":{"name":"backup","external_ids":["map",[["iface-id","%"]]]},"y":{"name":"ovn-`+tunnel[:6]+`-0"}},`, "backup") +
			in(`"Open_vSwitch":{"x":{"external_ids":["map",[["hostname","%"],["system-id","%"]]]}},`, "host", "controller") +
			in(`"Bridge":{"x":{"external_ids":["map",[["ct-zone-%","1"]]]}}}`, "backup"),
	} {
		got, err := r.database(t.Context(), []byte(kinds[kind]), string(kind))
		if err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, string(got), want, string(kind))
	}
	for text, want := range map[string]string{
		"Linux host 5.10": in("Linux % 5.10", "host"),
		"Dec  1 10:00:00 host ovs-vswitchd: the host":           in("Dec  1 10:00:00 % ovs-vswitchd: the host", "host"),
		"|binding|INFO|Claiming lport backup for router":        in("|binding|INFO|Claiming lport % for router", "backup"),
		"router 4c4c45ab-0000-4000-8000-000000000000 (gateway)": "",
		`Chassis "` + id + `"`:                                  `Chassis "` + tunnel + `"`,
		`match=(outport == "gateway" && gateway)`:               in(`match=(outport == "%" && gateway)`, "gateway"),
	} {
		got := r.name(text)
		if want == "" {
			want = strings.TrimSuffix(got, in("(%)", "gateway")) + in("(%)", "gateway")
		}
		expect.Equal(t, got, want, text)
	}
}
