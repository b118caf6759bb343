package recording

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// Name identifies a recorded command: the subcommand without options, with dots for slashes. It
// is also the name of the output's file in recorded/, but for File.
type Name string

// The commands whose output is restored, and the script of ovs-save, which is
// read and never run.
const (
	Flows      Name = "dump-flows"
	Groups     Name = "dump-groups"
	Meters     Name = "dump-meters"
	TLVMap     Name = "dump-tlv-map"
	SaveScript Name = "ovs-save"
)

// The commands that print OVN databases: a table, or the logical flows.
const (
	NBTable      Name = "ovn-nbctl.list"
	SBTable      Name = "ovn-sbctl.list"
	LogicalFlows Name = "ovn-sbctl.lflow-list"
)

// Scope is the part of a node that one run of a command covers.
type Scope int

// The scopes.
const (
	OfNode      Scope = iota
	OfBridge          // one bridge, whose name follows the command line
	OfDatapath        // one datapath, whose name follows; the outputs of all datapaths make one file
	OfTable           // one table of a database, whose name follows
	OfDevice          // one device of the kernel, whose name follows
	OfNamespace       // one named network namespace, in which "ip netns exec" runs the command line
	OfPart            // some rows or some columns of one table of a database
	OfPacket          // one packet, which follows; what people pasted of all packets makes one file (internal/tracetext)
)

// Command is a command whose output is recorded on a node.
type Command struct {
	Name  Name
	Scope Scope
	Line  string // the command line on the node, without the bridge or datapath
	// Versions is the number of OpenFlow versions (ovs-ofctl -O) in which the command
	// runs on a live node, the newest first; 0 if it takes no version.
	Versions int
	// Dump is the kind of a dump that is restored from restore_flows/, "" for output that is
	// kept in recorded/.
	Dump workdir.Dump
	// Prints is the kind of the OVN database of which the output is a part, "" for other commands.
	// All parts together replace a database file, and are kept as one file beside it.
	Prints workdir.Kind
	// Sos lists how sos plugins run the command, the preferred one first. If it is empty, the
	// plugin openvswitch runs Line, also in each OpenFlow version if Versions is not 0.
	Sos []SosLine
	// Target is the program that ovs-appctl or ovn-appctl asks (-t), as TargetOf returns it; "" for
	// ovs-vswitchd, and for other tools.
	Target string
	// Host marks output that belongs to the machine, or to a program of OVN, and that is kept in
	// host/. Of these, a replica uses only what the kernel's network is made of (workdir/netns).
	Host bool
	// Large marks output that a live node may take long to print.
	Large bool
	// NotLive marks a command that is not run on a live node.
	NotLive bool
	// Missing describes what a replica lacks if no output was recorded, "" for nothing.
	Missing string
}

// SosLine is a command line of an sos plugin, without the bridge, datapath or device.
type SosLine struct {
	Plugin   string
	Line     string
	OpenFlow openflow.Version // zero for a line without -O
	// File is the path of the output in the report, where it is not named for the command; Plugin
	// and Line are empty then.
	File string
}

