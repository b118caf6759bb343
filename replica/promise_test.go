package replica

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/workdir"
)

// TestStartDoesWhatInspectPromises collects texts with one output each. Where inspect says that a replica can answer,
// it starts; where not, the error of start says which outputs to add.
func TestStartDoesWhatInspectPromises(t *testing.T) {
	needTools(t)
	const row = "_uuid               : 5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0001\nname                : br-int\n"
	for name, c := range map[string]struct {
		text   string
		starts bool
	}{
		"ovs-vsctl show": {"$ ovs-vsctl show\n1b0d5d3e-3a41-44d2-9f6e-1f4b6b6f0a10\n    Bridge br-int\n        Port qvo1\n            tag: 3\n            Interface qvo1\n", true},
		"flows":          {"$ ovs-ofctl dump-flows br-int\nNXST_FLOW reply (xid=0x4):\n cookie=0x0, duration=1.0s, table=0, n_packets=3, n_bytes=0, idle_age=1, priority=0 actions=NORMAL\n", true},
		"a table of Interface": {"$ ovs-vsctl list Interface\n" + row + "ofport              : 4\nerror               : []\n",
			false},
		"a table of Bridge": {"$ ovs-vsctl list bridge\n" + row +
			"ports               : [5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0002]\n", false},
		"dpctl/show": {"$ ovs-appctl dpctl/show\nsystem@ovs-system:\n  lookups: hit:100 missed:20 lost:3\n  flows: 7\n  port 0: ovs-system (internal)\n", false},
		"bond/show":  {"$ ovs-appctl bond/show\n---- bond0 ----\nbond_mode: balance-slb\nlacp_status: off\n\nmember p1: enabled\n  may_enable: true\n\n", false},
		"fdb/show":   {"$ ovs-appctl fdb/show br-int\n port  VLAN  MAC                Age\n    2     7  02:00:00:00:00:61    1\n", false},
		"ovs-ofctl show": {"$ ovs-ofctl show br0\nOFPT_FEATURES_REPLY (xid=0x2): dpid:0000aabbccddeeff\nn_tables:254, n_buffers:0\n 1(p1): addr:02:00:00:00:00:01\n     config:     0\n     state:      0\n" +
			"OFPT_GET_CONFIG_REPLY (xid=0x4): frags=normal miss_send_len=0\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			path, dir := filepath.Join(t.TempDir(), "ticket.md"), t.TempDir()
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			found, plans, err := collect.Inspect(t.Context(), collect.Files{Paths: []string{path}}, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if seen := collect.NewInspection(found, plans); len(seen.Nodes) != 1 || len(seen.Nodes[0].Can) > 0 != c.starts {
				t.Errorf("inspect says: %+v", seen.Nodes)
			}
			wd, err := workdir.Lock(filepath.Join(dir, "case"))
			if err != nil {
				t.Fatal(err)
			}
			defer wd.Unlock()
			if _, _, err := collect.Collect(t.Context(), wd, collect.Files{Paths: []string{path}},
				collect.Options{}); err != nil {
				t.Fatal(err)
			}
			if c.starts {
				startCollected(t, wd, Options{})
				return
			}
			_, err = Start(t.Context(), wd, process.New(process.Options{}), Options{})
			if !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(),
				"add the outputs of ovs-vsctl show and of ovs-ofctl dump-flows BRIDGE") {
				t.Errorf("start says: %v", err)
			}
		})
	}
}
