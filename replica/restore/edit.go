package restore

import (
	"context"
	"maps"
	"strconv"

	"ovs-offline/internal/ovsdb"
)

// editDeadPorts takes ports that had failed on the live node out of their
// bridges: a dummy would open them, and give them low port numbers that flows
// take for other ports.
func editDeadPorts(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		var kept []*Port
		for _, p := range b.Ports {
			alive := liveInterfaces(p)
			if len(alive) == 0 {
				o.note(Restored, "%s: port %q had failed on the live node (%s): taken out", b.Name, p.Name, p.Interfaces[0].Error)
				continue
			}
			if len(alive) < len(p.Interfaces) {
				o.note(Restored, "%s: members of %q that had failed on the live node: taken out", b.Name, p.Name)
				changes = append(changes, ovsdb.Update("Port", p.UUID, ovsdb.Columns{"interfaces": interfaceRefs(alive)}))
				p.Interfaces = alive
			}
			kept = append(kept, p)
		}
		if len(kept) < len(b.Ports) {
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"ports": portRefs(kept)}))
			b.Ports = kept
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// liveInterfaces are those of a port that had come up. A database that was
// never served by an ovs-vswitchd has no ofport at all: nothing had failed there.
func liveInterfaces(p *Port) []*Interface {
	var alive []*Interface
	for _, i := range p.Interfaces {
		if i.OfPort >= 0 && i.Error == "" {
			alive = append(alive, i)
		}
	}
	if len(p.Interfaces) == 0 {
		return []*Interface{{}} // a port without interfaces is left to ovs-vswitchd
	}
	return alive
}

func interfaceRefs(list []*Interface) []ovsdb.Ref {
	refs := make([]ovsdb.Ref, 0, len(list))
	for _, i := range list {
		refs = append(refs, ovsdb.Ref{UUID: i.UUID})
	}
	return refs
}

func portRefs(list []*Port) []ovsdb.Ref {
	refs := make([]ovsdb.Ref, 0, len(list))
	for _, p := range list {
		refs = append(refs, ovsdb.Ref{UUID: p.UUID})
	}
	return refs
}

// editPortNumbers asks for the live node's OpenFlow port numbers.
func editPortNumbers(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			switch {
			case i.OfPort > 0 && i.OfPort < 65280: // OFPP_MAX; beyond are LOCAL and the like
				o.note(Restored, "")
				if i.Requested != i.OfPort {
					changes = append(changes, ovsdb.Update("Interface", i.UUID, ovsdb.Columns{"ofport_request": i.OfPort}))
				}
			case i.OfPort == 0 && i.Name != b.Name:
				o.note(Unknown, "%s: the OpenFlow port number of %q is not in the database", b.Name, i.Name)
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// isTunnel tells the port types that a dummy ovs-vswitchd opens as the tunnels they are.
func isTunnel(kind string) bool {
	switch kind {
	case "geneve", "gre", "vxlan", "lisp", "stt", "erspan", "ip6erspan", "ip6gre", "gtpu", "bareudp", "srv6":
		return true
	}
	return false
}

// editPortTypes makes every port one that opens without a device, and takes
// from it the options that would open files or sockets of this host.
func editPortTypes(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			columns := ovsdb.Columns{}
			switch {
			case i.Type == "patch" || isTunnel(i.Type):
				continue
			case i.Type == "" || i.Type == "system" || i.Type == "internal":
			default:
				o.note(Restored, "%s: port %q of type %q opens as a dummy", b.Name, i.Name, i.Type)
				columns["type"] = "dummy"
			}
			if len(i.Options) > 0 {
				// netdev-dummy takes stream, pstream, pcap ...: sockets and files. No device's
				// option shows in a trace.
				columns["options"] = map[string]string{}
			}
			if len(columns) > 0 {
				o.note(Restored, "")
				changes = append(changes, ovsdb.Update("Interface", i.UUID, columns))
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// editDatapathTypes maps netdev (which would make real TAP devices) to dummy;
// "system" is a dummy already (--enable-dummy=system).
func editDatapathTypes(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		if b.DatapathType == "" || b.DatapathType == "system" {
			continue
		}
		o.note(Restored, "%s: datapath type %q runs as a dummy", b.Name, b.DatapathType)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"datapath_type": "dummy"}))
	}
	return n.DB.Transact(ctx, changes...)
}