// Commands returns the table of all recorded commands. All code that collects, names or
// lists recorded output uses it.
func Commands() []Command {
	table := []Command{
		{Name: TLVMap, Scope: OfBridge, Line: "ovs-ofctl dump-tlv-map", Versions: 1, Dump: workdir.TLV,
			Missing: "placeholders replace them"},
		{Name: Meters, Scope: OfBridge, Line: "ovs-ofctl dump-meters", Versions: 1, Dump: workdir.Meters,
			Missing: "placeholders that never drop replace them"},
		{Name: Groups, Scope: OfBridge, Line: "ovs-ofctl dump-groups", Versions: 1, Dump: workdir.Groups,
			Missing: "placeholders without buckets replace them"},
		// The second version supplies actions that the first cannot express.
		{Name: Flows, Scope: OfBridge, Line: "ovs-ofctl dump-flows", Versions: 2, Dump: workdir.Flows},
		{Name: workdir.RecordedMeterStats, Scope: OfBridge, Line: "ovs-ofctl meter-stats", Versions: 1},
		{Name: workdir.RecordedShow, Scope: OfBridge, Line: "ovs-ofctl show", Versions: 1,
			Missing: "no ovs-ofctl show: ports are assumed to be up, and datapath ids and MACs are new"},
		// Only OpenFlow 1.0 has the port flags no-flood, no-stp and no-receive-stp.
		{Name: workdir.RecordedShow10, Scope: OfBridge, Line: "ovs-ofctl -O OpenFlow10 show",
			Sos: []SosLine{{Plugin: openvswitch, Line: "ovs-ofctl -O OpenFlow10 show", OpenFlow: openflow.OpenFlow10}, {Plugin: openvswitch, Line: "ovs-ofctl show"}}},
		{Name: workdir.RecordedPorts, Scope: OfBridge, Line: "ovs-ofctl dump-ports-desc", NotLive: true},
		{Name: workdir.RecordedPortStats, Scope: OfBridge, Line: "ovs-ofctl dump-ports", NotLive: true},
		{Name: workdir.RecordedTables, Scope: OfBridge, Line: "ovs-ofctl dump-tables", NotLive: true},
		{Name: workdir.RecordedBridgeFlows, Scope: OfBridge, Line: "ovs-appctl bridge/dump-flows",
			Sos: []SosLine{{Plugin: openvswitch, Line: "ovs-appctl bridge/dump-flows --offload-stats"}, {Plugin: openvswitch, Line: "ovs-appctl bridge/dump-flows"}}},
		{Name: workdir.RecordedFeatures, Scope: OfBridge, Line: "ovs-appctl dpif/show-dp-features",
			Missing: "no dpif/show-dp-features: the features of a kernel datapath are assumed"},
		{Name: workdir.RecordedFDB, Scope: OfBridge, Line: "ovs-appctl fdb/show",
			Missing: "no fdb/show: NORMAL floods where the live switch had learned the MAC"},
		{Name: workdir.RecordedMDB, Scope: OfBridge, Line: "ovs-appctl mdb/show"},
		{Name: workdir.RecordedRSTP, Scope: OfBridge, Line: "ovs-appctl rstp/show"},
		{Name: workdir.RecordedSTP, Scope: OfBridge, Line: "ovs-appctl stp/show"},
		{Name: workdir.RecordedBFD, Line: "ovs-appctl bfd/show",
			Missing: "no bfd/show: tunnels count as forwarding unless list interface shows their state"},
		{Name: workdir.RecordedBond, Line: "ovs-appctl bond/show"},
		{Name: workdir.RecordedCFM, Line: "ovs-appctl cfm/show"},
		{Name: workdir.RecordedLACP, Line: "ovs-appctl lacp/show"},
		{Name: workdir.RecordedRoutes, Line: "ovs-appctl ovs/route/show"},
		{Name: workdir.RecordedNeighbours, Line: "ovs-appctl tnl/arp/show"},
		{Name: "ofproto.list-tunnels", Line: "ovs-appctl ofproto/list-tunnels"},
		{Name: workdir.RecordedDpifShow, Line: "ovs-appctl dpif/show"},
		{Name: workdir.RecordedTunnelPorts, Line: "ovs-appctl tnl/ports/show -v"},
		{Name: workdir.RecordedDatapathShow, Scope: OfDatapath, Line: "ovs-appctl dpctl/show -s"},
		{Name: workdir.RecordedDatapathFlows, Scope: OfDatapath, Line: "ovs-appctl dpctl/dump-flows -m", Large: true},
		{Name: workdir.RecordedConntrack, Scope: OfDatapath, Line: "ovs-appctl dpctl/dump-conntrack -m", Large: true},
		{Name: workdir.RecordedLinks, Line: "ip -d address",
			Sos: []SosLine{{Plugin: networking, Line: "ip -d address"}, {Plugin: networking, Line: "ip address"}, {Plugin: networking, Line: "ip -s -d link"}, {Plugin: networking, Line: "ip -s link"}}},
		{Name: workdir.RecordedKernelRoutes, Line: "ip route show table all",
			Sos: []SosLine{{Plugin: networking, Line: "ip route show table all"}}},
		// On a live node, the OVS database has the zones.
		{Name: workdir.RecordedZones, Line: "ovn-appctl -t ovn-controller ct-zone-list", Target: controller, NotLive: true},
		// On a live node, a backup of the database is taken instead.
		{Name: workdir.RecordedDatabaseDump, Line: "ovsdb-client -f list dump", NotLive: true},
		// People paste what they asked.
		{Name: workdir.RecordedTraces, Scope: OfPacket, Line: "ovs-appctl ofproto/trace", NotLive: true},
		{Name: workdir.RecordedLogicalTraces, Scope: OfPacket, Line: "ovn-trace", NotLive: true},
		{Name: workdir.RecordedSwitchShow, Line: "ovs-vsctl show", NotLive: true,
			Sos: []SosLine{{Plugin: openvswitch, Line: "ovs-vsctl -t 5 show"}, {Plugin: openvswitch, Line: "ovs-vsctl show"}}},
	}
	for _, command := range []Command{
		{Name: NBTable, Scope: OfTable, Line: "ovn-nbctl list", Prints: workdir.NB},
		{Name: SBTable, Scope: OfTable, Line: "ovn-sbctl list", Prints: workdir.SB},
		{Name: LogicalFlows, Line: "ovn-sbctl lflow-list", Prints: workdir.SB},
	} {
		tool, rest, _ := strings.Cut(command.Line, " ")
		command.NotLive = true // a backup of the database is taken instead
		command.Sos = []SosLine{{Plugin: ovnCentral, Line: tool + " --no-leader-only " + rest}, {Plugin: ovnCentral, Line: command.Line}}
		table = append(table, command)
	}
	for _, name := range []Name{workdir.HostShownNB, workdir.HostShownSB} {
		tool := strings.TrimSuffix(string(name), ".show")
		table = append(table, Command{Name: name, Line: tool + " show", Host: true, NotLive: true,
			Sos: []SosLine{{Plugin: ovnCentral, Line: tool + " --no-leader-only show"}, {Plugin: ovnCentral, Line: tool + " show"}}})
	}
	for _, t := range workdir.ListedTables() {
		command := Command{Name: Name(workdir.RecordedList(t)), Line: "ovs-vsctl list " + t}
		for _, line := range []string{"ovs-vsctl -t 5 list ", "ovs-vsctl list "} {
			command.Sos = append(command.Sos, SosLine{Plugin: openvswitch, Line: line + strings.ToLower(t)}, SosLine{Plugin: openvswitch, Line: line + t})
		}
		table = append(table, command)
	}
	return slices.Concat(table, partCommands(), switchCommands(), daemonCommands(), machineCommands(), networkCommands(), namespaceCommands())
}

