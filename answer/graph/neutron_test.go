package graph

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// Names in OVN of a network, a router and ports, as Neutron makes them from UUIDs.
const (
	webNetwork = "neutron-dc371a8d-7820-4a26-86fa-0c6ec5039985"
	vlan101    = "neutron-6eacc421-9bc2-4df0-b78d-fad245fd3556"
	router1    = "neutron-96a98a34-6a6c-4825-8e7a-77674beb89a7"
	web1       = "31054021-de37-4687-bfd8-9b8d5ab783e9"
	vipOwner   = "4d9d53bf-e9c7-4b84-bc93-7196d8fd35e5"
	vip        = "6286d958-2b95-4713-aeb0-17c7f6ae4e00"
	trunk      = "87671bf7-0a1d-47d2-85cc-e855768ddc9d"
	sub100     = "76e7ea7b-6f06-4a05-8e8c-4a2e0a3f2a51"
	sriov1     = "6dd49948-2396-4d9d-bd11-d88bb03831c4"
	metadata   = "290beea1-5332-466d-989f-9ad30ec289f9"
	toRouter   = "5c12e728-0458-4d77-ab3b-06a331cab2dc"
)

// neutronNB returns the NB database of a small network with the rows of Neutron 21:
// port rows have the keys neutron:network_name and neutron:router_name as well.
func neutronNB(t *testing.T) string {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovn-nbctl")
	file := filepath.Join(t.TempDir(), "nb.db")
	ovs.Run(t, "ovsdb-tool", "create", file, ovs.NBSchema)
	s := ovs.Serve(t, file)
	nbctl := func(args ...string) {
		t.Helper()
		s.Run(append([]string{"ovn-nbctl", "--no-leader-only", "--db=" + s.Remote}, args...)...)
	}
	for name, given := range map[string]string{webNetwork: "net-web", vlan101: "prov-vlan101"} {
		nbctl("ls-add", name, "--", "set", "logical_switch", name, "external_ids:neutron\\:network_name="+given)
	}
	nbctl("lr-add", router1, "--", "set", "logical_router", router1, "external_ids:neutron\\:router_name=r1")
	nbctl("lrp-add", router1, "lrp-"+toRouter, "fa:16:3e:00:00:01", "10.0.10.1/24", "--", "set", "logical_router_port",
		"lrp-"+toRouter,
		"external_ids:neutron\\:network_name="+webNetwork,
		"external_ids:neutron\\:router_name="+strings.TrimPrefix(router1, "neutron-"))
	for _, p := range []struct {
		network, port, name string
		columns             []string
	}{
		{webNetwork, web1, "web1", []string{"addresses=\"fa:16:3e:10:c3:db 10.0.10.11\"", "up=true",
			"external_ids:neutron\\:device_id=7c3c4f8a-63ca-5da2-bb74-dc6f8fc4553a"}},
		{webNetwork, vipOwner, "vip-a", []string{"up=true"}},
		{webNetwork, vip, "vip", []string{"type=virtual", "addresses=\"fa:16:3e:0f:fb:b9 10.0.10.100\"",
			"options:virtual-ip=10.0.10.100", "options:virtual-parents=" + vipOwner}},
		{webNetwork, trunk, "trunk-parent", []string{"up=true"}},
		{vlan101, sub100, "sub-100", []string{"parent_name=" + trunk, "tag=100", "up=true"}},
		{vlan101, sriov1, "sriov1", []string{"type=external", "addresses=\"fa:16:3e:ae:9c:b1 10.101.0.31\"", "up=true"}},
		{webNetwork, metadata, "", []string{"type=localport"}},
		{webNetwork, toRouter, "", []string{"type=router", "options:router-port=lrp-" + toRouter}},
	} {
		nbctl(append([]string{"lsp-add", p.network, p.port, "--", "set", "logical_switch_port", p.port,
			"external_ids:neutron\\:network_name=" + p.network, "external_ids:neutron\\:port_name=\"" + p.name + "\""},
			p.columns...)...)
	}
	return file
}

// localConf returns an OVS database that ovs-vsctl fills.
func localConf(t *testing.T, args ...string) string {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovs-vsctl")
	file := filepath.Join(t.TempDir(), "conf.db")
	ovs.Run(t, "ovsdb-tool", "create", file)
	s := ovs.Serve(t, file)
	s.Run(append([]string{"ovs-vsctl", "--db=" + s.Remote, "--no-wait"}, args...)...)
	return file
}

// holding returns a workdir with databases.
func holding(t *testing.T, databases map[workdir.Kind]string) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	for kind, path := range databases {
		if _, _, err := collect.Collect(context.Background(), wd, collect.DatabaseFile{Path: path, Kind: kind},
			collect.Options{Select: collect.Select{Database: kind}}); err != nil {
			t.Fatal(err)
		}
	}
	return wd
}

