package ovnkube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"ovs-offline/test/e2e/k8s/cluster"
)

// fabric is the network between the nodes: a bridge in a network namespace of its own,
// which is also the router to what is outside.
type fabric struct{ holder *cluster.Process }

// Addresses in the fabric. Node number N has N+1 in place of the last 1.
const (
	Outside4 = "172.18.0.1"
	Outside6 = "fc00:f853:ccd:e793::1"
)

// OutsideAddresses are those of machines outside of the cluster. The EgressFirewalls of the
// rig deny the second one.
var OutsideAddresses = []string{"203.0.113.10", "203.0.113.20"}

// outside is the name that those machines answer.
const outside = "outside"

func nodeAddresses(number int) (v4, v6 string) {
	return fmt.Sprintf("172.18.0.%d", number+1), fmt.Sprintf("fc00:f853:ccd:e793::%d", number+1)
}

func startFabric(ctx context.Context, c *cluster.Cluster) (*fabric, error) {
	holder, err := c.StartProcess("fabric", []string{"unshare", "--net", "cat"})
	if err != nil {
		return nil, err
	}
	f := &fabric{holder}
	// unshare changes its namespace after it has started.
	err = holder.Await(ctx, func() error { return f.ip(ctx, "link", "add", "fabric", "type", "bridge") })
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
		if err := f.ip(ctx, argv...); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// network returns the network namespace of the fabric.
func (f *fabric) network() cluster.Network { return cluster.NetworkOf(f.holder.PID()) }

// ip runs `ip` in the fabric. It refuses to where the fabric is this machine's network.
func (f *fabric) ip(ctx context.Context, argv ...string) error {
	if own, err := f.network().Own(); own || err != nil {
		return fmt.Errorf("the fabric has no network yet (%v)", err)
	}
	return command(ctx, append([]string{"nsenter", "--net=" + string(f.network()), "--", "ip"}, argv...)...)
}

// plug gives a node an interface eth0 in the fabric.
func (f *fabric) plug(ctx context.Context, n *cluster.Node) error {
	return f.ip(ctx, "link", "add", n.Name, "master", "fabric", "up", "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(n.PID()))
}

// computeChecksums lets the interfaces of a network compute the checksums of packets: Open
// vSwitch in user space does not see that an interface of type veth left them to the next
// one. The programs are in a root file system.
func computeChecksums(ctx context.Context, network cluster.Network, root string) error {
	interfaces, err := os.ReadFile(strings.TrimSuffix(string(network), "ns/net") + "net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(interfaces)) {
		name, _, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found || name == "lo" {
			continue
		}
		if err := command(ctx, "nsenter", "--net="+string(network), "--", "chroot", root, "ethtool", "-K", name, "tx", "off"); err != nil {
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
