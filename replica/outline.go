package replica

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// outline returns what ovs-vsctl show printed of the switch, if it was collected, and the
// bridges that have dumps, with the ports that dpif/show, ovs-ofctl show and the flows name.
func (s *starter) outline(ctx context.Context) (*ovsdb.Outline, error) {
	shown, err := ovsdb.ShownIn(s.wd.Recorded(workdir.RecordedSwitchShow))
	if err != nil {
		return nil, fmt.Errorf("ovs-vsctl show: %w", err)
	}
	dumped, err := dumpedBridges(s.wd, s.manifest)
	if err != nil && shown == nil {
		return nil, err
	}
	o := &outliner{wd: s.wd, root: shown, names: portNames{}, added: map[*ovsdb.Outline]bool{}}
	if shown == nil {
		o.root = ovsdb.NewOutline()
	}
	for _, iface := range o.root.Below("Interface") {
		o.names[iface.Name] = true
	}
	for _, bridge := range dumped {
		o.addBridge(bridge)
	}
	dpif, _, err := workdir.CollectedText(s.wd.Recorded(workdir.RecordedDpifShow))
	if err != nil {
		return nil, err
	}
	numbered := map[string][]appctl.BridgePort{}
	for port := range appctl.BridgePorts(dpif) {
		numbered[port.Bridge] = append(numbered[port.Bridge], port)
	}
	for _, bridge := range o.root.Below("Bridge") {
		printed := len(bridge.Below("Interface"))
		if err := o.complete(ctx, bridge, numbered[bridge.Name]); err != nil {
			return nil, err
		}
		if o.added[bridge] || len(bridge.Below("Interface")) > printed {
			bridge.SetUnknown(ovsdb.UnknownPorts)
		}
	}
	from := "bridges " + strings.Join(dumped, ", ") + " were made from their dumps and ovs-ofctl show; port types, tunnels, bonds and VLAN settings are not known"
	if shown != nil {
		from = "bridges and ports were made from ovs-vsctl show; VLAN and bond modes, other_config and external_ids are not known"
	}
	o.root.SetUnknown(ovsdb.UnknownSettings)
	s.report.Remark("no OVS database was collected: " + from)
	for _, remark := range o.remarks() {
		s.report.Remark(remark)
	}
	return o.root, nil
}

// outliner completes the outline of a switch.
type outliner struct {
	wd      *workdir.Dir
	root    *ovsdb.Outline
	names   portNames               // of all interfaces
	added   map[*ovsdb.Outline]bool // the bridges that ovs-vsctl show did not print
	assumed []string                // ports whose number alone is known
	told    []string                // which ports are taken as those whose names were cut, and why
}

// addBridge adds a bridge, with its local port, if the outline lacks it.
func (o *outliner) addBridge(name string) {
	if o.root.Find("Bridge", name) == nil {
		o.names[name] = true
		bridge := o.root.Row("Bridge", name)
		o.added[bridge] = true
		o.addPort(bridge, name).Set("type", "internal")
	}
}

// addPort adds a port with one interface of the same name.
func (o *outliner) addPort(bridge *ovsdb.Outline, name string) *ovsdb.Outline {
	port := &ovsdb.Outline{Table: "Port", Name: name}
	bridge.Rows = append(bridge.Rows, port)
	return port.Row("Interface", name)
}

// complete gives the interfaces of a bridge their port numbers, and adds the ports that only
// other outputs name. dpif has the ports that dpif/show printed of the bridge.
func (o *outliner) complete(ctx context.Context, bridge *ovsdb.Outline, dpif []appctl.BridgePort) error {
	ports := portsOf(bridge)
	for _, port := range dpif {
		o.number(ports, port.Name, port.OpenFlow)
	}
	show, err := o.show(bridge.Name)
	if err != nil {
		return err
	}
	cut := map[string][]int{}
	for _, port := range show.Ports {
		name := port.Name
		if port.Number == openflow.PortLocal {
			name = bridge.Name
		}
		if whole, known := ports.whole(name); known {
			o.number(ports, whole, port.Number)
		} else if !ports.taken[port.Number] {
			cut[name] = append(cut[name], port.Number)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cut)) {
		remain, err := o.tell(ctx, ports, name, cut[name])
		if err != nil {
			return err
		}
		for _, number := range remain {
			o.numberCut(ports, name, number)
		}
	}
	flows, err := o.references(ctx, bridge.Name)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(flows.names)) {
		o.name(ports, name)
	}
	without := ports.unnumbered()
	if len(without) == 0 {
		if len(dpif)+len(show.Ports) == 0 { // flows alone were collected
			o.assume(ports, flows.numbers)
		}
		return nil
	}
	unknown := ovsdb.UnknownNumber
	if len(flows.names) > 0 {
		unknown = ovsdb.UnusedNumber
	}
	for _, iface := range without {
		if !iface.Has("external_ids") {
			iface.SetUnknown(unknown)
		}
	}
	o.assume(ports, flows.numbers)
	return nil
}

// name adds the interface that flows name, if the bridge lacks it.
func (o *outliner) name(ports bridgePorts, name string) {
	if name, _ = ports.whole(name); ports.byName[name] != nil || o.names[name] {
		return
	}
	o.addUntyped(ports, name)
}

// otherType matches the names that ovn-controller, neutron's agent, Antrea and people give to patch ports and tunnels only.
var otherType = lazyregexp.New(`^(?:patch-|int-br-|phy-br-|ovn-[0-9A-Za-z]{1,6}-[0-9a-f]+$|(?:vxlan|gre|geneve|stt|erspan|gtpu)[-_0-9]|antrea-tun)`)

