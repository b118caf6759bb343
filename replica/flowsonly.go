package replica

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// makeDatabase makes an OVS database where none was collected: from what was
// printed of its tables, or else a bare one, for the bridges that have dumps,
// with the ports that ovs-ofctl show told of.
func (s *starter) makeDatabase(ctx context.Context) error {
	path, err := s.schema(ctx, workdir.OVS)
	if err != nil {
		return fmt.Errorf("no OVS database was collected, and none can be made without vswitch.ovsschema (Debian and Ubuntu have it in openvswitch-switch, Fedora in openvswitch): %w", err)
	}
	target := s.wd.WorkingCopy(workdir.OVS)
	if done, err := s.databaseFromTables(ctx, path, target); done || err != nil {
		return err
	}
	s.bare = true
	_, err = s.tool(ctx, "ovsdb-tool", "create", target, path)
	return err
}

// databaseFromTables makes the OVS database of what ovsdb-client or ovs-vsctl
// printed, where that is enough.
func (s *starter) databaseFromTables(ctx context.Context, schema, target string) (done bool, err error) {
	lists := map[string]string{}
	for _, table := range workdir.ListedTables() {
		lists[table] = s.wd.Recorded(workdir.RecordedList(table))
	}
	tables, ok, err := file.Printed(s.wd.Recorded(workdir.RecordedDatabaseDump), lists)
	if !ok || err != nil {
		return false, err
	}
	remarks, err := file.FromTables(ctx, schema, tables, target)
	if err != nil {
		return false, err
	}
	s.remark("no OVS database was collected: it is made from what was printed of its tables")
	for _, r := range remarks {
		s.remark("OVS database, made from its printed tables: " + r)
	}
	return true, nil
}

// dumpedBridges are the bridges that have dumps.
func (s *starter) dumpedBridges() ([]string, error) {
	entries, err := os.ReadDir(s.wd.RestoreFlows())
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	if c := s.manifest.Collection(workdir.OVS); c != nil {
		for _, name := range c.Bridges {
			found[name] = true
		}
	}
	for _, e := range entries {
		encoded, isFlows := strings.CutSuffix(e.Name(), ".flows.dump")
		if name, ok := workdir.DecodeName(encoded); isFlows && ok {
			found[name] = true
		}
	}
	var bridges []string
	for name := range found {
		bridges = append(bridges, name)
	}
	sort.Strings(bridges)
	if len(bridges) == 0 {
		return nil, fmt.Errorf("%s holds no flow dump", s.wd.RestoreFlows())
	}
	return bridges, nil
}

// addBridges fills a bare OVS database through its server: what a node's ports
// come to is longer than an argument of ovsdb-tool may be.
func (s *starter) addBridges(ctx context.Context, db *ovsdb.Client) error {
	bridges, err := s.dumpedBridges()
	if err != nil {
		return err
	}
	names := portNames{}
	for _, name := range bridges {
		names[name] = true
	}
	var rows []ovsdb.Change
	var refs []ovsdb.Ref
	for i, name := range bridges {
		id := fmt.Sprintf("bridge%d", i)
		refs = append(refs, ovsdb.Ref{Name: id})
		ports, more := s.portInserts(name, id, names)
		rows = append(append(rows, more...), ovsdb.Insert("Bridge", id, ovsdb.Columns{"name": name, "ports": ports}))
	}
	rows = append(rows, ovsdb.Insert("Open_vSwitch", "", ovsdb.Columns{"bridges": refs}))
	if err := db.Transact(ctx, rows...); err != nil {
		return fmt.Errorf("the OVS database that no one collected can't be made from ovs-ofctl show: %w", err)
	}
	if made := names.made(); len(made) > 0 {
		s.remark("ovs-ofctl show cuts names at 15 characters; ports that then have the same are numbered: " + strings.Join(made, ", "))
	}
	s.remark("no OVS database was collected: bridges " + strings.Join(bridges, ", ") + " were made from their dumps and ovs-ofctl show; port types, tunnels, bonds and VLAN settings are not known")
	return nil
}

// portInserts adds a bridge's ports: those that ovs-ofctl show told of, and the local one.
func (s *starter) portInserts(bridge, id string, names portNames) (ports []ovsdb.Ref, rows []ovsdb.Change) {
	var show openflow.Description
	if f, err := os.Open(s.wd.BridgeRecorded(bridge, workdir.RecordedShow)); err == nil {
		show = openflow.Show(f)
		f.Close()
	}
	list := []openflow.Port{{Number: openflow.PortLocal, Name: bridge}}
	for _, p := range show.Ports {
		if p.Number != openflow.PortLocal && p.Name != bridge {
			p.Name = names.give(p.Name)
			list = append(list, p)
		}
	}
	for i, p := range list {
		columns := ovsdb.Columns{"name": p.Name, "ofport": p.Number}
		if p.Number == openflow.PortLocal {
			columns["type"] = "internal"
		}
		interfaceID, portID := fmt.Sprintf("%si%d", id, i), fmt.Sprintf("%sp%d", id, i)
		rows = append(rows, ovsdb.Insert("Interface", interfaceID, columns),
			ovsdb.Insert("Port", portID, ovsdb.Columns{"name": p.Name, "interfaces": ovsdb.Ref{Name: interfaceID}}))
		ports = append(ports, ovsdb.Ref{Name: portID})
	}
	return ports, rows
}

// portNames are those given so far, true for what nobody had before: names are
// unique in a whole database.
type portNames map[string]bool

// give returns the name, or another one where it is given already.
func (n portNames) give(name string) string {
	given := name
	for i := 2; ; i++ {
		if _, taken := n[given]; !taken {
			n[given] = given == name
			return given
		}
		given = fmt.Sprintf("%s~%d", name, i)
	}
}

// made lists the names that give made up.
func (n portNames) made() []string {
	var list []string
	for name, own := range n {
		if !own {
			list = append(list, name)
		}
	}
	sort.Strings(list)
	return list
}
