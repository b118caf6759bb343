package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
)

// editMonitors points sFlow, IPFIX and NetFlow at nothing: what they do to
// traces stays, what they send goes nowhere.
func editMonitors(ctx context.Context, n *Node, o *outcome) error {
	const nowhere = "127.0.0.1:9" // the discard port of the replica's own loopback
	var changes []ovsdb.Change
	for _, m := range []struct{ table, column string }{{"sFlow", "targets"}, {"IPFIX", "targets"}, {"NetFlow", "targets"}} {
		rows, err := n.DB.Select(ctx, m.table, m.column)
		if err != nil {
			return err
		}
		for _, r := range rows {
			o.note(Restored, "")
			columns := ovsdb.Columns{m.column: []string{nowhere}}
			if m.table == "IPFIX" && len(r.Strings(m.column)) == 0 {
				columns = ovsdb.Columns{}
			}
			if len(columns) > 0 {
				changes = append(changes, ovsdb.Update(m.table, r.UUID, columns))
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}
