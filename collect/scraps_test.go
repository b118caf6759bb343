package collect

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/test/check/expect"
	testfiles "ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

// shownBridges is the output of ovs-vsctl show of a node with two bridges.
const shownBridges = `8b0d5a4c-4f4f-4c8d-8a0e-2f8b1c1d7e11
    Bridge br-int
        Port br-int
            Interface br-int
                type: internal
    Bridge br-ex
        Port br-ex
            Interface br-ex
                type: internal
    ovs_version: "3.1.2"
`

// TestSupportconfigIsSplitByCommand checks that the node in the folder's name gets the outputs in
// SUSE's network.txt, which begin far behind its beginning.
func TestSupportconfigIsSplitByCommand(t *testing.T) {
	nodes, _, _, err := takeFiles(t, Options{},
		folder(t, map[string]string{"scc_node7_261126_1015/network.txt": supportconfig()}))
	if err != nil {
		t.Fatal(err)
	}
	checkSupportconfig(t, nodes, "node7")
}

// TestHarvesterBundleHasASupportconfigOfEachNode checks the zip archive that Harvester makes, with one
// of each node in it, in which is the archive of a supportconfig.
func TestHarvesterBundleHasASupportconfigOfEachNode(t *testing.T) {
	bundle := map[string]string{"supportbundle_1/metadata.yaml": "projectName: Harvester\n"}
	for _, node := range []string{"harvester-node-0", "harvester-node-1"} {
		top := "scc_supportconfig_" + node + "-a1B2c3"
		dir := folder(t, map[string]string{top + "/network.txt": supportconfig()})
		ovs.Run(t, "tar", "-C", dir, "-cJf", filepath.Join(dir, "scc.txz"), top)
		bundle["supportbundle_1/nodes/"+node+".zip"] = testfiles.Zip(t, map[string]string{
			"scc/" + top + ".txz": testfiles.Read(t, filepath.Join(dir, "scc.txz")), "logs/kernel.log": "ovs\n"})
	}
	nodes, _, _, err := takeFiles(t, Options{},
		folder(t, map[string]string{"supportbundle_1.zip": testfiles.Zip(t, bundle)}))
	if err != nil {
		t.Fatal(err)
	}
	checkSupportconfig(t, nodes, "harvester-node-0", "harvester-node-1")
}

// supportconfig returns the file network.txt of a supportconfig.
func supportconfig() string {
	section := func(command, output string) string {
		return "#==[ Command ]======================================#\n# " + command + "\n" + output + "\n"
	}
	return "=============================================================================\n                     Support Utilities - Supportconfig\n\n" +
		section("/bin/dmesg", strings.Repeat("[    0.000000] Linux version\n", 9000)) +
		section("/sbin/ip addr", "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n") +
		section("/usr/bin/ovs-vsctl show", shownBridges) +
		section("/usr/bin/ovs-ofctl dump-flows br-int", flowText) +
		section("/usr/bin/ovs-appctl bond/show", "---- bond0 ----\nbond_mode: active-backup\n") +
		"#==[ Log File ]=====================================#\n# /var/log/messages - not found\n"
}

// checkSupportconfig checks that these nodes have the outputs of supportconfig().
func checkSupportconfig(t *testing.T, nodes map[string]Written, want ...string) {
	t.Helper()
	expect.Equal(t, slices.Sorted(maps.Keys(nodes)), want)
	for _, name := range want {
		expect.Equal(t, strings.Join(collectedNames(nodes[name]), " "),
			"restore_flows/br-int.flows.dump recorded/bond.show recorded/ip.address recorded/ovs-vsctl.show")
	}
}