// TestPortsHaveTheNamesOfTheirNeutronPorts checks names, kinds and notes in the logical
// picture.
func TestPortsHaveTheNamesOfTheirNeutronPorts(t *testing.T) {
	g, err := Logical(context.Background(), holding(t, map[workdir.Kind]string{workdir.NB: neutronNB(t)}))
	if err != nil {
		t.Fatal(err)
	}
	web, provider, r1 := box(t, g, Switch, "net-web"), box(t, g, Switch, "prov-vlan101"), box(t, g, Router, "r1")
	for _, want := range []struct {
		box  *Box
		name string
		kind Kind
		note string
	}{
		{web, "web1", Attached, "10.0.10.11"},
		{web, "vip-a", Attached, ""},
		{web, "vip", Virtual, "virtual, 10.0.10.100"},
		{web, "trunk-parent", Attached, ""},
		{web, metadata, Service, "localport"},
		{web, toRouter, Link, ""},
		{provider, "sub-100", Child, "child of trunk-parent, tag 100"},
		{provider, "sriov1", External, "external, 10.101.0.31"},
		{r1, "lrp-" + toRouter, Link, "10.0.10.1/24"},
	} {
		if p := port(t, want.box, want.name); p.Kind != want.kind || p.Note != want.note {
			t.Errorf("%s is drawn as %s %q, want %s %q", p.Name, p.Kind, p.Note, want.kind, want.note)
		}
	}
	if len(web.Ports) != 6 || len(provider.Ports) != 2 || len(r1.Ports) != 1 {
		t.Errorf("%d, %d and %d ports", len(web.Ports), len(provider.Ports), len(r1.Ports))
	}
	if details := strings.Join(port(t, web, "vip").Detail, "\n"); !strings.Contains(details, "virtual parent: vip-a") {
		t.Errorf("the tooltip of the virtual port:\n%s", details)
	}
	var picture bytes.Buffer
	if err := g.SVG(&picture); err != nil {
		t.Fatal(err)
	}
	for _, whole := range []string{">lrp-" + toRouter + "<", ">" + metadata + "<", ">virtual<", ">external<", ">child<"} {
		if !strings.Contains(picture.String(), whole) {
			t.Errorf("the picture does not show %s", whole)
		}
	}
}

// TestFilterFindsWhatNeutronNames looks for a port, a network and a router by what a user
// knows of them.
func TestFilterFindsWhatNeutronNames(t *testing.T) {
	wd := holding(t, map[workdir.Kind]string{workdir.NB: neutronNB(t)})
	for _, want := range []struct {
		pattern string
		shown   string // every port in the picture
	}{
		{"web1", "web1"},
		{"web[1-9]", "web1"},
		{web1, "web1"},
		{"31054021-*", "web1"},
		{"7c3c4f8a-63ca-5da2-bb74-dc6f8fc4553a", "web1"},
		{"vip-a", "vip-a vip"}, // and the port that it is a virtual parent of
		{"trunk-parent", "trunk-parent sub-100"},
		{"prov-vlan101", "sub-100 sriov1"},
		{vlan101, "sub-100 sriov1"},
		{"r1", toRouter + " lrp-" + toRouter},
		{"neutron-96a98a34*", toRouter + " lrp-" + toRouter},
	} {
		g, err := Logical(context.Background(), wd)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Filter(want.pattern); err != nil {
			t.Fatal(err)
		}
		shown := map[string]bool{}
		for _, b := range g.Boxes {
			for _, p := range b.Ports {
				shown[p.Name] = true
			}
		}
		for _, name := range strings.Fields(want.shown) {
			if !shown[name] {
				t.Errorf("--filter %s does not show %s", want.pattern, name)
			}
			delete(shown, name)
		}
		if len(shown) > 0 {
			t.Errorf("--filter %s also shows %v", want.pattern, shown)
		}
	}
}

// tap adds an interface with an iface-id to br-int, as os-vif does.
func tap(name, id string) []string {
	return []string{"--", "add-port", "br-int", name, "--", "set", "interface", name, "external_ids:iface-id=" + id}
}

