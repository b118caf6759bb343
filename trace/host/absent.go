package host

import (
	"context"
	"fmt"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// OpenAbsent returns a node whose replica can't be asked, with what was collected of it: its
// tunnels, networks and interfaces lead packets to it. Ask always returns the cause. Ports
// have no datapath numbers, and connections and routes are left out, since no packet can be
// followed on the node.
func OpenAbsent(ctx context.Context, name string, wd *workdir.Dir, cause *UnavailableError) (*Host, error) {
	h := newHost(name, wd)
	h.lost.Store(cause)
	h.noticed.Store(cause)
	if err := h.readCollected(ctx, wd); err != nil {
		h.Close()
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return h, nil
}

// readCollected reads the ports from the OVS database as collected.
func (h *Host) readCollected(ctx context.Context, wd *workdir.Dir) error {
	db, err := file.OpenIndex(ctx, wd.Database(workdir.OVS), "Open_vSwitch", "Bridge", "Port", "Interface")
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
	if err := h.addPorts(rows); err != nil {
		return err
	}
	if err := h.addRows(rows); err != nil {
		return err
	}
	h.sortPorts()
	h.readOptions(wd)
	return nil
}

// addPorts adds the interfaces of each bridge. Those whose OpenFlow number was not recorded
// have the number 0.
func (h *Host) addPorts(rows selectRows) error {
	bridges, err := rows("Bridge", "name", "ports")
	if err != nil {
		return err
	}
	ports, err := rows("Port", "interfaces")
	if err != nil {
		return err
	}
	interfaces, err := rows("Interface", "name", "ofport")
	if err != nil {
		return err
	}
	bridgeOf := map[string]string{} // by the UUIDs of ports, and then of interfaces
	for _, b := range bridges {
		for _, id := range b.UUIDs("ports") {
			bridgeOf[id] = b.String("name")
		}
	}
	for _, p := range ports {
		for _, id := range p.UUIDs("interfaces") {
			bridgeOf[id] = bridgeOf[p.UUID]
		}
	}
	for _, i := range interfaces {
		number, _ := i.Int("ofport")
		name := i.String("name")
		h.ports[name] = &Port{Bridge: bridgeOf[i.UUID], Name: name, Number: number}
	}
	return nil
}
