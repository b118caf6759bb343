package workdir

import "path/filepath"

// Names of what stands in recorded/, each the output of one command on the live
// node, as it was. Those of a bridge stand in recorded/bridges/<bridge>/.
const (
	RecordedBFD           = "bfd.show"
	RecordedBond          = "bond.show"
	RecordedCFM           = "cfm.show"
	RecordedConntrack     = "dpctl.dump-conntrack"
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
