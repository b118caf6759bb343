package restore

import (
	"context"
	"strconv"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// keptConfig are the settings of Open_vSwitch:other_config that steer what
// flows do. All others are about the host: threads, memory, DPDK, sockets.
func keptConfig(key string) bool {
	switch key {
	case "vlan-limit", "max-idle", "flow-limit", "bundle-idle-timeout":
		return true
	}
	return false
}

// editHostSettings drops what is about the live host: DPDK, threads, waiting
// for a restore that is ours, keys of TLS.
func editHostSettings(ctx context.Context, n *Node, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "other_config", "ssl")
	if err != nil {
		return err
	}
	for _, r := range rows {
		// One thread of each kind answers as well as the live host's many.
		config := map[string]string{"n-handler-threads": strconv.Itoa(1), "n-revalidator-threads": strconv.Itoa(1)}
		for k, v := range r.Map("other_config") {
			if keptConfig(k) {
				config[k] = v
			}
		}
		columns := ovsdb.Columns{"other_config": config}
		if n.DB.HasColumn("Open_vSwitch", "ssl") {
			columns["ssl"] = nil // it names files of this host
		}
		if err := n.DB.Transact(ctx, ovsdb.Update("Open_vSwitch", r.UUID, columns)); err != nil {
			return err
		}
		o.Note(report.Restored, "")
	}
	return nil
}
