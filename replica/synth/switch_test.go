package synth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/generate/ovndb"
)

// id returns a UUID that ends with a number.
func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// deployment are the rows of a southbound database: chassis 1 (compute1) and 2 (compute2),
// 3 in another zone of interconnection, and 4, a hardware gateway; datapath 10 is a network.
func deployment(bindings map[string]ovndb.Row) ovndb.Rows {
	chassis := func(name, hostname string, config []any) ovndb.Row {
		return ovndb.Row{"name": name, "hostname": hostname, "other_config": config}
	}
	vtep := chassis("sys-4", "vtep", ovndb.Map())
	vtep["vtep_logical_switches"] = ovndb.Set("ls")
	rows := ovndb.Rows{
		"Chassis": {
			id(1): chassis("sys-1", "compute1", ovndb.Map("ovn-bridge-mappings",
				"physnet1:br-ex, physnet2:br-data,again:br-ex,bad:a/b")),
			id(2): chassis("sys-2", "compute2", ovndb.Map()),
			id(3): chassis("sys-3", "compute3", ovndb.Map("is-remote", "true")),
			id(4): vtep,
		},
		"Datapath_Binding": {
			id(10): {"tunnel_key": 1, "external_ids": ovndb.Map("name", "neutron-"+network, "logical-switch", id(20))},
			id(11): {"tunnel_key": 2, "external_ids": ovndb.Map("name", "other")},
		},
		"Port_Binding": {},
	}
	for i, name := range slices.Sorted(keys(bindings)) {
		row := bindings[name]
		row["logical_port"], row["tunnel_key"] = name, i+1
		if row["datapath"] == nil {
			row["datapath"] = ovndb.UUID(id(10))
		}
		rows["Port_Binding"][id(100+i)] = row
	}
	return rows
}

