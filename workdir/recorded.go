package workdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of files in recorded/, or in recorded/bridges/BRIDGE/, that are used outside
// the table of workdir/recording as well. Each file holds the output of one command on
// the live node, and has the name of the command, with dots for slashes.
const (
	RecordedBFD           = "bfd.show"
	RecordedBond          = "bond.show"
	RecordedCFM           = "cfm.show"
	RecordedConntrack     = "dpctl.dump-conntrack"
	RecordedDatabaseDump  = "ovsdb-client.dump"
	RecordedDatapathFlows = "dpctl.dump-flows"
	RecordedDatapathShow  = "dpctl.show"
	RecordedDpifShow      = "dpif.show"
	RecordedKernelRoutes  = "ip.route"
	RecordedLACP          = "lacp.show"
	RecordedLinks         = "ip.address"
	RecordedListBridge    = "list-bridge"
	RecordedListInterface = "list-interface"
	RecordedListOVS       = "list-open_vswitch"
	RecordedListPort      = "list-port"
	RecordedNeighbours    = "tnl.arp.show"
	RecordedRoutes        = "ovs.route.show"
	RecordedSwitchShow    = "ovs-vsctl.show"
	RecordedTraces        = "ofproto.trace"
	RecordedLogicalTraces = "ovn-trace"
	RecordedTunnelPorts   = "tnl.ports.show"
	RecordedZones         = "ct-zone-list"

	RecordedBridgeFlows = "bridge.dump-flows"
	RecordedFDB         = "fdb.show"
	RecordedFeatures    = "dpif.show-dp-features"
	RecordedMDB         = "mdb.show"
	RecordedMeterStats  = "meter-stats"
	RecordedPorts       = "dump-ports-desc"
	RecordedPortStats   = "dump-ports"
	RecordedTables      = "dump-tables"
	RecordedRSTP        = "rstp.show"
	RecordedShow        = "show"
	RecordedShow10      = "show.OpenFlow10"
	RecordedSTP         = "stp.show"
)

// Names of outputs that tell how ovs-vswitchd and its datapath are doing, in recorded/.
const (
	RecordedCoverage       = "coverage.show"
	RecordedUpcalls        = "upcall.show"
	RecordedMemory         = "memory.show"
	RecordedConntrackStats = "dpctl.ct-stats-show"
	RecordedConntrackLimit = "dpctl.ct-get-maxconns"
	RecordedConntrackCount = "dpctl.ct-get-nconns"
	RecordedOffloadStats   = "dpctl.offload-stats-show"
	RecordedPMDStats       = "dpif-netdev.pmd-stats-show"
	RecordedPMDQueues      = "dpif-netdev.pmd-rxq-show"
	RecordedPMDPerformance = "dpif-netdev.pmd-perf-show"
	RecordedOtherConfig    = "get.other_config"
	RecordedExternalIDs    = "get.external_ids"
	RecordedFDBStats       = "fdb.stats-show" // of a bridge
)

// SaveScript is the file in restore_flows that holds the script of ovs-save.
const SaveScript = "do_restore.sh"

// ListedTables lists the tables of the OVS database that are recorded as
// ovs-vsctl list prints them, by their names in the schema.
func ListedTables() []string {
	return []string{"Open_vSwitch", "Bridge", "Port", "Interface", "Datapath", "Controller", "Manager", "Mirror", "QoS", "Queue",
		"NetFlow", "sFlow", "IPFIX", "Flow_Sample_Collector_Set"}
}

// RecordedList returns the name of the recorded output of ovs-vsctl list for a table.
func RecordedList(table string) string { return "list-" + strings.ToLower(table) }

// BridgeRecorded returns the path of a recorded output of one bridge.
func (d *Data) BridgeRecorded(bridge, name string) string {
	return d.Recorded(filepath.Join("bridges", EncodeName(bridge), name))
}

// Dump is a kind of bridge state that ovs-ofctl both dumps and restores.
type Dump string

// The kinds of dumps. Each is part of a file's name in restore_flows.
const (
	Flows  Dump = "flows"
	Groups Dump = "groups"
	Meters Dump = "meters"
	TLV    Dump = "tlv"
)

// DumpFile returns the path of the dump of a bridge that is restored.
func (d *Data) DumpFile(bridge string, dump Dump) string {
	return filepath.Join(d.RestoreFlows(), EncodeName(bridge)+"."+string(dump)+".dump")
}

// DumpedBridges returns the names of the bridges with a dump of one of these kinds, or of any
// kind if none is named, in their order. A workdir without dumps has none.
func (d *Data) DumpedBridges(kinds ...Dump) ([]string, error) {
	if len(kinds) == 0 {
		kinds = []Dump{Flows, Groups, Meters, TLV}
	}
	entries, err := os.ReadDir(d.RestoreFlows())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var bridges []string
	for _, entry := range entries {
		for _, kind := range kinds {
			encoded, isDump := strings.CutSuffix(entry.Name(), "."+string(kind)+".dump")
			if name, ok := DecodeName(encoded); isDump && ok {
				bridges = append(bridges, name)
			}
		}
	}
	slices.Sort(bridges)
	return slices.Compact(bridges), err
}

// DumpBytes returns the size of all dumps together.
func (d *Data) DumpBytes() (size int64) {
	entries, _ := os.ReadDir(d.RestoreFlows())
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}

// OtherDump returns the path of a bridge's dump in another OpenFlow version,
// which supplies what the restored dump cannot express.
func (d *Data) OtherDump(bridge string, dump Dump, openflow string) string {
	return d.BridgeRecorded(bridge, string(dump)+"."+openflow)
}

// RecordedBridges returns the names of the bridges with recorded outputs, in their order.
func (d *Data) RecordedBridges() ([]string, error) {
	entries, err := os.ReadDir(d.Recorded("bridges"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var bridges []string
	for _, entry := range entries {
		if name, ok := DecodeName(entry.Name()); ok && entry.IsDir() {
			bridges = append(bridges, name)
		}
	}
	slices.Sort(bridges)
	return bridges, err
}
