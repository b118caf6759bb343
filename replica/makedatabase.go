package replica

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// makeDatabase makes an OVS database where none was collected: from the printed
// tables, or else one without rows, which addBridges fills.
func (s *starter) makeDatabase(ctx context.Context) error {
	schema, err := Schema(ctx, s.rt, workdir.OVS)
	if err != nil {
		return fmt.Errorf("no OVS database was collected, and none can be made without vswitch.ovsschema (Debian and Ubuntu have it in openvswitch-switch, Fedora in openvswitch): %w", err)
	}
	target := s.wd.WorkingCopy(workdir.OVS)
	if made, err := s.databaseFromTables(ctx, schema, target); made || err != nil {
		return err
	}
	s.empty = true
	_, err = s.tool(ctx, "ovsdb-tool", "create", target, schema.Path())
	return err
}

// databaseFromTables makes the OVS database from the tables that ovsdb-client or
// ovs-vsctl printed, if they suffice.
func (s *starter) databaseFromTables(ctx context.Context, schema file.Schema, target string) (made bool, err error) {
	lists := map[string]string{}
	for _, table := range workdir.ListedTables() {
		lists[table] = s.wd.Recorded(workdir.RecordedList(table))
	}
	tables, ok, err := file.ReadPrinted(s.wd.Recorded(workdir.RecordedDatabaseDump), lists)
	if !ok || err != nil {
		return false, err
	}
	remarks, err := file.FromTables(ctx, schema, tables, target)
	if err != nil {
		return false, err
	}
	s.report.Remark("no OVS database was collected: it is made from its printed tables")
	for _, r := range remarks {
		s.report.Remark("OVS database, made from its printed tables: " + r)
	}
	return true, nil
}

// dumpedBridges returns the names of the bridges that have dumps.
func (s *starter) dumpedBridges() ([]string, error) {
	entries, err := os.ReadDir(s.wd.RestoreFlows())
	if err != nil {
		return nil, err
	}
	var bridges []string
	if c := s.manifest.Collection(workdir.OVS); c != nil {
		bridges = append(bridges, c.Bridges...)
	}
	for _, e := range entries {
		encoded, isFlows := strings.CutSuffix(e.Name(), ".flows.dump")
		if name, ok := workdir.DecodeName(encoded); isFlows && ok {
			bridges = append(bridges, name)
		}
	}
	if len(bridges) == 0 {
		return nil, fmt.Errorf("%s holds no flow dump", s.wd.RestoreFlows())
	}
	slices.Sort(bridges)
	return slices.Compact(bridges), nil
}

// addBridges adds the dumped bridges to an OVS database without rows, with the
// ports that ovs-ofctl show printed. It sends them to the server, because the rows of a
// node can exceed the length of an argument of ovsdb-tool.
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
		return fmt.Errorf("no OVS database was collected, and none can be made from ovs-ofctl show: %w", err)
	}
	if numbered := names.numbered(); len(numbered) > 0 {
		s.report.Remark("ovs-ofctl show cuts names at 15 characters; ports that then have the same name are numbered: " + strings.Join(numbered, ", "))
	}
	s.report.Remark("no OVS database was collected: bridges " + strings.Join(bridges, ", ") + " were made from their dumps and ovs-ofctl show; port types, tunnels, bonds and VLAN settings are not known")
	return nil
}

// portInserts returns the rows of a bridge's ports: those that ovs-ofctl show
// printed, and the local port.
func (s *starter) portInserts(bridge, id string, names portNames) (ports []ovsdb.Ref, rows []ovsdb.Change) {
	var show openflow.Description
	if f, err := os.Open(s.wd.BridgeRecorded(bridge, workdir.RecordedShow)); err == nil {
		show = openflow.Show(f)
		f.Close()
	}
	list := []openflow.Port{{Number: openflow.PortLocal, Name: bridge}}
	for _, p := range show.Ports {
		if p.Number != openflow.PortLocal && p.Name != bridge {
			p.Name = names.unique(p.Name)
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

// portNames are the names in use, which are unique in a whole database. The value
// is false for a name that unique made.
type portNames map[string]bool

// unique adds the name to n, with a number if it is in use, and returns the result.
func (n portNames) unique(name string) string {
	unique := name
	for i := 2; ; i++ {
		if _, used := n[unique]; !used {
			n[unique] = unique == name
			return unique
		}
		unique = fmt.Sprintf("%s~%d", name, i)
	}
}

// numbered returns the names that got a number.
func (n portNames) numbered() []string {
	var list []string
	for name, original := range n {
		if !original {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
