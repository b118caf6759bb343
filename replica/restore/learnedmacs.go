package restore

import (
	"context"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreFDB adds the MAC addresses that the live bridges had learned, as static
// entries, which don't age.
func restoreFDB(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	for _, b := range s.Bridges {
		text, err := rec.bridgeText(b, workdir.RecordedFDB)
		if err != nil {
			return err
		}
		if text == "" {
			o.Note(report.Unknown, "%s: no fdb/show was collected: NORMAL floods", b.Name)
		}
		for e := range appctl.LearnedMACs(text) {
			name, ok := b.interfaceAt(e.Port)
			if !ok {
				o.Note(report.Unknown, "%s: MAC %s was learned on port %s, which is not in the database", b.Name, e.MAC, e.Port)
				continue
			}
			_, err := s.appctl(ctx, "fdb/add", b.Name, name, e.VLAN, e.MAC)
			if err := noteResult(ctx, o, err, "%s: MAC %s on %q", b.Name, e.MAC, name); err != nil {
				return err
			}
		}
	}
	return nil
}
