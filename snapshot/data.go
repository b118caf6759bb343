package snapshot

import (
	"os"
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// HoldsOnlyHost reports whether a workdir has logs and outputs of a machine, and nothing that a replica
// can be made from.
func HoldsOnlyHost(wd *workdir.Dir) bool {
	manifest, err := wd.Manifest()
	return err == nil && manifest.Collection(workdir.Host) != nil && len(ServedKinds(wd)) == 0 && !hasPrinted(wd)
}

// hasPrinted reports whether printed tables of an OVN database were collected, from which a start makes
// the database.
func hasPrinted(wd *workdir.Dir) bool {
	return slices.ContainsFunc(workdir.Kinds(), func(kind workdir.Kind) bool {
		_, err := os.Stat(wd.PrintedDatabase(kind))
		return err == nil
	})
}

// ServedKinds returns the kinds of the databases that a replica of the workdir serves.
// The OVS database is made if there are only dumps, and also without these where no OVN database tells of more.
func ServedKinds(wd *workdir.Dir) []workdir.Kind {
	var kinds []workdir.Kind
	for _, kind := range workdir.Kinds() {
		if _, err := os.Stat(wd.Database(kind)); err == nil || kind == workdir.OVS && hasDumps(wd) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 && !hasPrinted(wd) && isDescribed(wd) {
		kinds = append(kinds, workdir.OVS)
	}
	return kinds
}

// isDescribed reports whether ovs-vsctl show or the printed tables of the OVS database were collected.
func isDescribed(wd *workdir.Dir) bool {
	shown, err := ovsdb.ShownIn(wd.Recorded(workdir.RecordedSwitchShow))
	if err == nil && shown != nil {
		return true
	}
	_, ok, err := PrintedSwitch(wd)
	return ok && err == nil
}

// HasSwitch reports whether a replica of the workdir has a switch: its node's Open vSwitch was
// collected, and not OVN databases alone.
func HasSwitch(wd *workdir.Dir) bool { return slices.Contains(ServedKinds(wd), workdir.OVS) }

func hasDumps(wd *workdir.Dir) bool {
	bridges, _ := wd.DumpedBridges()
	return len(bridges) > 0
}

// PrintedSwitch returns the printed tables of the OVS database; ok is false if they are not all there.
func PrintedSwitch(wd *workdir.Dir) (tables map[string][]ovsdb.Record, ok bool, err error) {
	lists := map[string]string{}
	for _, table := range workdir.ListedTables() {
		lists[table] = wd.Recorded(workdir.RecordedList(table))
	}
	return file.ReadPrinted(wd.Recorded(workdir.RecordedDatabaseDump), lists)
}
