package fabric

import (
	"context"
	"slices"
	"strings"
)

// daemon is a daemon that answers `appctl -t target`.
type daemon struct{ name, appctl, target string }

// StartDaemon starts a daemon of OVS or OVN, and waits until it answers `appctl -t target`.
func (n *Node) StartDaemon(ctx context.Context, name, appctl, target string, argv ...string) error {
	n.Daemons[name] = n.ProcessInRoot(name, argv...)
	n.Daemons[name].Restarts = true // ovn-northd 26.03.1 may abort when networks come back (ods_assign_array_index)
	n.order = append(n.order, daemon{name, appctl, target})
	return n.start(ctx, n.order[len(n.order)-1])
}

func (n *Node) start(ctx context.Context, d daemon) error {
	if err := n.Daemons[d.name].Start(); err != nil {
		return err
	}
	return n.Daemons[d.name].Await(ctx, func() error { return n.Tool(ctx, d.appctl, "-t", d.target, "version") })
}

// Restart kills all daemons of OVS and OVN, and starts them again with the databases that they had.
func (n *Node) Restart(ctx context.Context) error {
	for _, d := range slices.Backward(n.order) {
		n.Daemons[d.name].Kill()
	}
	for _, d := range n.order {
		if err := n.start(ctx, d); err != nil {
			return err
		}
		if d.name == "ovs-vswitchd" { // its interfaces had ended with it
			if err := n.address(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// startDatabase creates a database and starts its server.
func (n *Node) startDatabase(ctx context.Context, name, target, file, schema string, flags ...string) error {
	if err := n.Tool(ctx, "ovsdb-tool", "create", file, schema); err != nil {
		return err
	}
	return n.StartDaemon(ctx, name, "ovs-appctl", target, append([]string{"ovsdb-server", file, "-vconsole:warn"}, flags...)...)
}

func (n *Node) startOVS(ctx context.Context) error {
	if err := n.startDatabase(ctx, "ovsdb-server", "ovsdb-server", "/etc/openvswitch/conf.db", "/usr/share/openvswitch/vswitch.ovsschema", "--remote=punix:/run/openvswitch/db.sock", "--pidfile"); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"--no-wait", "init"},
		{"--no-wait", "set", "Open_vSwitch", ".", "external_ids:system-id=" + n.Chassis(), "external_ids:hostname=" + n.Name, "external_ids:ovn-bridge-datapath-type=netdev", "external_ids:ovn-encap-ip=" + n.IPv4},
	} {
		if err := n.Tool(ctx, append([]string{"ovs-vsctl"}, argv...)...); err != nil {
			return err
		}
	}
	return n.StartDaemon(ctx, "ovs-vswitchd", "ovs-appctl", "ovs-vswitchd", "ovs-vswitchd", "--disable-system", "--pidfile", "--log-file", "-vconsole:warn")
}

// Chassis returns the name of the node's chassis, which is a UUID in a cluster.
func (n *Node) Chassis() string {
	return "00000000-0000-4000-8000-0000000000" + n.IPv4[strings.LastIndex(n.IPv4, ".")+1:] + "0"
}

// runOVN is the folder of the sockets of OVN's daemons.
const runOVN = "/run/ovn/"

// StartDatabases creates OVN's databases on the node and starts their servers. They listen
// on unix sockets, and where the connections in the databases say.
func (n *Node) StartDatabases(ctx context.Context) error {
	for _, db := range []struct{ short, schema, remotes string }{
		{"nb", "ovn-nb", "db:OVN_Northbound,NB_Global,connections"},
		{"sb", "ovn-sb", "db:OVN_Southbound,SB_Global,connections"},
	} {
		name := "ovn" + db.short + "_db"
		control := runOVN + name + ".ctl"
		if err := n.startDatabase(ctx, name, control, "/var/lib/ovn/"+name+".db", "/usr/share/ovn/"+db.schema+".ovsschema", "--remote=punix:"+runOVN+name+".sock", "--remote="+db.remotes, "--pidfile="+runOVN+name+".pid", "--unixctl="+control); err != nil {
			return err
		}
	}
	return n.Tool(ctx, "ovn-nbctl", "init")
}

// StartNorthd starts ovn-northd beside the databases of the node.
func (n *Node) StartNorthd(ctx context.Context) error {
	return n.StartDaemon(ctx, "ovn-northd", "ovn-appctl", "ovn-northd", "ovn-northd", "--pidfile", "--log-file", "-vconsole:warn")
}

// StartController starts ovn-controller, which connects to a southbound database.
func (n *Node) StartController(ctx context.Context, southbound string) error {
	if err := n.Tool(ctx, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:ovn-remote="+southbound, "external_ids:ovn-encap-type=geneve"); err != nil {
		return err
	}
	return n.StartDaemon(ctx, "ovn-controller", "ovn-appctl", "ovn-controller", "ovn-controller", "--pidfile", "--log-file", "-vconsole:warn")
}