// The sos plugins: openvswitch records nearly everything, ovn_central what the OVN databases hold,
// networking what the kernel knows, conntrack its connections.
const (
	openvswitch = "openvswitch"
	ovnCentral  = "ovn_central"
	networking  = "networking"
	conntrack   = "conntrack"
)

// Find returns the command of that name.
func Find(name Name) (command Command, ok bool) {
	command, ok = commandsByName()[name]
	return command, ok
}

// commandsByName is Commands by name. It is made once, because Find is called for each command line of a text.
var commandsByName = sync.OnceValue(func() map[Name]Command {
	table := map[Name]Command{}
	for _, command := range Commands() {
		table[command.Name] = command
	}
	return table
})

// Dumps returns the commands whose output is restored, in the order of the restore.
func Dumps() []Command {
	return slices.DeleteFunc(Commands(), func(command Command) bool { return command.Dump == "" })
}

// Recorded returns the commands whose output goes to recorded/.
func Recorded() []Command {
	return slices.DeleteFunc(Commands(), func(command Command) bool { return command.Dump != "" || command.Prints != "" || command.Host })
}

// OfHost returns the commands whose output goes to host/.
func OfHost() []Command {
	return slices.DeleteFunc(Commands(), func(command Command) bool { return !command.Host })
}

// WithVersion returns the command line for an OpenFlow version; zero means none.
func (c Command) WithVersion(version openflow.Version) string {
	tool, rest, _ := strings.Cut(c.Line, " ")
	if version == 0 {
		return c.Line
	}
	return fmt.Sprintf("%s -O %s %s", tool, version, rest)
}

