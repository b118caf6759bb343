package host

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/conntrack"
	"ovs-offline/trace/odp"
)

// Open reads a node from its workdir and its running replica, wherever that runs. An empty
// name stands for the name that the node has in its database.
func Open(ctx context.Context, name string, wd *workdir.Dir) (*Host, error) {
	wd = wd.Linked(ctx)
	const most = 3
	for try := 1; ; try++ {
		before := wd.Connections()
		h, err := open(ctx, name, wd)
		// A replica in a pod is read again if the connection to it was made and lost.
		if err == nil || ctx.Err() != nil || wd.Connections() == before || wd.Connected() || try == most {
			return h, err
		}
	}
}

func open(ctx context.Context, name string, wd *workdir.Dir) (*Host, error) {
	h := newHost(name, wd)
	if err := h.read(ctx, wd); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func newHost(name string, wd *workdir.Dir) *Host {
	h := &Host{Name: name, Networks: map[string][]string{}, Zones: map[uint16]string{}, ports: map[string]*Port{}, numbers: map[string]*Port{}, options: map[string]map[odp.Option]string{}}
	h.asker.init(name, wd)
	return h
}

func (h *Host) read(ctx context.Context, wd *workdir.Dir) error {
	shown, err := h.Ask(ctx, portsCommand)
	if err != nil {
		return err
	}
	h.asker.ports = portsIn(shown)
	h.checked.Store(int64(h.Replaced()))
	for p := range appctl.BridgePorts(shown) {
		port := &Port{Bridge: p.Bridge, Name: p.Name, Number: p.OpenFlow, Type: recordedType(p.Type)}
		h.ports[p.Name] = port
		if p.Datapath != "none" {
			h.numbers[p.Datapath] = port
		}
	}
	if err := h.readDatabase(ctx, wd); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &UnavailableError{h.Name, fmt.Errorf("%w: %w", errDatabase, err)}
	}
	h.sortPorts()
	h.readOptions(wd)
	if err := h.readRecorded(wd); err != nil {
		return fmt.Errorf("node %s: %w", h.Name, err)
	}
	return nil
}

// readRecorded reads what was recorded of the underlay, and the recorded connections.
func (h *Host) readRecorded(wd *workdir.Dir) error {
	if err := h.readUnderlay(wd); err != nil {
		return err
	}
	return h.readConntrack(wd)
}