// addUntyped adds an interface whose type was not recorded.
func (o *outliner) addUntyped(ports bridgePorts, name string) *ovsdb.Outline {
	iface := o.addPort(ports.bridge, o.names.unique(name))
	ports.byName[iface.Name] = iface
	if otherType.MatchString(name) {
		iface.SetUnknown(ovsdb.UnknownType)
	}
	return iface
}

// numberCut adds an interface for a number whose name was cut, and which is one of several interfaces with names that begin so.
func (o *outliner) numberCut(ports bridgePorts, name string, number int) {
	iface := o.addPort(ports.bridge, o.names.unique(name))
	iface.SetUnknown(ovsdb.UnknownName)
	ports.setNumber(iface, number)
}

// number gives a number to the interface of a name, unless one has it. It adds an interface
// if there is none of that name, or if that has another number: names can be cut.
func (o *outliner) number(ports bridgePorts, name string, number int) {
	if ports.taken[number] {
		return
	}
	iface := ports.byName[name]
	if iface == nil || iface.Has("ofport") {
		iface = o.addUntyped(ports, name)
	}
	ports.setNumber(iface, number)
}

func (o *outliner) show(bridge string) (show openflow.Description, err error) {
	file, ok, err := workdir.OpenCollected(o.wd.BridgeRecorded(bridge, workdir.RecordedShow))
	if !ok {
		return show, err
	}
	defer file.Close()
	return openflow.Show(file), nil
}

// assume adds ports for the numbers that flows name and that no port has, because the
// numbers of some ports are not known.
func (o *outliner) assume(ports bridgePorts, numbers map[int]bool) {
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		if !ports.taken[number] {
			iface := o.addPort(ports.bridge, o.names.unique(fmt.Sprintf("%s-port-%d", ports.bridge.Name, number)))
			iface.SetUnknown(ovsdb.UnknownName)
			ports.setNumber(iface, number)
			o.assumed = append(o.assumed, iface.Name)
		}
	}
}

// references are the ports that the flows of a bridge name by their numbers and by their names: ovs-ofctl prints names on a
// terminal, and the number of a port that does not exist.
type references struct {
	numbers map[int]bool
	names   map[string]bool
}

// references returns the ports that the flows and groups of a bridge name.
func (o *outliner) references(ctx context.Context, bridge string) (found references, err error) {
	found = references{map[int]bool{}, map[string]bool{}}
	for _, dump := range []workdir.Dump{workdir.Flows, workdir.Groups} {
		file, ok, err := workdir.OpenCollected(o.wd.DumpFile(bridge, dump))
		if !ok {
			if err != nil {
				return found, err
			}
			continue
		}
		defer file.Close()
		_, err = lines.Read(interrupt.Reader(ctx, file), func(line []byte) error {
			for _, port := range openflow.Ports(string(line)) {
				found.add(port)
			}
			return nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, ctx.Err()
}

// maxNamed is more names of ports than any switch has.
const maxNamed = 1 << 16

// add adds a port as a flow names it.
func (r references) add(port string) {
	const maxPort = 0xff00 // OFPP_MAX of OpenFlow 1.0
	number, err := strconv.Atoi(port)
	switch {
	case err == nil && number > 0 && number < maxPort:
		r.numbers[number] = true
	case err != nil && len(r.names) < maxNamed:
		r.names[port] = true
	}
}

func (o *outliner) remarks() []string {
	remarks := o.told
	if numbered := o.names.numbered(); len(numbered) > 0 {
		remarks = append(remarks, "ovs-ofctl show cuts names at 15 characters; ports that then have the same name are numbered: "+strings.Join(numbered, ", "))
	}
	if len(o.assumed) > 0 {
		remarks = append(remarks, fmt.Sprintf("neither ovs-ofctl show nor dpif/show has the numbers of all ports: %s that flows name by a number stand for ports whose names are not known: %s",
			phrase.Count(len(o.assumed), "port"), phrase.FirstNames(o.assumed)))
	}
	return remarks
}

// bridgePorts are the interfaces of a bridge.
type bridgePorts struct {
	bridge *ovsdb.Outline
	byName map[string]*ovsdb.Outline
	taken  map[int]bool // their numbers
}

func portsOf(bridge *ovsdb.Outline) bridgePorts {
	ports := bridgePorts{bridge: bridge, byName: map[string]*ovsdb.Outline{}, taken: map[int]bool{}}
	for _, iface := range bridge.Below("Interface") {
		ports.byName[iface.Name] = iface
	}
	return ports
}

// whole returns the name of the one interface whose name ovs-ofctl show cut, or else the name
// as it was printed. known is false if it may be any of several interfaces.
func (p bridgePorts) whole(printed string) (name string, known bool) {
	const cut = 15 // OFP_MAX_PORT_NAME_LEN without its end
	if p.byName[printed] != nil || len(printed) < cut {
		return printed, true
	}
	found := ""
	for name := range p.byName {
		if strings.HasPrefix(name, printed) {
			if found != "" {
				return printed, false
			}
			found = name
		}
	}
	return cmp.Or(found, printed), true
}

func (p bridgePorts) setNumber(iface *ovsdb.Outline, number int) {
	iface.Set("ofport", strconv.Itoa(number))
	p.taken[number] = true
}

// unnumbered returns the interfaces whose numbers are not known, but for the local port, whose
// number is always the same.
func (p bridgePorts) unnumbered() (list []*ovsdb.Outline) {
	for name, iface := range p.byName {
		if name != p.bridge.Name && !iface.Has("ofport") {
			list = append(list, iface)
		}
	}
	return list
}
