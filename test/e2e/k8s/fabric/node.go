package fabric

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Node is a node of a fabric.
type Node struct {
	*cluster.Node
	IPv4, IPv6 string
	// Root is the folder in the node at which the root file system of the daemons is mounted.
	Root string
	// Daemons are those of OVS and OVN, by name.
	Daemons map[string]*cluster.Process

	fabric *Fabric
	order  []daemon // in which the daemons were started
}

// StartNode starts a node with Open vSwitch, which is in the fabric.
func (f *Fabric) StartNode(ctx context.Context, number int) (*Node, error) {
	n := &Node{fabric: f, Daemons: map[string]*cluster.Process{}}
	n.IPv4, n.IPv6 = nodeAddresses(number)
	var err error
	if n.Node, err = f.options.Cluster.StartNodeApart(ctx, fmt.Sprintf("node%d", number), n.IPv4, n.IPv6); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{n.mount, n.startOVS, n.connect} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return n, nil
}

// mount mounts the root file system of the daemons, and in it the node's own /run,
// /var/lib and /var/log, the cluster's files at their own path, and the programs at /mnt.
func (n *Node) mount(ctx context.Context) (err error) {
	if n.Root, err = n.Folder("root"); err != nil {
		return err
	}
	files := n.fabric.options.Cluster.Dir()
	for _, argv := range [][]string{
		{"mount", "--bind", n.fabric.options.Root, n.Root},
		{"mount", "--make-private", n.Root},
		// The network namespaces of later pods appear in both.
		{"mount", "--make-shared", "/run"},
		{"mount", "--rbind", "/run", n.Root + "/run"},
		{"mount", "--rbind", "/proc", n.Root + "/proc"},
		{"mount", "--rbind", "/dev", n.Root + "/dev"},
		{"mount", "--bind", "/var/lib", n.Root + "/var/lib"},
		{"mount", "--bind", "/var/log", n.Root + "/var/log"},
		{"mount", "--bind", n.fabric.options.Built, n.Root + "/mnt"},
		{"mount", "-t", "sysfs", "sysfs", n.Root + "/sys"},
		{"mount", "-t", "tmpfs", "tmpfs", n.Root + "/etc/openvswitch"},
		{"mount", "-t", "tmpfs", "tmpfs", n.Root + "/tmp"},
		{"mkdir", "-p", n.Root + files},
		{"mount", "--bind", files, n.Root + files},
	} {
		if err := n.run(ctx, argv...); err != nil {
			return err
		}
	}
	return n.Tool(ctx, "mkdir", "-p", "/run/openvswitch", "/run/ovn", "/var/lib/ovn", "/var/log/openvswitch", "/var/log/ovn", "/run/netns")
}

// Mount puts other programs at /mnt.
func (n *Node) Mount(ctx context.Context, built string) error {
	return n.run(ctx, "mount", "--bind", built, n.Root+"/mnt")
}

// run runs a command in the node's namespaces.
func (n *Node) run(ctx context.Context, argv ...string) error {
	return command(ctx, n.Inside(argv...)...)
}

// InRoot returns the arguments of a command in the root file system of the daemons.
func (n *Node) InRoot(argv ...string) []string { return append([]string{"chroot", n.Root}, argv...) }

// Tool runs a command of the root file system of the daemons on the node.
func (n *Node) Tool(ctx context.Context, argv ...string) error {
	return n.run(ctx, n.InRoot(argv...)...)
}

// Output returns what a command of the root file system prints on the node.
func (n *Node) Output(ctx context.Context, argv ...string) (string, error) {
	argv = n.Inside(n.InRoot(argv...)...)
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%q: %w: %s", argv, err, exit.Stderr)
	}
	return string(out), err
}

// ProcessInRoot returns a process of the root file system on the node, which is not started.
func (n *Node) ProcessInRoot(name string, argv ...string) *cluster.Process {
	return n.Process(name, n.InRoot(argv...)...)
}

// connect puts the node's interface in the fabric, and on the bridge that has the
// node's addresses.
func (n *Node) connect(ctx context.Context) error {
	if err := n.fabric.Plug(ctx, n.Node, n.Name, "eth0"); err != nil {
		return err
	}
	mac, err := n.Output(ctx, "cat", "/sys/class/net/eth0/address")
	if err != nil {
		return err
	}
	mac, bridge := strings.TrimSpace(mac), n.fabric.options.Bridge
	for _, argv := range [][]string{
		{"ethtool", "-K", "eth0", "tx", "off"},
		{"sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"},
		// Open vSwitch in user space takes copies of packets. The node's own network, which
		// has the same addresses on the bridge, must not answer the originals.
		{"sysctl", "-q", "-w", "net.ipv4.conf.all.arp_ignore=1"},
		{"ip", "link", "set", "eth0", "arp", "off"},
		{"nft", "add table inet originals; add chain inet originals received { type filter hook prerouting priority -400; }; add rule inet originals received iifname eth0 drop"},
		{"ip", "link", "set", "eth0", "up"},
		{"ovs-vsctl", "add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "other-config:hwaddr=" + mac, "--", "br-set-external-id", bridge, "bridge-id", bridge, "--", "br-set-external-id", bridge, "bridge-uplink", "eth0", "--", "add-port", bridge, "eth0"},
	} {
		if err := n.Tool(ctx, argv...); err != nil {
			return err
		}
	}
	return n.address(ctx)
}

// address gives the node's addresses and routes to the bridge, whose interface ovs-vswitchd makes.
func (n *Node) address(ctx context.Context) error {
	bridge := n.fabric.options.Bridge
	err := n.Daemons["ovs-vswitchd"].Await(ctx, func() error { return n.Tool(ctx, "ip", "link", "set", bridge, "up") })
	if err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"ip", "address", "replace", n.IPv4 + "/16", "dev", bridge},
		{"ip", "address", "replace", n.IPv6 + "/64", "dev", bridge, "nodad"},
		{"ip", "route", "replace", "default", "via", Outside4, "dev", bridge},
		{"ip", "route", "replace", "default", "via", Outside6, "dev", bridge},
	} {
		if err := n.Tool(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}