// SosLines returns every way in which sos runs the command, the preferred one
// first. sos asks for each OpenFlow version, and once without a version. There is none for a command
// with a Target: the socket's name in its line has the process ID of the daemon. sos asks about no packet.
func (c Command) SosLines() []SosLine {
	if len(c.Sos) > 0 || c.Target != "" || c.Scope == OfPacket || c.Scope == OfPart {
		return c.Sos
	}
	var lines []SosLine
	if c.Versions > 0 {
		for _, version := range openflow.Versions() {
			lines = append(lines, SosLine{Plugin: openvswitch, Line: c.WithVersion(version), OpenFlow: version})
		}
	}
	lines = append(lines, SosLine{Plugin: openvswitch, Line: c.Line})
	if c.Name == Flows {
		lines = append(lines, SosLine{Plugin: "ovn_host", Line: c.WithVersion(openflow.OpenFlow13), OpenFlow: openflow.OpenFlow13})
	}
	return lines
}

// recordedByName is Recorded and OfHost by name. It is made once, because ByFile is called for each
// of up to a million entries of a source.
var recordedByName = sync.OnceValue(func() map[string]Command {
	table := map[string]Command{}
	for _, command := range append(Recorded(), OfHost()...) {
		table[string(command.Name)] = command
	}
	return table
})

// ByFile returns the command whose output a file holds, judged by the file's path:
// recorded/NAME, host/NAME, recorded/bridges/BRIDGE/NAME and the like as in a workdir, and anywhere NAME or
// BRIDGE.NAME, also with .txt, where NAME has a dot (stp.show, br0.stp.show). bridge is the name of
// the bridge, the device or the network namespace as it is spelled in the path, "" if the path has none.
func ByFile(file string) (command Command, bridge string, ok bool) {
	base, folder := path.Base(file), path.Dir(file)
	plain := strings.TrimSuffix(base, ".txt")
	if command, ok = recordedByName()[inNamespace+base]; ok && path.Base(path.Dir(folder)) == "namespaces" {
		return command, path.Base(folder), true
	}
	if command, ok = recordedByName()[base]; ok {
		switch {
		case command.Scope == OfBridge && path.Base(path.Dir(folder)) == "bridges":
			return command, path.Base(folder), true
		case command.Scope == OfDevice && path.Base(path.Dir(folder)) == "devices":
			return command, path.Base(folder), true
		case command.Scope != OfBridge && command.Scope != OfDevice && command.Scope != OfNamespace && path.Base(folder) == folderOf(command):
			return command, "", true
		}
	}
	for name := plain; strings.Contains(name, "."); _, name, _ = strings.Cut(name, ".") {
		command, ok = recordedByName()[name]
		prefix := strings.TrimSuffix(strings.TrimSuffix(plain, name), ".")
		switch {
		case !ok, command.Scope == OfDevice, command.Scope == OfNamespace:
		case command.Scope == OfBridge && prefix != "":
			return command, prefix, true
		case command.Scope == OfBridge && name == plain && folder != ".":
			return command, path.Base(folder), true
		case name == plain:
			return command, "", true
		}
	}
	return Command{}, "", false
}

// folderOf returns the name of the folder of a workdir in which the output of a command is.
func folderOf(command Command) string {
	if command.Host {
		return string(workdir.Host)
	}
	return "recorded"
}