// TestBugtoolNamesEachBridgeInOneFile checks that the dumps of several bridges in one file of
// ovs-bugtool are told apart by the command that it prints above each.
func TestBugtoolNamesEachBridgeInOneFile(t *testing.T) {
	top := "bug-report-20261126101500/"
	nodes, _, _, err := takeFiles(t, Options{}, folder(t, map[string]string{
		top + "ovs-vsctl-show.out": shownBridges,
		top + "ovs-ofctl-dump-flows.out": "ovs-ofctl dump-flows br-int \n" + flowText +
			"\novs-ofctl dump-flows -OOpenFlow13 br-ex \n" + flows("OF1.3", 2) + "\n",
		top + "ovs-appctl-bond-show.out": "---- bond0 ----\nbond_mode: active-backup\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		expect.Equal(t, strings.Join(collectedNames(node), " "),
			"restore_flows/br-int.flows.dump restore_flows/br-ex.flows.dump recorded/bond.show recorded/ovs-vsctl.show")
	}
}

func collectedNames(node Written) (names []string) {
	for _, c := range node.Collections {
		for _, file := range c.Files {
			names = append(names, file.Path)
		}
	}
	return names
}

const (
	listedSwitch = "_uuid               : 5e88ab00-c772-4846-8bc5-cd28197846cc\nname                : sw0\nports               : [23af6f58-cd9d-4527-a93a-1db557469d0a]\n"
	listedPort   = "_uuid               : 23af6f58-cd9d-4527-a93a-1db557469d0a\nname                : lp0\n\n_uuid               : 23af6f58-cd9d-4527-a93a-1db557469d0b\nname                : lp1\n"
)

// TestPrintedTablesAreOneDatabase checks that the outputs of ovn-nbctl list in files and in a pasted
// text become one text, and that a list of some columns is not taken for a table.
func TestPrintedTablesAreOneDatabase(t *testing.T) {
	for what, files := range map[string]map[string]string{
		"files": {
			"node7/ovn-nbctl_list_Logical_Switch.txt":                      listedSwitch,
			"node7/ovn-nbctl_--no-leader-only_list_Logical_Switch_Port":    listedPort,
			"node7/ovn-nbctl_--no-leader-only_--columns__uuid_list_DNS":    "_uuid               : 5e88ab00-c772-4846-8bc5-cd28197846cd\n",
			"node7/ovn-nbctl_--no-leader-only_list_Logical_Router_Policy":  "",
			"node7/ovn-nbctl_--no-leader-only_get-connection":              "read-write role=\"\" ptcp:6641:[::]\n",
			"node7/ovs-vsctl_show":                                         shownBridges,
			"node7/ovs-ofctl_-O_OpenFlow15_dump-flows_br-int":              flows("OF1.5", 1),
			"node7/ovn-nbctl_--no-leader-only_list_Logical_Switch_Port.1x": "",
		},
		"ticket": {"case.md": "# Case\n```\n[root@node7 ~]# ovn-nbctl list logical_switch\n" + listedSwitch +
			"[root@node7 ~]# sudo ovn-nbctl list Logical_Switch_Port\n" + listedPort +
			"[root@node7 ~]# ovn-nbctl list Logical_Switch_Port lp0\n" + listedPort +
			"[root@node7 ~]# ovn-nbctl --columns=_uuid list DNS\n_uuid               : 5e88ab00-c772-4846-8bc5-cd28197846cd\n```\n"},
	} {
		t.Run(what, func(t *testing.T) {
			nodes, _, _, err := takeFiles(t, Options{}, folder(t, files))
			if err != nil {
				t.Fatal(err)
			}
			node := slices.Collect(maps.Values(nodes))[0]
			const path = "db/ovn_nb/printed/tables.txt"
			if !slices.Contains(collectedNames(node), path) {
				t.Fatalf("collected %v, not %s", collectedNames(node), path)
			}
			content, err := file.PrintedContent(t.Context(), filepath.Join(node.Path, path))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, row := range append(content.Rows("Logical_Switch"), content.Rows("Logical_Switch_Port")...) {
				names = append(names, row.String("name"))
			}
			expect.Equal(t, strings.Join(names, " "), "sw0 lp0 lp1")
			expect.Equal(t, len(content.Rows("DNS")), 0)
		})
	}
}

// TestLongLinesAreLosses checks that a line of 100 MB in what people paste costs that line, or the
// text that holds it, and that this is said.
func TestLongLinesAreLosses(t *testing.T) {
	if testing.Short() {
		t.Skip("reads lines of 100 MB")
	}
	long := strings.Repeat("a", 100_000_000)
	for name, c := range map[string]struct {
		text string
		lost string // of the node, or the error where nothing is left
	}{
		"ovs-vsctl_show": {strings.Replace(shownBridges, "Port br-ex", "Port "+long, 1),
			"1 line longer than 16 MiB"},
		"ovn-nbctl_list_Logical_Switch": {listedSwitch + "other_config        : {a=" + long + "}\n",
			"ovn-nbctl_list_Logical_Switch: 1 line"},
		"ovn-sbctl_lflow-list": {"Datapath: \"sw0\" (5e88ab00-c772-4846-8bc5-cd28197846cc)  Pipeline: ingress\n" +
			"  table=0 (ls_in_check_port_sec), priority=100  , match=(" + long + "), action=(drop;)\n",
			"ovn-sbctl_lflow-list: 1 line"},
		"case.md":                 {"# ovs-vsctl show\n" + shownBridges + long, "case.md: is longer than 64 MiB"},
		"ovn-appctl_ct-zone-list": {"lp0 1\n" + long + " 2\n", "ovn-appctl_ct-zone-list: 1 line"},
		"scc_n_261126_1015/network.txt": {"#==[ Command ]===#\n# /usr/bin/ovs-vsctl show\n" + shownBridges + long,
			"network.txt: is longer than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{name: c.text}
			if strings.HasPrefix(name, "ovn-sbctl") {
				files["ovn-sbctl_list_Datapath_Binding"] = listedSwitch
			}
			nodes, _, _, err := takeFiles(t, Options{}, folder(t, files))
			said := fmt.Sprint(err)
			for _, node := range nodes {
				for _, collection := range node.Collections {
					said += strings.Join(collection.Lost, "\n")
				}
			}
			if !strings.Contains(said, c.lost) {
				t.Errorf("nothing says %q: %.500s", c.lost, said)
			}
		})
	}
}