// editFailMode keeps a bridge whose controller can't be reached from emptying
// its flow table after 15 seconds, and a fresh one from adding a NORMAL flow.
func editFailMode(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		if b.FailMode != "secure" {
			o.note(Restored, "")
			changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"fail_mode": "secure"}))
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// editIdentity sets the datapath id and the MAC address of each bridge, which
// ovs-vswitchd would otherwise make up from its devices.
func editIdentity(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		show, ok, err := n.show(b)
		if err != nil {
			return err
		}
		if !ok || show.DatapathID == "" {
			o.note(Unknown, "%s: no ovs-ofctl show was collected: its datapath id and MAC are made up", b.Name)
			continue
		}
		config := maps.Clone(b.OtherConfig)
		config["datapath-id"] = show.DatapathID
		for _, p := range show.Ports {
			if p.Name == b.Name || p.Number == 65534 {
				config["hwaddr"] = p.MAC
			}
		}
		o.note(Restored, "")
		b.OtherConfig = config
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"other_config": config}))
	}
	return n.DB.Transact(ctx, changes...)
}

// editControllers leaves controllers where nothing can be dialled, since they
// steer hidden flows; where the daemons share the host's network, they go.
func editControllers(ctx context.Context, n *Node, o *outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		if !b.HasControl {
			continue
		}
		if n.Isolated {
			o.note(Restored, "")
			continue
		}
		o.note(Approximated, "%s: its controllers are taken out, since the daemons are not isolated here: in-band rules are missing", b.Name)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"controller": nil}))
	}
	return n.DB.Transact(ctx, changes...)
}

// editMonitors points sFlow, IPFIX and NetFlow at nothing: what they do to
// traces stays, what they send goes nowhere.
func editMonitors(ctx context.Context, n *Node, o *outcome) error {
	const nowhere = "127.0.0.1:9" // the discard port of the replica's own loopback
	var changes []ovsdb.Change
	for _, m := range []struct{ table, column string }{{"sFlow", "targets"}, {"IPFIX", "targets"}, {"NetFlow", "targets"}} {
		rows, err := n.DB.Select(ctx, m.table, m.column)
		if err != nil {
			return err
		}
		for _, r := range rows {
			o.note(Restored, "")
			columns := ovsdb.Columns{m.column: []string{nowhere}}
			if m.table == "IPFIX" && len(r.Strings(m.column)) == 0 {
				columns = ovsdb.Columns{}
			}
			if len(columns) > 0 {
				changes = append(changes, ovsdb.Update(m.table, r.UUID, columns))
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// keptConfig are the settings of Open_vSwitch:other_config that steer what
// flows do. All others are about the host: threads, memory, DPDK, sockets.
func keptConfig(key string) bool {
	switch key {
	case "vlan-limit", "max-idle", "flow-limit", "bundle-idle-timeout":
		return true
	}
	return false
}

// editHostSettings drops what is about the live host: DPDK, threads, waiting
// for a restore that is ours, keys of TLS.
func editHostSettings(ctx context.Context, n *Node, o *outcome) error {
	rows, err := n.DB.Select(ctx, "Open_vSwitch", "other_config", "ssl")
	if err != nil {
		return err
	}
	for _, r := range rows {
		// One thread of each kind answers as well as the live host's many.
		config := map[string]string{"n-handler-threads": strconv.Itoa(1), "n-revalidator-threads": strconv.Itoa(1)}
		for k, v := range r.Map("other_config") {
			if keptConfig(k) {
				config[k] = v
			}
		}
		columns := ovsdb.Columns{"other_config": config}
		if n.DB.HasColumn("Open_vSwitch", "ssl") {
			columns["ssl"] = nil // it names files of this host
		}
		if err := n.DB.Transact(ctx, ovsdb.Update("Open_vSwitch", r.UUID, columns)); err != nil {
			return err
		}
		o.note(Restored, "")
	}
	return nil
}
