package names

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// TestShownNetworkNamesEndpoints checks that what ovn-nbctl show and ovn-sbctl show printed names the endpoints of a
// node without databases, and gives the first packet between two of them. A database of the node has what its
// interfaces are for.
func TestShownNetworkNamesEndpoints(t *testing.T) {
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		workdir.HostShownNB: "switch a3e34c1f-1a22-4fa7-908d-9f804585d3e8 (sw0)\n    port sw0-r0\n        type: router\n        router-port: r0-sw0\n    port vm1\n        addresses: [\"0a:00:00:00:00:01 10.0.0.1\"]\n" +
			"switch b3e34c1f-1a22-4fa7-908d-9f804585d3e8 (sw1)\n    port sw1-r0\n        type: router\n        router-port: r0-sw1\n    port vm2\n        addresses: [\"0a:00:00:00:00:02 10.0.1.2\"]\n" +
			"router d6966c6f-f52c-4b69-a38d-daaa6eb8b23d (r0)\n    port r0-sw0\n        mac: \"0a:00:00:00:00:fe\"\n        networks: [\"10.0.0.254/24\"]\n    port r0-sw1\n        mac: \"0a:00:00:00:00:ff\"\n        networks: [\"10.0.1.254/24\"]\n",
		workdir.HostShownSB: "Chassis \"c2\"\n    hostname: n2\n    Encap geneve\n        ip: \"10.0.0.4\"\n    Port_Binding vm2\n",
	} {
		path := wd.HostRecorded(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf, err := file.IndexPrinted(t.Context(), "conf",
		map[string][]ovsdb.Record{"Interface": {{UUID: ovsdb.UUIDOf("tap1"),
			Columns: []ovsdb.Value{{Column: "name", Text: "tap1"}, {Column: "external_ids", Text: "{iface-id=vm1}"}}}}},
		t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer conf.Close()
	known := load(t, &snapshot.Deployment{Nodes: []snapshot.Member{{Name: "n1", Dir: wd, OVS: conf}}})
	got := map[string]string{}
	for _, endpoint := range known.All() {
		got[endpoint.LogicalPort] = fmt.Sprint(endpoint.MAC, " ", endpoint.IPs, " ", endpoint.Switch, " ", endpoint.Chassis,
			" ", endpoint.Node)
	}
	expect.Equal(t, got, map[string]string{"vm1": "0a:00:00:00:00:01 [10.0.0.1] sw0 n1 n1",
		"vm2":    "0a:00:00:00:00:02 [10.0.1.2] sw1 n2 ",
		"r0-sw0": "0a:00:00:00:00:fe [10.0.0.254] r0  ", "r0-sw1": "0a:00:00:00:00:ff [10.0.1.254] r0  "}, "endpoints")
}
