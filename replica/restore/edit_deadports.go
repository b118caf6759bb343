package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editDeadPorts takes ports that had failed on the live node out of their
// bridges: a dummy would open them, and give them low port numbers that flows
// take for other ports.
func editDeadPorts(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		var kept []*Port
		for _, p := range b.Ports {
			alive := liveInterfaces(p)
			if len(alive) == 0 {
				o.Note(report.Restored, "%s: port %q had failed on the live node (%s): taken out", b.Name, p.Name, p.Interfaces[0].Error)
				continue
			}
			if len(alive) < len(p.Interfaces) {
				o.Note(report.Restored, "%s: members of %q that had failed on the live node: taken out", b.Name, p.Name)
				changes = append(changes, ovsdb.Update("Port", p.UUID, ovsdb.Columns{"interfaces": interfaceRefs(alive)}))
				p.Interfaces = alive
			}
			kept = append(kept, p)
		}
		if len(kept) < len(b.Ports) {
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"ports": portRefs(kept)}))
			b.Ports = kept
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// liveInterfaces are those of a port that had come up. A database that was
// never served by an ovs-vswitchd has no ofport at all: nothing had failed there.
func liveInterfaces(p *Port) []*Interface {
	var alive []*Interface
	for _, i := range p.Interfaces {
		if i.OfPort >= 0 && i.Error == "" {
			alive = append(alive, i)
		}
	}
	if len(p.Interfaces) == 0 {
		return []*Interface{{}} // a port without interfaces is left to ovs-vswitchd
	}
	return alive
}

func interfaceRefs(list []*Interface) []ovsdb.Ref {
	refs := make([]ovsdb.Ref, 0, len(list))
	for _, i := range list {
		refs = append(refs, ovsdb.Ref{UUID: i.UUID})
	}
	return refs
}

func portRefs(list []*Port) []ovsdb.Ref {
	refs := make([]ovsdb.Ref, 0, len(list))
	for _, p := range list {
		refs = append(refs, ovsdb.Ref{UUID: p.UUID})
	}
	return refs
}
