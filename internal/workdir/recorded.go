package workdir

import (
	"path/filepath"
	"strings"
)

// Names of what stands in recorded/, each the output of one command on the live
// node, as it was. Those of a bridge stand in recorded/bridges/<bridge>/.
const (
	RecordedBFD           = "bfd.show"
	RecordedBond          = "bond.show"
	RecordedCFM           = "cfm.show"
	RecordedConntrack     = "dpctl.dump-conntrack"
	RecordedDatabaseDump  = "ovsdb-client.dump"
	RecordedDatapathFlows = "dpctl.dump-flows"
	RecordedDatapathShow  = "dpctl.show"
	RecordedDpifShow      = "dpif.show"
	RecordedLACP          = "lacp.show"
	RecordedListBridge    = "list-bridge"
	RecordedListDatapath  = "list-datapath"
	RecordedListInterface = "list-interface"
	RecordedListOVS       = "list-open_vswitch"
	RecordedListPort      = "list-port"
	RecordedNeighbours    = "tnl.arp.show"
	RecordedRoutes        = "ovs.route.show"
	RecordedTunnelPorts   = "tnl.ports.show"
	RecordedTunnels       = "ofproto.list-tunnels"

	RecordedBridgeFlows = "bridge.dump-flows"
	RecordedFDB         = "fdb.show"
	RecordedFeatures    = "dpif.show-dp-features"
	RecordedMDB         = "mdb.show"
	RecordedMeterStats  = "meter-stats"
	RecordedRSTP        = "rstp.show"
	RecordedShow        = "show"
	RecordedSTP         = "stp.show"
)

// SaveScript is the name in restore_flows of the script that ovs-save wrote.
const SaveScript = "do_restore.sh"

// ListedTables are the tables of the OVS database that nodes list
// (ovs-vsctl list TABLE), by the schema's names.
func ListedTables() []string {
	return []string{"Open_vSwitch", "Bridge", "Port", "Interface", "Datapath", "Controller", "Manager", "Mirror", "QoS", "Queue",
		"NetFlow", "sFlow", "IPFIX", "Flow_Sample_Collector_Set"}
}

// RecordedList is the name of what ovs-vsctl list printed of a table.
func RecordedList(table string) string { return "list-" + strings.ToLower(table) }

// BridgeRecorded is where one bridge's part of the live state stands.
func (d *Dir) BridgeRecorded(bridge, name string) string {
	return d.Recorded(filepath.Join("bridges", EncodeName(bridge), name))
}

// Dump is one kind of thing that ovs-ofctl dumps and restores for a bridge.
type Dump string

// The dumps, by the end of their file names in restore_flows.
const (
	Flows  Dump = "flows"
	Groups Dump = "groups"
	Meters Dump = "meters"
	TLV    Dump = "tlv"
)

// DumpFile is where the best dump of a bridge stands.
func (d *Dir) DumpFile(bridge string, dump Dump) string {
	return filepath.Join(d.RestoreFlows(), EncodeName(bridge)+"."+string(dump)+".dump")
}

// OtherDump is where the dump in another OpenFlow version stands, for what the
// best one can't say.
func (d *Dir) OtherDump(bridge string, dump Dump, openflow string) string {
	return d.BridgeRecorded(bridge, string(dump)+"."+openflow)
}