const (
	network = "e3c647f7-8126-4a93-8c43-b76ffa808cd7"
	vm      = "bd9e8124-4e85-4ce9-8853-39a7c44a644a"
)

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func read(t *testing.T, rows ovndb.Rows) *Southbound {
	t.Helper()
	f := ovndb.Create(t, ovs.SBSchema)
	f.Add(rows)
	s, err := Read(t.Context(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func on(chassis int) []string { return ovndb.UUID(id(chassis)) }

// TestSwitchHasThePortsOfItsChassis checks which logical ports have an interface, and its
// name: as ovn-controller(8) and the agents of neutron and OVN-Kubernetes have it.
func TestSwitchHasThePortsOfItsChassis(t *testing.T) {
	s := read(t, deployment(map[string]ovndb.Row{
		vm: {"chassis": on(1), "external_ids": ovndb.Map("neutron:device_id", "d"),
			"mac": ovndb.Set("fa:16:3e:10:00:05 192.168.10.5")},
		"elsewhere":                 {"chassis": on(2)},
		"unbound":                   {},
		"migrates":                  {"chassis": on(2), "additional_chassis": ovndb.Set(on(1))},
		"container":                 {"chassis": on(1), "parent_port": vm, "tag": 5},
		"orphan":                    {"chassis": on(1), "parent_port": "elsewhere", "tag": 6},
		"router":                    {"type": "patch"},
		"provnet":                   {"type": "localnet", "options": ovndb.Map("network_name", "physnet1")},
		"gateway":                   {"type": "l3gateway", "chassis": on(1)},
		"cr-lrp":                    {"type": "chassisredirect", "chassis": on(1)},
		"vip":                       {"type": "virtual", "chassis": on(1)},
		"baremetal":                 {"type": "external", "chassis": on(1)},
		"ovnmeta":                   {"type": "localport"},
		"ovnmeta-far":               {"type": "localport", "datapath": ovndb.UUID(id(11))},
		"k8s-compute1":              {"chassis": on(1)},
		"ns_pod-with-a-long-name-a": {"chassis": on(1), "options": ovndb.Map("iface-id-ver", "v1")},
		"ns_pod-with-a-long-name-b": {"chassis": on(1)},
	}))
	n := s.buildSwitch(s.Local()[0])
	got := map[string]string{}
	for _, i := range n.bridges[0].interfaces {
		got[i.ids["iface-id"]] = i.name + " " + i.kind
		if len(i.name) > maxName {
			t.Errorf("%q is too long for a device", i.name)
		}
	}
	want := map[string]string{vm: "tapbd9e8124-4e ", "migrates": "migrates ", "ovnmeta": "ovnmeta ",
		"k8s-compute1": "ovn-k8s-mp0 internal"}
	for port, name := range want {
		if got[port] != name {
			t.Errorf("port %s has the interface %q, not %q", port, got[port], name)
		}
	}
	a, b := got["ns_pod-with-a-long-name-a"], got["ns_pod-with-a-long-name-b"]
	if a == b || !strings.HasPrefix(a, "ns_pod-w~") || !strings.HasPrefix(b, "ns_pod-w~") || len(got) != 6 {
		t.Errorf("the interfaces are %v", got)
	}
	if len(n.lost) != 3 || !strings.Contains(n.lost[1],
		`"orphan" has the parent "elsewhere", which is not bound to the chassis`) || !strings.Contains(n.lost[0], `"a/b"`) ||
		!strings.Contains(n.lost[2], "no tunnels") {
		t.Errorf("lost: %q", n.lost)
	}
	var bridges []string
	for _, b := range n.bridges {
		bridges = append(bridges, b.name)
	}
	expect.Equal(t, bridges, []string{"br-int", "br-ex", "br-data"}, "the bridges")
	if all := titles(s.Local()); all != "compute1, compute2" {
		t.Errorf("chassis of other zones and hardware gateways are taken: %s", all)
	}
}

// TestEachGuessIsListed checks that the assumptions name what no database holds.
func TestEachGuessIsListed(t *testing.T) {
	s := read(t, deployment(map[string]ovndb.Row{vm: {"chassis": on(1)}, "pod": {"chassis": on(1)}}))
	all := strings.Join(s.buildSwitch(s.Local()[0]).assumed, "\n")
	for _, subject := range []string{"OpenFlow port numbers", "conntrack zones", "connections", "MTU",
		"datapath can do what", "1 ports of instances are called as nova does",
		"the names for 1 logical ports can't be known", ": pod", "bridge br-ex: its flows", "called nic-br-ex",
		"bridge br-data", "the order in which flows were installed"} {
		if !strings.Contains(all, subject) {
			t.Errorf("nothing is said of %q:\n%s", subject, all)
		}
	}
	// A gateway has no logical ports, but tunnels, zones and connections.
	gateway := strings.Join(s.buildSwitch(s.Local()[1]).assumed, "\n")
	for _, subject := range []string{"OpenFlow port numbers", "conntrack zones", "connections", "MTU"} {
		if !strings.Contains(gateway, subject) {
			t.Errorf("nothing is said of %q for a chassis without ports:\n%s", subject, gateway)
		}
	}
}

// TestHostileNamesStayNames writes the OVS database of chassis and ports with names that no
// node has, and reads it back.
func TestHostileNamesStayNames(t *testing.T) {
	schema := installed(t)
	names := []string{"../../../etc/passwd", "-rf", ".", `a"b`, "a\nb", "a=b, c}", "\x1b[31m", strings.Repeat("x", 5000),
		"名前", "br-int", "br-ex", "nic-br-ex", " "}
	bindings := map[string]ovndb.Row{}
	for _, name := range names {
		bindings[name] = ovndb.Row{"chassis": on(1)}
	}
	rows := deployment(bindings)
	rows["Chassis"][id(1)]["hostname"] = "../../evil\n"
	rows["Chassis"][id(1)]["name"] = `sys"}, ["x`
	s := read(t, rows)
	c := s.Local()[slices.IndexFunc(s.Local(), func(c ovn.Chassis) bool { return c.UUID == id(1) })]
	path := filepath.Join(t.TempDir(), "conf.db")
	if err := s.buildSwitch(c).write(t.Context(), schema, path); err != nil {
		t.Fatal(err)
	}
	content, remarks, err := file.Read(t.Context(), path)
	if err != nil || len(remarks) > 0 {
		t.Fatal(err, remarks)
	}
	seen, ports := map[string]bool{}, map[string]bool{}
	for _, row := range content.Rows("Interface") {
		name := row.String("name")
		if seen[name] || strings.ContainsAny(name, "/\"\n\x1b= ") || name == "" || name[0] == '.' || len(name) > maxName {
			t.Errorf("an interface is called %q", name)
		}
		seen[name] = true
		ports[row.Map("external_ids")["iface-id"]] = true
	}
	for _, name := range names {
		if !ports[name] {
			t.Errorf("the logical port %q has no interface", name)
		}
	}
	if ids := content.Rows("Open_vSwitch")[0].Map("external_ids"); ids["system-id"] != `sys"}, ["x` ||
		ids["hostname"] != "../../evil\n" {
		t.Errorf("the identity is %q", ids)
	}
	for _, folder := range folders([]ovn.Chassis{c, {Name: "a", Hostname: "same"}, {Name: "b", Hostname: "same"}}) {
		if strings.ContainsAny(folder, "/\n") {
			t.Errorf("a folder is called %q", folder)
		}
	}
}

func installed(t *testing.T) file.Schema {
	t.Helper()
	text, err := os.ReadFile(ovs.Schema)
	if err != nil {
		t.Skip(err)
	}
	schema, err := file.ParseSchema(ovs.Schema, text)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestChassisAreChosenByName takes host names and system-ids.
func TestChassisAreChosenByName(t *testing.T) {
	all := []ovn.Chassis{{Name: "sys-1", Hostname: "compute1"}, {Name: "sys-2", Hostname: "twin"},
		{Name: "sys-3", Hostname: "twin"}}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"compute1"}, "sys-1"},
		{[]string{"sys-2", "compute1", "sys-1"}, "sys-2 sys-1"},
		{[]string{"twin"}, `several are called "twin": choose one by its system-id: sys-2, sys-3`},
		{[]string{"compute9"}, `"compute9" in the OVN SB database; there are: compute1, twin, twin`},
	} {
		chosen, err := selectByName(all, c.names)
		var got []string
		for _, one := range chosen {
			got = append(got, one.Name)
		}
		if err != nil && (!errors.Is(err, ErrNoChassis) || !strings.HasSuffix(err.Error(), c.want)) || err == nil &&
			strings.Join(got, " ") != c.want {
			t.Errorf("%v: got %v, %v, want %s", c.names, got, err, c.want)
		}
	}
}