// sortPorts fills the maps by which ports are found.
func (h *Host) sortPorts() {
	h.ifaces, h.bridges, h.uplinks = map[string]*Port{}, map[string]map[int]*Port{}, map[string][]*Port{}
	for _, p := range h.Ports() {
		if h.bridges[p.Bridge] == nil {
			h.bridges[p.Bridge] = map[int]*Port{}
		}
		h.bridges[p.Bridge][p.Number] = p
		if known := h.ifaces[p.IfaceID]; p.IfaceID != "" && (known == nil || known.isPatch() && !p.isPatch()) {
			h.ifaces[p.IfaceID] = p
		}
		if p.IsTunnel() {
			h.tunnels = append(h.tunnels, p)
			h.addEncaps(p.Options["local_ip"])
		}
		for _, network := range h.NetworksOf(p) {
			h.uplinks[network] = append(h.uplinks[network], p)
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
func (h *Host) readDatabase(ctx context.Context, wd *workdir.Dir) error {
	socket := wd.RecordedSocket()
	if _, err := os.Stat(socket); err != nil {
		h.remark("the OVS database as recorded is not served: the types and MTUs of ports are the replica's")
		socket = wd.Socket(workdir.OVS)
	}
	db, err := ovsdb.Connect(ctx, socket, ovsdb.OVS)
	if err != nil {
		return err
	}
	defer db.Close()
	return h.addRows(func(table string, columns ...string) ([]ovsdb.Row, error) { return db.Select(ctx, table, columns...) })
}

// selectRows returns the rows of a table of the OVS database.
type selectRows func(table string, columns ...string) ([]ovsdb.Row, error)

// addRows adds what the OVS database has of the node, and of its ports.
func (h *Host) addRows(rows selectRows) error {
	root, err := rows("Open_vSwitch", "external_ids")
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
	for _, row := range interfaces {
		h.addInterface(row)
	}
	for _, row := range root {
		h.addIdentity(row.Map("external_ids"))
	}
	for _, row := range bridges {
		h.addZones(row.Map("external_ids"))
	}
	h.addAgentNetworks(bridges)
	return nil
}

func (h *Host) addInterface(row ovsdb.Row) {
	p, ok := h.ports[row.String("name")]
	if !ok {
		return // it had no OpenFlow port
	}
	if kind := row.String("type"); kind != "dummy" {
		p.Type = kind
	}
	ids := row.Map("external_ids")
	p.Options, p.IfaceID, p.MAC = row.Map("options"), ids["iface-id"], ids["attached-mac"]
	p.MTU, _ = row.Int("mtu")
}

// addIdentity reads what ovn-controller's settings say of the node (ovn-controller(8)).
func (h *Host) addIdentity(ids map[string]string) {
	h.Chassis, h.Hostname = ids["system-id"], ids["hostname"]
	if h.Name == "" {
		h.Name = h.Hostname
		h.asker.node = h.Name
	}
	for _, suffix := range []string{"", "-" + h.Chassis} {
		h.addEncaps(ids["ovn-encap-ip"+suffix])
		for _, mapping := range strings.Split(ids["ovn-bridge-mappings"+suffix], ",") {
			if network, bridge, ok := strings.Cut(strings.TrimSpace(mapping), ":"); ok && !slices.Contains(h.Networks[bridge], network) {
				h.Networks[bridge] = append(h.Networks[bridge], network)
			}
		}
	}
}

func (h *Host) addEncaps(list string) {
	for _, text := range strings.Split(list, ",") {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && !h.HasEncap(a) {
			h.Encaps = append(h.Encaps, a)
		}
	}
}

func (h *Host) addZones(ids map[string]string) {
	for key, value := range ids {
		owner, ok := strings.CutPrefix(key, "ct-zone-")
		zone, err := strconv.ParseUint(value, 10, 16)
		if ok && err == nil {
			h.Zones[uint16(zone)] = owner
		}
	}
}

// addAgentNetworks adds the networks of neutron's Open vSwitch agent. It joins each
// provider bridge with br-int by patch ports int-BRIDGE and phy-BRIDGE, and records the
// name of the network nowhere: bridges with the same name are taken as one network.
func (h *Host) addAgentNetworks(bridges []ovsdb.Row) {
	for _, row := range bridges {
		bridge := row.String("name")
		if _, ok := h.ports["phy-"+bridge]; ok && len(h.Networks[bridge]) == 0 {
			h.Networks[bridge] = []string{"bridge " + bridge}
			h.remark(fmt.Sprintf("neutron's agent does not record the network of bridge %s: it is taken as the network of the bridges with this name on other nodes", bridge))
		}
	}
}

func (h *Host) remark(text string) { h.Remarks = append(h.Remarks, text) }

// mapping matches a TLV mapping as openflow.TLVMap prints it.
var mapping = regexp.MustCompile(`^\{class=(\S+?),type=(\S+?),len=\S+?\}->(tun_metadata\d+)$`)

// readOptions reads the Geneve options of each bridge. Without a dump, the option of OVN
// is mapped as ovn-controller maps it, which start does as well.
func (h *Host) readOptions(wd *workdir.Dir) {
	for _, p := range h.tunnels {
		if _, done := h.options[p.Bridge]; done {
			continue
		}
		fields := map[odp.Option]string{}
		h.options[p.Bridge] = fields
		f, ok, err := workdir.OpenCollected(wd.DumpFile(p.Bridge, workdir.TLV))
		if err != nil {
			h.remark(err.Error())
		}
		if ok {
			entries, _ := openflow.TLVMap(f)
			f.Close()
			for _, e := range entries {
				if m := mapping.FindStringSubmatch(e.Text); m != nil {
					fields[option(m[1], m[2])] = m[3]
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
	c, _ := strconv.ParseUint(class, 0, 16)
	t, _ := strconv.ParseUint(kind, 0, 8)
	return odp.Option{Class: fmt.Sprintf("%#x", c), Type: fmt.Sprintf("%#x", t)}
}

// readConntrack reads the recorded connections.
func (h *Host) readConntrack(wd *workdir.Dir) error {
	h.Conntrack = conntrack.Node{Name: h.Name, Userspace: h.userspace(wd)}
	f, ok, err := workdir.OpenCollected(wd.Recorded(workdir.RecordedConntrack))
	if err != nil {
		return err
	}
	if !ok {
		h.remark("no dpctl/dump-conntrack was recorded: every connection is taken as new")
		return nil
	}
	defer f.Close()
	table, unread, err := conntrack.Read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	if unread > 0 {
		h.remark(fmt.Sprintf("%d lines of the recorded connections can't be read", unread))
	}
	h.Conntrack.Table = table
	return nil
}

// userspace reports whether the node had the userspace datapath: no other builds the
// headers of tunnels.
func (h *Host) userspace(wd *workdir.Dir) bool {
	for _, p := range h.ports {
		text, err := recordedText(wd.BridgeRecorded(p.Bridge, workdir.RecordedFeatures))
		if err == nil && appctl.Features(text)["Tunnel push pop"] == "true" {
			return true
		}
	}
	return false
}

// recordedText returns a recorded output, "" if it was not recorded.
func recordedText(path string) (string, error) {
	f, ok, err := workdir.OpenCollected(path)
	if err != nil || !ok {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, workdir.MaxText))
	return string(text), err
}
