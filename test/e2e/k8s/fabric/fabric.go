// Package fabric has the nodes of a test's cluster whose network is real: each has a network
// namespace, Open vSwitch and OVN, and a bridge in another namespace joins them.
//
// Open vSwitch forwards in user space, because few test machines have its kernel module.
package fabric

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Options of a fabric.
type Options struct {
	Cluster *cluster.Cluster // without nodes
	Root    string           // a root file system with OVS, OVN, and what the network's programs call
	Built   string           // the folder of the network's programs, which a node has at /mnt
	Bridge  string           // the bridge that has a node's addresses and its interface eth0
}

// Fabric is the network between the nodes: a bridge in a network namespace of its own,
// which is also the router to what is outside.
type Fabric struct {
	options Options
	holder  *cluster.Process
}

// Addresses in the fabric. Node number N has N+1 in place of the last 1.
const (
	Outside4 = "172.18.0.1"
	Outside6 = "fc00:f853:ccd:e793::1"
)

// OutsideAddresses are those of machines outside of the cluster.
var OutsideAddresses = []string{"203.0.113.10", "203.0.113.20"}

// OutsideName is the name that those machines answer.
const OutsideName = "outside"

func nodeAddresses(number int) (v4, v6 string) {
	return fmt.Sprintf("172.18.0.%d", number+1), fmt.Sprintf("fc00:f853:ccd:e793::%d", number+1)
}

// Start starts a fabric without nodes.
func Start(ctx context.Context, options Options) (*Fabric, error) {
	holder, err := options.Cluster.StartProcess("fabric", []string{"unshare", "--net", "cat"})
	if err != nil {
		return nil, err
	}
	f := &Fabric{options, holder}
	// unshare changes its namespace after it has started.
	err = holder.Await(ctx, func() error { return f.IP(ctx, "link", "add", "fabric", "type", "bridge") })
	if err != nil {
		return nil, err
	}
	for _, argv := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "set", "fabric", "up"},
		{"address", "add", Outside4 + "/16", "dev", "fabric"},
		{"address", "add", Outside6 + "/64", "dev", "fabric", "nodad"},
		{"address", "add", OutsideAddresses[0] + "/32", "dev", "lo"},
		{"address", "add", OutsideAddresses[1] + "/32", "dev", "lo"},
	} {
		if err := f.IP(ctx, argv...); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Network returns the network namespace of the fabric.
func (f *Fabric) Network() cluster.Network { return cluster.NetworkOf(f.holder.PID()) }

// IP runs `ip` in the fabric. It refuses to where the fabric is this machine's network.
func (f *Fabric) IP(ctx context.Context, argv ...string) error {
	if own, err := f.Network().Own(); own || err != nil {
		return fmt.Errorf("the fabric has no network yet (%v)", err)
	}
	return command(ctx, append([]string{"nsenter", "--net=" + string(f.Network()), "--", "ip"}, argv...)...)
}

// Plug gives a node an interface in the fabric, whose other end has the name outer there.
func (f *Fabric) Plug(ctx context.Context, n *cluster.Node, outer, inner string) error {
	return f.IP(ctx, "link", "add", outer, "master", "fabric", "up", "type", "veth", "peer", "name", inner, "netns", strconv.Itoa(n.PID()))
}

// ComputeChecksums lets the interfaces of a network compute the checksums of packets: Open
// vSwitch in user space does not see that an interface of type veth left them to the next
// one.
func (f *Fabric) ComputeChecksums(ctx context.Context, network cluster.Network) error {
	interfaces, err := os.ReadFile(strings.TrimSuffix(string(network), "ns/net") + "net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(interfaces)) {
		name, _, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found || name == "lo" {
			continue
		}
		if err := command(ctx, "nsenter", "--net="+string(network), "--", "chroot", f.options.Root, "ethtool", "-K", name, "tx", "off"); err != nil {
			return err
		}
	}
	return nil
}

func command(ctx context.Context, argv ...string) error {
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", argv, err, out)
	}
	return nil
}