// TestInterfacesHaveTheNamesOfTheirPorts checks the node's picture with and without the
// NB database, and with one that cannot be read.
func TestInterfacesHaveTheNamesOfTheirPorts(t *testing.T) {
	args := []string{"add-br", "br-int"}
	for name, id := range map[string]string{"tap31054021-de": web1, "tap4d9d53bf-e9": vipOwner, "tap87671bf7-0a": trunk,
		"tap290beea1-50": metadata, "tapelse": "another-deployment"} {
		args = append(args, tap(name, id)...)
	}
	conf := localConf(t, args...)
	wd := holding(t, map[workdir.Kind]string{workdir.OVS: conf, workdir.NB: neutronNB(t)})
	named := map[string]string{
		"tap31054021-de": "web1", "tap4d9d53bf-e9": "vip-a, virtual parent of vip",
		"tap87671bf7-0a": "trunk-parent, parent of sub-100 tag 100",
		"tap290beea1-50": metadata + ", localport", "tapelse": "another-deployment",
	}
	checkNotes(t, wd, named)
	files.Write(t, wd.Database(workdir.NB), "garbage")
	unnamed := map[string]string{"tap31054021-de": web1, "tap87671bf7-0a": trunk, "tapelse": "another-deployment"}
	g := checkNotes(t, wd, unnamed)
	if said := strings.Join(g.Remarks, "\n"); !strings.Contains(said,
		"iface-ids are shown without the names of their ports: ") {
		t.Errorf("the remarks are %q", said)
	}
	checkNotes(t, holding(t, map[workdir.Kind]string{workdir.OVS: conf}), unnamed)
}

// checkNotes draws the node and checks the notes of ports of br-int.
func checkNotes(t *testing.T, wd *workdir.Dir, want map[string]string) *Graph {
	t.Helper()
	g, err := Node(context.Background(), wd)
	if err != nil {
		t.Fatal(err)
	}
	var picture bytes.Buffer
	if err := g.SVG(&picture); err != nil {
		t.Fatal(err)
	}
	for name, note := range want {
		if p := port(t, box(t, g, Bridge, "br-int"), name); p.Note != note {
			t.Errorf("%s has the note %q, want %q", name, p.Note, note)
		}
		if !strings.Contains(picture.String(), ">"+note+"<") {
			t.Errorf("the picture does not show %q", note)
		}
	}
	return g
}

// TestFilterFindsAnInterfaceByItsPort looks in the node's picture for names that only the
// NB database has.
func TestFilterFindsAnInterfaceByItsPort(t *testing.T) {
	conf := localConf(t, append(append([]string{"add-br", "br-int"}, tap("tap31054021-de", web1)...),
		tap("tap87671bf7-0a", trunk)...)...)
	wd := holding(t, map[workdir.Kind]string{workdir.OVS: conf, workdir.NB: neutronNB(t)})
	for pattern, want := range map[string]string{"web1": "tap31054021-de", "web?": "tap31054021-de",
		"31054021-*": "tap31054021-de", "sub-100": "tap87671bf7-0a"} {
		g, err := Node(context.Background(), wd)
		if err != nil {
			t.Fatal(err)
		}
		matched, err := g.Filter(pattern)
		if ports := box(t, g, Bridge, "br-int").Ports; err != nil || matched != 1 || len(ports) != 1 ||
			ports[0].Name != want {
			t.Errorf("--filter %s: %d match, %v, %v", pattern, matched, ports, err)
		}
	}
}

// TestTagsOfTheAgentHaveTheirNetworks draws ports as the ML2/OVS agent of Neutron 21
// writes them, and a trunk.
func TestTagsOfTheAgentHaveTheirNetworks(t *testing.T) {
	args := []string{"add-br", "br-int"}
	add := func(name, id string, columns ...string) {
		args = append(append(append(args, tap(name, id)...), "--", "set", "port", name), columns...)
	}
	config := func(kind, physical, tag string, more ...string) []string {
		return append([]string{"tag=" + tag, "other_config:net_uuid=f45fd8e4-715a-406b-910a-59cbe4faf576",
			"other_config:network_type=" + kind,
			"other_config:physical_network=" + physical, "other_config:tag=" + tag}, more...)
	}
	add("tap-vxlan", web1, config("vxlan", "None", "1", "other_config:segmentation_id=802")...)
	add("tap-vlan", vipOwner, config("vlan", "physnet1", "3", "other_config:segmentation_id=101")...)
	add("tap-flat", metadata, config("flat", "None-net", "5")...)
	add("tap-dead", vip, append(config("vxlan", "None", "1", "other_config:segmentation_id=802"), "tag=4095")...)
	add("tap-plain", sriov1, "tag=7")
	add("spi-sub", sub100, "tag=100")
	args = append(append(args, tap("tap-trunk", trunk)...), `external_ids:subport_ids="[\"`+sub100+`\"]"`)
	checkNotes(t, holding(t, map[workdir.Kind]string{workdir.OVS: localConf(t, args...)}), map[string]string{
		"tap-vxlan": web1 + ", vxlan 802 (tag 1)",
		"tap-vlan":  vipOwner + ", vlan 101 on physnet1 (tag 3)",
		"tap-flat":  metadata + ", flat on None-net (tag 5)",
		"tap-dead":  vip + ", vxlan 802 (tag 4095)",
		"tap-plain": sriov1 + ", tag 7",
		"spi-sub":   sub100 + ", sub-port of tap-trunk, tag 100",
		"tap-trunk": trunk + ", trunk, 1 sub-port",
	})
}
