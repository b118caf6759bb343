package ovnkube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Node is a node and zone.
type Node struct {
	*cluster.Node
	IPv4, IPv6 string
	// Daemons are those of OVS and OVN, by name.
	Daemons map[string]*cluster.Process
	Ovnkube *cluster.Process

	deployment *Deployment
	root       string // where the root file system is mounted in the node
	written    string // where ovnkube writes the configuration of its network plugin
}

func (d *Deployment) startNode(ctx context.Context, number int) (*Node, error) {
	n := &Node{deployment: d, Daemons: map[string]*cluster.Process{}}
	n.IPv4, n.IPv6 = nodeAddresses(number)
	var err error
	if n.Node, err = d.Cluster.StartNodeApart(ctx, fmt.Sprintf("node%d", number), n.IPv4, n.IPv6); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{n.mount, n.startOVS, n.connect, n.startOVN} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return n, nil
}

// mount mounts the root file system of the daemons, and in it the node's own /run,
// /var/lib and /var/log, the cluster's files at their own path, and the programs at /mnt.
func (n *Node) mount(ctx context.Context) (err error) {
	if n.root, err = n.Folder("root"); err != nil {
		return err
	}
	files := n.deployment.Cluster.Dir()
	for _, argv := range [][]string{
		{"mount", "--bind", n.deployment.options.Root, n.root},
		{"mount", "--make-private", n.root},
		// The network namespaces of later pods appear in both.
		{"mount", "--make-shared", "/run"},
		{"mount", "--rbind", "/run", n.root + "/run"},
		{"mount", "--rbind", "/proc", n.root + "/proc"},
		{"mount", "--rbind", "/dev", n.root + "/dev"},
		{"mount", "--bind", "/var/lib", n.root + "/var/lib"},
		{"mount", "--bind", "/var/log", n.root + "/var/log"},
		{"mount", "--bind", n.deployment.options.Built, n.root + "/mnt"},
		{"mount", "-t", "sysfs", "sysfs", n.root + "/sys"},
		{"mount", "-t", "tmpfs", "tmpfs", n.root + "/etc/openvswitch"},
		{"mount", "-t", "tmpfs", "tmpfs", n.root + "/tmp"},
		{"mkdir", "-p", n.root + files},
		{"mount", "--bind", files, n.root + files},
	} {
		if err := n.run(ctx, argv...); err != nil {
			return err
		}
	}
	return n.tool(ctx, "mkdir", "-p", "/run/openvswitch", "/run/ovn", "/var/lib/ovn", "/var/log/openvswitch", "/var/log/ovn", "/var/log/ovn-kubernetes", "/run/ovn-kubernetes/cni", "/run/netns")
}

// run runs a command in the node's namespaces.
func (n *Node) run(ctx context.Context, argv ...string) error {
	return command(ctx, n.Inside(argv...)...)
}

// inRoot returns the arguments of a command in the root file system of the daemons.
func (n *Node) inRoot(argv ...string) []string { return append([]string{"chroot", n.root}, argv...) }

func (n *Node) tool(ctx context.Context, argv ...string) error {
	return n.run(ctx, n.inRoot(argv...)...)
}

// Output returns what a command of the root file system prints on the node.
func (n *Node) Output(ctx context.Context, argv ...string) (string, error) {
	argv = n.Inside(n.inRoot(argv...)...)
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%q: %w: %s", argv, err, exit.Stderr)
	}
	return string(out), err
}

func (n *Node) process(name string, argv ...string) *cluster.Process {
	return n.Process(name, n.inRoot(argv...)...)
}

// startDaemon starts a daemon of OVS or OVN, and waits until it answers `appctl -t target`.
func (n *Node) startDaemon(ctx context.Context, name, appctl, target string, argv ...string) error {
	n.Daemons[name] = n.process(name, argv...)
	if err := n.Daemons[name].Start(); err != nil {
		return err
	}
	return n.Daemons[name].Await(ctx, func() error { return n.tool(ctx, appctl, "-t", target, "version") })
}

