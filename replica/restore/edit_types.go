package restore

import (
	"context"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/report"
)

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
func editPortTypes(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		for _, i := range b.Interfaces() {
			columns := ovsdb.Columns{}
			switch {
			case i.Type == "patch" || isTunnel(i.Type):
				continue
			case i.Type == "" || i.Type == "system" || i.Type == "internal":
			default:
				o.Note(report.Restored, "%s: port %q of type %q opens as a dummy", b.Name, i.Name, i.Type)
				columns["type"] = "dummy"
				i.Type = "dummy"
			}
			if len(i.Options) > 0 {
				// netdev-dummy takes stream, pstream, pcap ...: sockets and files. No device's
				// option shows in a trace.
				columns["options"] = map[string]string{}
			}
			if len(columns) > 0 {
				o.Note(report.Restored, "")
				changes = append(changes, ovsdb.Update("Interface", i.UUID, columns))
			}
		}
	}
	return n.DB.Transact(ctx, changes...)
}

// editDatapathTypes maps netdev (which would make real TAP devices) to dummy;
// "system" is a dummy already (--enable-dummy=system).
func editDatapathTypes(ctx context.Context, n *Node, o *report.Outcome) error {
	var changes []ovsdb.Change
	for _, b := range n.Bridges {
		if b.DatapathType == "" || b.DatapathType == "system" {
			continue
		}
		o.Note(report.Restored, "%s: datapath type %q runs as a dummy", b.Name, b.DatapathType)
		changes = append(changes, ovsdb.Update("Bridge", b.UUID, ovsdb.Columns{"datapath_type": "dummy"}))
	}
	return n.DB.Transact(ctx, changes...)
}
