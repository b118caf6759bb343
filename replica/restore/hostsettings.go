package restore

import (
	"context"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editHostSettings removes the settings that concern the live host: DPDK,
// threads, waiting for flow-restore, TLS keys.
func editHostSettings(ctx context.Context, sw *Switch, _ *Recorded, outcome *report.Outcome) error {
	rows, err := sw.db.Select(ctx, "Open_vSwitch", "other_config", "ssl")
	if err != nil {
		return err
	}
	for _, row := range rows {
		// One thread of each kind gives the same answers as the many threads of the
		// live host.
		config := map[string]string{"n-handler-threads": "1", "n-revalidator-threads": "1"}
		for key, value := range row.Map("other_config") {
			switch key {
			case "vlan-limit", "max-idle", "flow-limit", "bundle-idle-timeout": // they change what flows do
				config[key] = value
			}
		}
		columns := ovsdb.Columns{"other_config": config}
		if sw.db.HasColumn("Open_vSwitch", "ssl") {
			columns["ssl"] = nil // it names files of the live host
		}
		if err := sw.db.Transact(ctx, ovsdb.Update("Open_vSwitch", row.UUID, columns)); err != nil {
			return err
		}
		outcome.Note(report.Restored, "")
	}
	return nil
}
