package host

import (
	"context"
	"errors"
	"fmt"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// OpenAbsent returns a node whose replica can't be asked, with what was collected of it: its
// tunnels, networks and interfaces lead packets to it. Ask always returns the cause. Ports
// have no datapath numbers: no packet can be followed on the node by its ovs-vswitchd.
func OpenAbsent(ctx context.Context, name string, wd *workdir.Dir, cause *UnavailableError) (*Host, error) {
	r := newReader(name, wd)
	r.lost.Store(cause)
	r.noticed.Store(cause)
	if err := errors.Join(r.readCollected(ctx), r.readRecorded()); err != nil {
		r.Close()
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return r.Host, nil
}

// readCollected reads the ports from the OVS database as collected.
func (r *reader) readCollected(ctx context.Context) error {
	path := r.dir.SwitchDatabase()
	if path == "" {
		return errors.New("no OVS database was collected, and start has not made one of what was printed")
	}
	db, err := r.dir.Index(ctx, path, "Open_vSwitch", "Bridge", "Port", "Interface")
	if err != nil {
		return err
	}
	defer db.Close()
	rows := func(table string, columns ...string) ([]ovsdb.Row, error) {
		var list []ovsdb.Row
		for row, err := range db.Rows(table, columns...) {
			if err != nil {
				return nil, err
			}
			list = append(list, row)
		}
		return list, nil
	}
	bridges, err := node.Bridges(db)
	if err != nil {
		return err
	}
	for i := range node.Interfaces(bridges...) {
		r.ports[i.Name] = &Port{Bridge: i.Port.Bridge.Name, Name: i.Name, Number: i.Number} // 0 if it was not recorded
	}
	if err := r.addRows(rows); err != nil {
		return err
	}
	r.sortPorts()
	r.readOptions()
	return nil
}
