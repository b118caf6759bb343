package restore

import (
	"context"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editDeadPorts removes from their bridges the ports that had failed on the live node:
// a dummy datapath would open them, and give them low port numbers that flows use for
// other ports.
func editDeadPorts(ctx context.Context, sw *Switch, _ *Recorded, outcome *report.Outcome) error {
	var changes []ovsdb.Change
	for _, bridge := range sw.Bridges {
		var working []*Port
		var refs []ovsdb.Ref
		for _, port := range bridge.Ports {
			opened, members := openedInterfaces(port)
			if len(opened) == 0 && len(port.Interfaces) > 0 {
				outcome.Note(report.Restored, "%s: port %q had failed on the live node (%s) and is removed", bridge.Name, port.Name, port.Interfaces[0].Error)
				continue
			}
			if len(opened) < len(port.Interfaces) {
				outcome.Note(report.Restored, "%s: members of %q had failed on the live node and are removed", bridge.Name, port.Name)
				changes = append(changes, ovsdb.Update("Port", port.UUID, ovsdb.Columns{"interfaces": members}))
				port.Interfaces = opened
			}
			working, refs = append(working, port), append(refs, ovsdb.Ref{UUID: port.UUID})
		}
		if len(working) < len(bridge.Ports) {
			changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"ports": refs}))
			bridge.Ports = working
		}
	}
	return sw.db.Transact(ctx, changes...)
}

// openedInterfaces returns the interfaces of a port that ovs-vswitchd had opened, and
// references to them. A database that no ovs-vswitchd has used has no ofport at all,
// and nothing had failed there.
func openedInterfaces(port *Port) (opened []*Interface, refs []ovsdb.Ref) {
	for _, iface := range port.Interfaces {
		if iface.OfPort >= 0 && iface.Error == "" {
			opened, refs = append(opened, iface), append(refs, ovsdb.Ref{UUID: iface.UUID})
		}
	}
	return opened, refs
}