// TestUnusedOutputsAreNamed checks that outputs that nothing uses are named, also where nothing else
// is there.
func TestUnusedOutputsAreNamed(t *testing.T) {
	const unused = "node7/ovs-appctl_dpdk.lcore-list"
	files := map[string]string{unused: "Event coverage\n", "node7/notes": "ovs-vsctl is slow\n",
		"node7/ovs-vsctl_show": shownBridges}
	found, _, err := Inspect(t.Context(), Files{Paths: []string{folder(t, files)}}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, strings.Join(found.Unused, " "), unused)
	delete(files, "node7/ovs-vsctl_show")
	if _, _, err := Inspect(t.Context(), Files{Paths: []string{folder(t, files)}}, t.TempDir(), nil); err == nil ||
		!strings.Contains(err.Error(), "ovs-appctl_dpdk.lcore-list") {
		t.Errorf("a source with outputs that nothing uses: %v", err)
	}
}

// TestAddressesOfAllBridgesAreSplit checks fdb/show of all bridges, as Open vSwitch 4.0 prints it, in a
// file and in a pasted text.
func TestAddressesOfAllBridgesAreSplit(t *testing.T) {
	const printed = " Bridge   Port  VLAN  MAC                Age\n br-ex       1     0  0a:00:00:00:00:01    3\n         LOCAL     7  0a:00:00:00:00:02    static\n br-int      2     0  0a:00:00:00:00:03  294\n br-tun1\n"
	for what, files := range map[string]map[string]string{
		"a file": {"node7/ovs-appctl_fdb.show": printed, "node7/ovs-ofctl_dump-flows_br-int": flows("OF1.5", 1),
			"node7/ovs-ofctl_dump-flows_br-ex": flows("OF1.5", 1)},
		"a ticket": {"case.log": "[root@node7 ~]# ovs-appctl fdb/show\n" + printed +
			"[root@node7 ~]# ovs-ofctl dump-flows br-int\n" + flowText + "[root@node7 ~]# ovs-ofctl dump-flows br-ex\n" +
			flowText},
	} {
		t.Run(what, func(t *testing.T) {
			nodes, _, _, err := takeFiles(t, Options{}, folder(t, files))
			if err != nil {
				t.Fatal(err)
			}
			node := slices.Collect(maps.Values(nodes))[0]
			for bridge, want := range map[string]string{"br-ex": " Port  VLAN  MAC                Age\n    1     0  0a:00:00:00:00:01    3\nLOCAL     7  0a:00:00:00:00:02    static\n",
				"br-int": " Port  VLAN  MAC                Age\n    2     0  0a:00:00:00:00:03  294\n"} {
				got := testfiles.Read(t, filepath.Join(node.Path, "recorded/bridges", bridge, "fdb.show"))
				expect.Equal(t, got, want, bridge)
			}
		})
	}
}

// TestFailedListsAreNoLossByThemselves checks that error messages in place of tables are a loss only of a
// database that is made from other tables.
func TestFailedListsAreNoLossByThemselves(t *testing.T) {
	failed := "ovn-nbctl: unix:/run/ovn/ovnnb_db.sock: database connection failed (Connection refused)\n"
	base := map[string]string{"ovs-ofctl_dump-flows_br-int": flows("OF1.5", 1), "ovn-nbctl_list_ACL": failed,
		"ovn-nbctl_list_DNS": failed}
	for what, c := range map[string]struct {
		name, text string
		lost       int
	}{
		"nothing else":   {"notes.txt", "", 0},
		"a file":         {"ovnnb_db.db", database("OVN_Northbound", 1), 0},
		"another table":  {"ovn-nbctl_list_Logical_Switch", listedSwitch, 3}, // with the port of the switch
		"another failed": {"ovn-nbctl_list_Logical_Switch", failed, 0},
	} {
		t.Run(what, func(t *testing.T) {
			files := maps.Clone(base)
			files[c.name] = c.text
			nodes, _, _, err := takeFiles(t, Options{}, folder(t, files))
			if err != nil {
				t.Fatal(err)
			}
			var lost []string
			for _, node := range nodes {
				for _, collection := range node.Collections {
					lost = append(lost, collection.Lost...)
				}
			}
			expect.Equal(t, len(lost), c.lost, lost)
		})
	}
}