// startDatabase creates a database and starts its server.
func (n *Node) startDatabase(ctx context.Context, name, target, file, schema string, flags ...string) error {
	if err := n.tool(ctx, "ovsdb-tool", "create", file, schema); err != nil {
		return err
	}
	return n.startDaemon(ctx, name, "ovs-appctl", target, append([]string{"ovsdb-server", file, "-vconsole:warn"}, flags...)...)
}

func (n *Node) startOVS(ctx context.Context) error {
	if err := n.startDatabase(ctx, "ovsdb-server", "ovsdb-server", "/etc/openvswitch/conf.db", "/usr/share/openvswitch/vswitch.ovsschema", "--remote=punix:/run/openvswitch/db.sock", "--pidfile"); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"--no-wait", "init"},
		{"--no-wait", "set", "Open_vSwitch", ".", "external_ids:system-id=" + n.chassis(), "external_ids:hostname=" + n.Name, "external_ids:ovn-bridge-datapath-type=netdev", "external_ids:ovn-encap-ip=" + n.IPv4},
	} {
		if err := n.tool(ctx, append([]string{"ovs-vsctl"}, argv...)...); err != nil {
			return err
		}
	}
	return n.startDaemon(ctx, "ovs-vswitchd", "ovs-appctl", "ovs-vswitchd", "ovs-vswitchd", "--disable-system", "--pidfile", "--log-file", "-vconsole:warn")
}

// chassis returns the name of the node's chassis, which is a UUID in a cluster.
func (n *Node) chassis() string {
	return "00000000-0000-4000-8000-0000000000" + n.IPv4[strings.LastIndex(n.IPv4, ".")+1:] + "0"
}

