package host

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// Open reads a node from its workdir and its running replica, wherever that runs. An empty
// name stands for the name that the node has in its database.
func Open(ctx context.Context, name string, wd *workdir.Dir) (*Host, error) {
	wd = wd.Linked(ctx)
	const maxTries = 3
	for try := 1; ; try++ {
		before := wd.Connections()
		opened, err := open(ctx, name, wd)
		// A replica in a pod is read again if the connection to it was made and lost.
		if err == nil || ctx.Err() != nil || wd.Connections() == before || wd.Connected() || try == maxTries {
			return opened, err
		}
	}
}

func open(ctx context.Context, name string, wd *workdir.Dir) (*Host, error) {
	r := newReader(name, wd)
	if err := r.read(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r.Host, nil
}

// reader reads a node into a Host.
type reader struct {
	*Host
	dir *workdir.Dir
}

func newReader(name string, wd *workdir.Dir) *reader {
	made := &Host{Name: name, Networks: map[string][]string{}, Zones: map[uint16]string{}, UnknownPorts: map[string]bool{}, ports: map[string]*Port{}, numbers: map[string]*Port{}, options: map[string]map[odp.Option]string{}}
	made.asker.init(name, wd)
	return &reader{made, wd}
}

func (r *reader) read(ctx context.Context) error {
	shown, err := r.Ask(ctx, portsCommand)
	if err != nil {
		return err
	}
	r.asker.ports = portsIn(shown)
	r.checked.Store(int64(r.Replaced()))
	for shownPort := range appctl.BridgePorts(shown) {
		port := &Port{Bridge: shownPort.Bridge, Name: shownPort.Name, Number: shownPort.OpenFlow, Type: recordedType(shownPort.Type)}
		r.ports[shownPort.Name] = port
		if shownPort.Datapath != "none" {
			r.numbers[shownPort.Datapath] = port
		}
	}
	if err := r.readDatabase(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &UnavailableError{r.Name, fmt.Errorf("%w: %w", errDatabase, err)}
	}
	r.sortPorts()
	r.readOptions()
	if err := r.readRecorded(); err != nil {
		return fmt.Errorf("node %s: %w", r.Name, err)
	}
	return nil
}

// readRecorded reads what was recorded of the underlay, and the recorded connections.
func (r *reader) readRecorded() error {
	if err := r.readUnderlay(); err != nil {
		return err
	}
	if err := r.readNamespaces(); err != nil {
		return err
	}
	return r.readConntrack()
}

// sortPorts fills the maps by which ports are found.
func (r *reader) sortPorts() {
	r.ifaces, r.bridges, r.uplinks = map[string]*Port{}, map[string]map[int]*Port{}, map[string][]*Port{}
	for _, port := range r.Ports() {
		if r.bridges[port.Bridge] == nil {
			r.bridges[port.Bridge] = map[int]*Port{}
		}
		r.bridges[port.Bridge][port.Number] = port
		if known := r.ifaces[port.IfaceID]; port.IfaceID != "" && (known == nil || known.isPatch() && !port.isPatch()) {
			r.ifaces[port.IfaceID] = port
		}
		if port.IsTunnel() {
			r.tunnels = append(r.tunnels, port)
			if local, err := netip.ParseAddr(port.Options["local_ip"]); err == nil {
				r.addEncap(local)
			}
		}
		for _, network := range r.NetworksOf(port) {
			r.uplinks[network] = append(r.uplinks[network], port)
		}
	}
}

// recordedType returns the type of an interface whose device is a dummy.
func recordedType(shown string) string {
	switch shown {
	case "dummy-internal":
		return "internal"
	case "dummy", "system":
		return ""
	}
	return shown
}

// readDatabase reads the OVS database as recorded, which has the types and options that
// start changes. Without it, the replica's database serves.
func (r *reader) readDatabase(ctx context.Context) error {
	socket := r.dir.RecordedSocket()
	if _, err := os.Stat(socket); err != nil {
		r.remark("the OVS database as recorded is not served: the types and MTUs of ports are the replica's")
		socket = r.dir.Socket(workdir.OVS)
	}
	db, err := ovsdb.Connect(ctx, socket, ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	return r.addRows(func(table string, columns ...string) ([]ovsdb.Row, error) { return db.Select(ctx, table, columns...) })
}

// selectRows returns the rows of a table of the OVS database.
type selectRows func(table string, columns ...string) ([]ovsdb.Row, error)

// addRows adds what the OVS database has of the node, and of its ports.
func (r *reader) addRows(rows selectRows) error {
	root, err := rows("Open_vSwitch", "external_ids", "ovs_version")
	if err != nil {
		return err
	}
	bridges, err := rows("Bridge", "name", "external_ids")
	if err != nil {
		return err
	}
	interfaces, err := rows("Interface", "name", "type", "options", "external_ids", "mtu")
	if err != nil {
		return err
	}
	bundles, err := rows("Port", "name", "interfaces", "tag")
	if err != nil {
		return err
	}
	bundleOf := map[string]ovsdb.Row{} // by the UUID of an interface
	for _, row := range bundles {
		for _, member := range row.UUIDs("interfaces") {
			bundleOf[member] = row
		}
	}
	for _, row := range interfaces {
		r.addInterface(row, bundleOf[row.UUID])
	}
	for _, row := range root {
		r.addIdentity(row.Map("external_ids"))
		r.version = row.String("ovs_version")
	}
	for _, row := range bridges {
		ids := row.Map("external_ids")
		ovn.Zones(r.Zones).AddIDs(ids)
		r.UnknownPorts[row.String("name")] = ids[ovsdb.Unknown] == ovsdb.UnknownPorts
	}
	r.addAgentNetworks(bridges)
	if len(r.Zones) == 0 {
		return r.readZones()
	}
	return nil
}

// readZones reads the zones that ovn-controller printed (ct-zone-list).
func (r *reader) readZones() error {
	recorded, ok, err := r.dir.Collected(r.dir.Recorded(workdir.RecordedZones))
	if err != nil || !ok {
		return err
	}
	defer recorded.Close()
	return ovn.Zones(r.Zones).AddPrinted(recorded)
}

// addInterface adds what the rows of an interface and of its port of Open vSwitch have.
func (r *reader) addInterface(row, bundle ovsdb.Row) {
	port, ok := r.ports[row.String("name")]
	if !ok {
		return // it had no OpenFlow port
	}
	if kind := row.String("type"); kind != "dummy" {
		port.Type = kind
	}
	ids := row.Map("external_ids")
	port.Options, port.IfaceID, port.MAC, port.Unknown = row.Map("options"), ids["iface-id"], ids["attached-mac"], ids[ovsdb.Unknown]
	if len(bundle.UUIDs("interfaces")) > 1 {
		port.Bond = bundle.String("name")
	}
	if tag, ok := bundle.Int("tag"); ok {
		port.Tag = strconv.Itoa(tag)
	}
	port.MTU, _ = row.Int("mtu")
}

// addIdentity reads the node's names, tunnel addresses and networks.
func (r *reader) addIdentity(settings ovn.Settings) {
	r.Chassis, r.Hostname = settings.Chassis(), settings.Hostname()
	if r.Name == "" {
		r.Name = r.Hostname
		r.asker.node = r.Name
	}
	for _, address := range settings.Encaps() {
		r.addEncap(address)
	}
	for network, bridge := range settings.Mappings() {
		if !slices.Contains(r.Networks[bridge], network) {
			r.Networks[bridge] = append(r.Networks[bridge], network)
		}
	}
}

func (r *reader) addEncap(address netip.Addr) {
	if !r.HasEncap(address) {
		r.Encaps = append(r.Encaps, address)
	}
}

// addAgentNetworks adds the networks of neutron's Open vSwitch agent. It joins each
// provider bridge with br-int by patch ports int-BRIDGE and phy-BRIDGE, and records the
// name of the network nowhere: bridges with the same name are taken as one network.
func (r *reader) addAgentNetworks(bridges []ovsdb.Row) {
	for _, row := range bridges {
		bridge := row.String("name")
		if _, ok := r.ports["phy-"+bridge]; ok && len(r.Networks[bridge]) == 0 {
			r.Networks[bridge] = []string{"bridge " + bridge}
			r.remark(fmt.Sprintf("neutron's agent does not record the network of bridge %s: it is taken as the network of the bridges with this name on other nodes", bridge))
		}
	}
}

func (r *reader) remark(text string) { r.Remarks = append(r.Remarks, text) }

// mapping matches a TLV mapping as openflow.TLVMap prints it.
var mapping = lazyregexp.New(`^\{class=(\S+?),type=(\S+?),len=\S+?\}->(tun_metadata\d+)$`)

// readOptions reads the Geneve options of each bridge. Without a dump, the option of OVN
// is mapped as ovn-controller maps it, which start does as well.
func (r *reader) readOptions() {
	for _, port := range r.tunnels {
		if _, done := r.options[port.Bridge]; done {
			continue
		}
		fields := map[odp.Option]string{}
		r.options[port.Bridge] = fields
		dump, ok, err := r.dir.Collected(r.dir.DumpFile(port.Bridge, workdir.TLV))
		if err != nil {
			r.remark(err.Error())
		}
		if ok {
			entries, _ := openflow.TLVMap(dump)
			dump.Close()
			for _, mapped := range entries {
				if found := mapping.FindStringSubmatch(mapped.Text); found != nil {
					fields[option(found[1], found[2])] = found[3]
				}
			}
		}
		if len(fields) == 0 {
			fields[option("0x102", "0x80")] = "tun_metadata0"
		}
	}
}

// option returns the identity of a Geneve option, in the notation of datapath actions.
func option(class, kind string) odp.Option {
	classNumber, _ := strconv.ParseUint(class, 0, 16)
	typeNumber, _ := strconv.ParseUint(kind, 0, 8)
	return odp.Option{Class: fmt.Sprintf("%#x", classNumber), Type: fmt.Sprintf("%#x", typeNumber)}
}

// readConntrack reads the recorded connections.
func (r *reader) readConntrack() error {
	r.Conntrack = conntrack.Tracker{Name: r.Name, Userspace: r.isUserspace()}
	recorded, ok, err := r.dir.Collected(r.dir.Recorded(workdir.RecordedConntrack))
	if err != nil {
		return err
	}
	if !ok {
		r.remark("no dpctl/dump-conntrack was recorded: every connection is taken as new")
		return nil
	}
	defer recorded.Close()
	table, unread, err := conntrack.Read(recorded)
	if err != nil {
		return fmt.Errorf("%s: %w", recorded.Name(), err)
	}
	if unread > 0 {
		r.remark(fmt.Sprintf("%d lines of the recorded connections can't be read", unread))
	}
	r.Conntrack.Table = table
	return nil
}

// isUserspace reports whether the node had the userspace datapath: no other builds the
// headers of tunnels.
func (r *reader) isUserspace() bool {
	for _, port := range r.ports {
		text, _, err := r.dir.CollectedText(r.dir.BridgeRecorded(port.Bridge, workdir.RecordedFeatures))
		if err == nil && appctl.Features(text)["Tunnel push pop"] == "true" {
			return true
		}
	}
	return false
}
