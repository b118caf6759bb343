package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

// editPortNumbers requests the live node's OpenFlow port numbers.
func editPortNumbers(ctx context.Context, s *Switch, _ *Recorded, o *report.Outcome) error {
	const maxPorts = 0xff00 // OFPP_MAX of OpenFlow 1.0; LOCAL and other reserved ports are above
	var changes []ovsdb.Change
	for b, i := range s.interfaces() {
		switch {
		case i.OfPort > 0 && i.OfPort < maxPorts:
			o.Note(report.Restored, "")
			if i.Requested != i.OfPort {
				changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"ofport_request": i.OfPort}))
			}
		case i.OfPort == 0 && i.Name != b.Name:
			o.Note(report.Unknown, "%s: the OpenFlow port number of %q is not in the database", b.Name, i.Name)
		}
	}
	return s.db.Transact(ctx, changes...)
}
