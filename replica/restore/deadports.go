package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editDeadPorts removes from their bridges the ports that had failed on the live node:
// a dummy datapath would open them, and give them low port numbers that flows use for
// other ports.
func editDeadPorts(ctx context.Context, s *Switch, _ *Recorded, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range s.Bridges {
		var working []*Port
		var refs []ovsdb.Ref
		for _, p := range b.Ports {
			opened, members := openedInterfaces(p)
			if len(opened) == 0 && len(p.Interfaces) > 0 {
				o.Note(report.Restored, "%s: port %q had failed on the live node (%s) and is removed", b.Name, p.Name, p.Interfaces[0].Error)
				continue
			}
			if len(opened) < len(p.Interfaces) {
				o.Note(report.Restored, "%s: members of %q had failed on the live node and are removed", b.Name, p.Name)
				changes = append(changes, ovsdb.Update("Port", p.UUID, ovsdb.Columns{"interfaces": members}))
				p.Interfaces = opened
			}
			working, refs = append(working, p), append(refs, ovsdb.Ref{UUID: p.UUID})
		}
		if len(working) < len(b.Ports) {
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"ports": refs}))
			b.Ports = working
		}
	}
	return s.db.Transact(ctx, changes...)
}

// openedInterfaces returns the interfaces of a port that ovs-vswitchd had opened, and
// references to them. A database that no ovs-vswitchd has used has no ofport at all,
// and nothing had failed there.
func openedInterfaces(p *Port) (opened []*Interface, refs []ovsdb.Ref) {
	for _, i := range p.Interfaces {
		if i.OfPort >= 0 && i.Error == "" {
			opened, refs = append(opened, i), append(refs, ovsdb.Ref{UUID: i.UUID})
		}
	}
	return opened, refs
}
