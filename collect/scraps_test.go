package collect

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
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
	section := func(command, output string) string {
		return "#==[ Command ]======================================#\n# " + command + "\n" + output + "\n"
	}
	text := "=============================================================================\n                     Support Utilities - Supportconfig\n\n" +
		section("/bin/dmesg", strings.Repeat("[    0.000000] Linux version\n", 9000)) +
		section("/sbin/ip addr", "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n") +
		section("/usr/bin/ovs-vsctl show", shownBridges) +
		section("/usr/bin/ovs-ofctl dump-flows br-int", flowText) +
		section("/usr/bin/ovs-appctl bond/show", "---- bond0 ----\nbond_mode: active-backup\n") +
		"#==[ Log File ]=====================================#\n# /var/log/messages - not found\n"
	nodes, _, _, err := takeFiles(t, Options{}, folder(t, map[string]string{"scc_node7_261126_1015/network.txt": text}))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := nodes["node7"]; !ok {
		t.Fatalf("nodes %v, not node7", nodes)
	}
	expect.Equal(t, strings.Join(collectedNames(nodes["node7"]), " "), "restore_flows/br-int.flows.dump recorded/bond.show recorded/ip.address recorded/ovs-vsctl.show")
}

// TestBugtoolNamesEachBridgeInOneFile checks that the dumps of several bridges in one file of
// ovs-bugtool are told apart by the command that it prints above each.
func TestBugtoolNamesEachBridgeInOneFile(t *testing.T) {
	top := "bug-report-20261126101500/"
	nodes, _, _, err := takeFiles(t, Options{}, folder(t, map[string]string{
		top + "ovs-vsctl-show.out":       shownBridges,
		top + "ovs-ofctl-dump-flows.out": "ovs-ofctl dump-flows br-int \n" + flowText + "\novs-ofctl dump-flows -OOpenFlow13 br-ex \n" + flows("OF1.3", 2) + "\n",
		top + "ovs-appctl-bond-show.out": "---- bond0 ----\nbond_mode: active-backup\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		expect.Equal(t, strings.Join(collectedNames(node), " "), "restore_flows/br-int.flows.dump restore_flows/br-ex.flows.dump recorded/bond.show recorded/ovs-vsctl.show")
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