// connect puts the node's interface in the fabric, and on the bridge br-ex, which has the
// node's addresses.
func (n *Node) connect(ctx context.Context) error {
	if err := n.deployment.fabric.plug(ctx, n.Node); err != nil {
		return err
	}
	mac, err := n.Output(ctx, "cat", "/sys/class/net/eth0/address")
	if err != nil {
		return err
	}
	mac = strings.TrimSpace(mac)
	for _, argv := range [][]string{
		{"ethtool", "-K", "eth0", "tx", "off"},
		{"sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"},
		// Open vSwitch in user space takes copies of packets. The node's own network, which
		// has the same addresses on br-ex, must not answer the originals.
		{"sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1"},
		{"ip", "link", "set", "eth0", "arp", "off"},
		{"nft", "add table inet originals; add chain inet originals received { type filter hook prerouting priority -400; }; add rule inet originals received iifname eth0 drop"},
		{"ip", "link", "set", "eth0", "up"},
		{"ovs-vsctl", "add-br", "br-ex", "--", "set", "bridge", "br-ex", "datapath_type=netdev", "other-config:hwaddr=" + mac, "--", "br-set-external-id", "br-ex", "bridge-id", "br-ex", "--", "br-set-external-id", "br-ex", "bridge-uplink", "eth0", "--", "add-port", "br-ex", "eth0"},
		{"ip", "link", "set", "br-ex", "up"},
		{"ip", "address", "add", n.IPv4 + "/16", "dev", "br-ex"},
		{"ip", "address", "add", n.IPv6 + "/64", "dev", "br-ex", "nodad"},
		{"ip", "route", "add", "default", "via", Outside4, "dev", "br-ex"},
		{"ip", "route", "add", "default", "via", Outside6, "dev", "br-ex"},
	} {
		if err := n.tool(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) startOVN(ctx context.Context) error {
	const run = "/run/ovn/"
	for _, db := range []struct{ short, schema, remotes string }{
		{"nb", "ovn-nb", "db:OVN_Northbound,NB_Global,connections"},
		{"sb", "ovn-sb", "db:OVN_Southbound,SB_Global,connections"},
	} {
		name := "ovn" + db.short + "_db"
		control := run + name + ".ctl"
		if err := n.startDatabase(ctx, name, control, "/var/lib/ovn/"+name+".db", "/usr/share/ovn/"+db.schema+".ovsschema", "--remote=punix:"+run+name+".sock", "--remote="+db.remotes, "--pidfile="+run+name+".pid", "--unixctl="+control); err != nil {
			return err
		}
	}
	if err := n.tool(ctx, "ovn-nbctl", "init", "--", "set", "NB_Global", ".", "name="+n.Name, "options:name="+n.Name); err != nil {
		return err
	}
	if err := n.startDaemon(ctx, "ovn-northd", "ovn-appctl", "ovn-northd", "ovn-northd", "--pidfile", "--log-file", "-vconsole:warn"); err != nil {
		return err
	}
	if err := n.tool(ctx, "ovs-vsctl", "set", "Open_vSwitch", ".", "external_ids:ovn-remote=unix:"+run+"ovnsb_db.sock", "external_ids:ovn-encap-type=geneve"); err != nil {
		return err
	}
	return n.startDaemon(ctx, "ovn-controller", "ovn-appctl", "ovn-controller", "ovn-controller", "--pidfile", "--log-file", "-vconsole:warn")
}

func (n *Node) startOvnkube() error {
	built := n.deployment.options.Built
	plugin, err := os.ReadFile(filepath.Join(built, "ovn-k8s-cni-overlay"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.Plugins(), "ovn-k8s-cni-overlay"), plugin, 0o755); err != nil {
		return err
	}
	if n.written, err = n.Folder("ovnkube"); err != nil {
		return err
	}
	argv := append([]string{
		"/mnt/ovnkube", "--init-ovnkube-controller=" + n.Name, "--init-node=" + n.Name, "--zone=" + n.Name, "--k8s-kubeconfig=" + n.deployment.kubeconfig, "--k8s-token=" + n.deployment.Cluster.Config.BearerToken,
		"--gateway-interface=br-ex", "--gateway-nexthop=" + Outside4 + "," + Outside6, "--nodeport", "--mtu=1400", "--encap-ip=" + n.IPv4,
		"--cni-conf-dir=" + n.written, "--disable-pkt-mtu-check",
	}, features()...)
	n.Ovnkube = n.process("ovnkube", argv...)
	return n.Ovnkube.Start()
}

// awaitNetwork waits until ovnkube has written the configuration of its network plugin,
// which it does last, and gives it to containerd with a version that Debian's knows.
func (n *Node) awaitNetwork(ctx context.Context) error {
	var text []byte
	err := n.Ovnkube.Await(ctx, func() (err error) {
		text, err = os.ReadFile(filepath.Join(n.written, "10-ovn-kubernetes.conf"))
		return err
	})
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	config["cniVersion"] = "1.0.0"
	if text, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.Plugins(), "10-ovn-kubernetes.conf"), text, 0o600)
}

// pods returns the pods in which collect-k8s finds the tools and the sockets of the
// node's daemons, named as in a KIND cluster with a zone for each node. The daemons
// themselves are no part of them.
func (n *Node) pods() []cluster.Pod {
	usr := cluster.Mount{Host: filepath.Join(n.deployment.options.Root, "usr"), Container: "/usr", ReadOnly: true}
	ovs := []cluster.Mount{usr, {Host: "/run/openvswitch", Container: "/run/openvswitch"}}
	ovn := []cluster.Mount{usr, {Host: "/run/openvswitch", Container: "/run/openvswitch"}, {Host: "/run/ovn", Container: "/run/ovn"}}
	file := append(ovs, cluster.Mount{Host: filepath.Join(n.root, "etc/openvswitch"), Container: "/etc/openvswitch"})
	pod := func(name, app string, containers map[string]cluster.Container) cluster.Pod {
		return cluster.Pod{Namespace: namespace, Name: name + "-" + n.Name, Node: n.Name, Labels: map[string]string{"app": app}, Containers: containers}
	}
	return []cluster.Pod{
		pod("ovs-node", "ovs-node", map[string]cluster.Container{"ovs-daemons": {Mounts: file}}),
		pod("ovnkube-node", "ovnkube-node", map[string]cluster.Container{
			"ovnkube-controller": {Mounts: ovn}, "nb-ovsdb": {Mounts: ovn}, "sb-ovsdb": {Mounts: ovn}, "ovn-controller": {Mounts: ovn},
		}),
	}
}
