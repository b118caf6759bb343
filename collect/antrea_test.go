package collect

import (
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// antreaBundle returns the files that an agent of Antrea writes: what ip prints, and what ovs-ofctl
// prints in OpenFlow 1.5, without the first line.
func antreaBundle(node, bridge string) map[string]string {
	return map[string]string{
		"agentinfo": "typemeta:\n  kind: \"\"\npodref:\n  kind: Pod\n  name: antrea-agent-x\nnoderef:\n  kind: Node\n  name: " + node +
			"\novsinfo:\n  version: 3.1.1\n  bridgename: " + bridge + "\n  flowtable: {}\n",
		"flows":    "cookie=0x1010000000000, duration=8.1s, table=0, n_packets=3, n_bytes=180, idle_age=8, priority=200,in_port=2 actions=group:1\ncookie=0x1010000000000, duration=8.1s, table=0, n_packets=0, n_bytes=0, idle_age=8, priority=0 actions=drop",
		"groups":   "group_id=1,type=select,bucket=bucket_id:0,weight:100,actions=output:1",
		"ovsports": " 1(antrea-tun0): addr:a6:56:64:44:6b:01\n     config:     0\n     state:      LIVE\n     speed: 0 Mbps now, 0 Mbps max\n 2(antrea-gw0): addr:a6:56:64:44:6b:02\n     config:     0\n     state:      LIVE\n     speed: 0 Mbps now, 0 Mbps max",
		"address":  "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n    inet 127.0.0.1/8 scope host lo\n",
		"route":    "default via 172.18.0.1 dev eth0 \n",
	}
}

// TestAntreaBundleBecomesANodeForEachAgent checks that flows, groups and ports of the archives in
// the output of antctl supportbundle belong to the bridge of the agent's node.
func TestAntreaBundleBecomesANodeForEachAgent(t *testing.T) {
	bundle := packed(t, map[string]string{
		"support-bundles_20261126T100000Z/agent_w1.tar.gz": packed(t, antreaBundle("w1", "br-int")),
		"support-bundles_20261126T100000Z/agent_w2.tar.gz": packed(t, antreaBundle("w2", "br-antrea")),
	})
	path := filepath.Join(folder(t, map[string]string{"bundle.tar.gz": bundle}), "bundle.tar.gz")
	nodes, found, dir, err := takeFiles(t, Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, found.Inputs[0].Kinds[0], "2 support bundles of an Antrea agent")
	for name, bridge := range map[string]string{"w1": "br-int", "w2": "br-antrea"} {
		expect.Equal(t, len(nodes[name].Collections), 1, name)
		if len(nodes[name].Collections) == 0 {
			continue
		}
		expect.Equal(t, strings.Join(nodes[name].Collections[0].Bridges, " "), bridge, name)
		var kept []string
		for _, file := range nodes[name].Collections[0].Files {
			kept = append(kept, file.Path)
			for _, remark := range file.Remarks {
				t.Errorf("%s: %s", file.Path, remark)
			}
		}
		for _, want := range []string{"flows", "groups", "show", "ip.address", "ip.route"} {
			if !strings.Contains(strings.Join(kept, "\n"), want) {
				t.Errorf("%s lacks %s in %s: %v", name, want, dir, kept)
			}
		}
	}
}

// TestAntreaBundleWithoutUsefulAgentInfo checks that a damaged agentinfo leaves the name of the
// archive and Antrea's own bridge, and that a file which only has such a name is no data.
func TestAntreaBundleWithoutUsefulAgentInfo(t *testing.T) {
	files := antreaBundle("w1", "br-int")
	files["agentinfo"] = "nodeRef: [\x1b[31m\n"
	dir := folder(t, map[string]string{"agent_w7.tar.gz": packed(t, files), "other/address": " mtu ",
		"other/ovsports": "): addr:"})
	nodes, found, _, err := takeFiles(t, Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, len(nodes), 1)
	if len(found.Lost) != 1 || !strings.Contains(found.Lost[0], "agentinfo can't be read") {
		t.Errorf("lost: %q", found.Lost)
	}
	for _, node := range nodes {
		expect.Equal(t, strings.Join(node.Collections[0].Bridges, " "), "br-int")
	}
	_, _, _, err = takeFiles(t, Options{}, folder(t, map[string]string{"other/address": " mtu "}))
	if err == nil {
		t.Error("a file named address was taken without a bundle")
	}
}
