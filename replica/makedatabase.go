package replica

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// makeDatabase makes an OVS database where none was collected: from the printed tables, or
// else from ovs-vsctl show and the dumps of the bridges. It also makes the copy that is served
// as recorded, which is the node's database for all questions.
func (s *starter) makeDatabase(ctx context.Context) error {
	schema, err := Schema(ctx, s.rt, workdir.OVS)
	if err != nil {
		return fmt.Errorf("no OVS database was collected, and none can be made without vswitch.ovsschema (Debian and Ubuntu have it in openvswitch-switch, Fedora in openvswitch): %w", err)
	}
	tables, err := s.describedTables(ctx)
	if err != nil {
		return err
	}
	if err := makeFolders(filepath.Dir(s.wd.RecordedCopy())); err != nil {
		return err
	}
	for _, path := range []string{s.wd.WorkingCopy(workdir.OVS), s.wd.RecordedCopy()} {
		remarks, err := file.FromTables(ctx, schema, tables, path)
		if err != nil {
			return err
		}
		for _, remark := range remarks {
			s.report.Remark("OVS database, made from its description: " + remark)
		}
	}
	s.made = true
	return nil
}

// describedTables returns the rows of an OVS database that was not collected.
func (s *starter) describedTables(ctx context.Context) (map[string][]ovsdb.Record, error) {
	tables, ok, err := snapshot.PrintedSwitch(s.wd)
	if err != nil {
		return nil, err
	}
	if ok {
		s.report.Remark("no OVS database was collected: it is made from its printed tables")
		return tables, nil
	}
	outline, err := s.outline(ctx)
	if err != nil {
		return nil, err
	}
	return outline.Records(), nil
}

// dumpedBridges returns the names of the bridges that have dumps.
func dumpedBridges(wd *workdir.Dir, manifest *workdir.Manifest) ([]string, error) {
	bridges, err := wd.DumpedBridges(workdir.Flows)
	if err != nil {
		return nil, err
	}
	if collection := manifest.Collection(workdir.OVS); collection != nil {
		bridges = append(bridges, collection.Bridges...)
	}
	if len(bridges) == 0 {
		return nil, fmt.Errorf("%s holds no flow dump", wd.RestoreFlows())
	}
	slices.Sort(bridges)
	return slices.Compact(bridges), nil
}

// portNames are the names in use, which are unique in a whole database. The value
// is false for a name that unique made.
type portNames map[string]bool

// unique adds the name to the names, with a number if it is in use, and returns the result.
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
