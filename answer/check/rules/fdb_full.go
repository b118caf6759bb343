package rules

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// usualTableSize is the size of a bridge's table of MAC addresses if no setting gives another one
// (ovs-vswitchd.conf.db(5), Bridge, other_config:mac-table-size).
const usualTableSize = 8192

// fdbFull finds the bridges whose table of learned MAC addresses is full.
func fdbFull() rule.Rule {
	return rule.Rule{
		Name: "fdb-full", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Either(rule.BridgeOutput(workdir.RecordedFDB), rule.BridgeOutput(workdir.RecordedFDBStats))},
		Follows: "the bridge forgets addresses that are in use, floods packets to them, and ovs-vswitchd handles every change: it may use a whole processor",
		Sources: []string{"ovs-vswitchd.conf.db(5), Bridge, other_config:mac-table-size", "https://developers.redhat.com/blog/2018/09/19/troubleshooting-fdb-table-wrapping-in-open-vswitch"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			sizes := map[string]int{}
			err := n.OVS.Each("Bridge", func(row ovsdb.Row) {
				sizes[row.String("name")] = usualTableSize
				if size, err := strconv.Atoi(row.Map("other_config")["mac-table-size"]); err == nil {
					sizes[row.String("name")] = size
				}
			}, "name", "other_config")
			if err != nil {
				return err
			}
			names, err := n.RecordedBridges()
			if err != nil {
				return err
			}
			for _, name := range names {
				count, size, err := fdbOf(n, name, sizes[name])
				if err != nil {
					return err
				}
				if size > 0 && count >= size {
					found(rule.Finding{What: fmt.Sprintf("the table of MAC addresses of bridge %s is full: %d of %d", name, count, size),
						Evidence: []string{"ovs-appctl fdb/stats-show " + name + ", fdb/show " + name},
						Next:     []rule.Next{rule.OnTheNode("ovs-appctl fdb/stats-show", name), rule.OnTheNode("ovs-vsctl set bridge", name, "other_config:mac-table-size=50000")}})
				}
			}
			return nil
		},
	}
}

// fdbOf returns the number of the MAC addresses that a bridge has learned, and how many its table holds.
func fdbOf(n *rule.Node, bridge string, size int) (count, limit int, err error) {
	stats, err := n.BridgeOutput(bridge, workdir.RecordedFDBStats)
	if err != nil {
		return 0, 0, err
	}
	if count, limit, ok := appctl.FDBSize(stats); ok {
		return count, limit, nil
	}
	text, err := n.BridgeOutput(bridge, workdir.RecordedFDB)
	learned := len(slices.Collect(appctl.LearnedMACs(text)))
	return learned, size, err
}
