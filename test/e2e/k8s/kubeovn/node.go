package kubeovn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/fabric"
)

// Node is a node of kube-ovn.
type Node struct {
	*fabric.Node
	Daemon *cluster.Process

	deployment *Deployment
}

// startNode starts a node with ovn-controller. The first one also has the databases and
// ovn-northd.
func (d *Deployment) startNode(ctx context.Context, number int) (*Node, error) {
	base, err := d.fabric.StartNode(ctx, number)
	if err != nil {
		return nil, err
	}
	n := &Node{Node: base, deployment: d}
	steps := []func(context.Context) error{n.makeFiles, n.connectExternal, n.startOVNController, n.label}
	if number == 1 {
		steps = append([]func(context.Context) error{n.startCentral}, steps...)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return n, nil
}

// makeFiles makes the folder of kube-ovn's logs, and the file in which the daemon looks up the
// name of the chassis.
func (n *Node) makeFiles(ctx context.Context) error {
	for _, argv := range [][]string{
		{"mkdir", "-p", "/var/log/kube-ovn"},
		{"sh", "-c", `printf %s "$1" > /etc/openvswitch/system-id.conf`, "sh", n.Chassis()},
	} {
		if err := n.Tool(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

// startCentral starts the databases of the cluster, and ovn-northd.
func (n *Node) startCentral(ctx context.Context) error {
	if err := n.StartDatabases(ctx); err != nil {
		return err
	}
	for program, port := range map[string]int{"ovn-nbctl": northbound, "ovn-sbctl": southbound} {
		if err := n.Tool(ctx, program, "set-connection", fmt.Sprintf("ptcp:%d:%s", port, n.IPv4)); err != nil {
			return err
		}
	}
	return n.StartNorthd(ctx)
}

// externalBridge is the bridge that the daemon would make for the ProviderNetwork external. With
// Open vSwitch in user space, its user connects it.
const externalBridge = "br-external"

// connectExternal puts a second interface of the node in the fabric, and on the bridge to the
// external network.
func (n *Node) connectExternal(ctx context.Context) error {
	if err := n.deployment.fabric.Plug(ctx, n.Node.Node, n.Name+"-ext", "eth1"); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"ethtool", "-K", "eth1", "tx", "off"},
		{"ip", "link", "set", "eth1", "arp", "off"},
		{"nft", "add rule inet originals received iifname eth1 drop"},
		{"ip", "link", "set", "eth1", "up"},
		{"ovs-vsctl", "add-br", externalBridge, "--", "set", "bridge", externalBridge, "datapath_type=netdev", "--", "add-port", externalBridge, "eth1"},
		{"ip", "link", "set", externalBridge, "up"},
	} {
		if err := n.Tool(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) startOVNController(ctx context.Context) error {
	central := n.deployment.Nodes
	if len(central) == 0 {
		central = []*Node{n}
	}
	return n.StartController(ctx, fmt.Sprintf("tcp:%s:%d", central[0].IPv4, southbound))
}

// label tells kube-ovn that Open vSwitch forwards in user space.
func (n *Node) label(ctx context.Context) error {
	return n.patch(ctx, `{"metadata":{"labels":{"ovn.kubernetes.io/ovs_dp_type":"userspace"}}}`)
}

// patch merges JSON into the Node object.
func (n *Node) patch(ctx context.Context, text string) error {
	_, err := n.deployment.Cluster.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	return err
}

// find returns the UUIDs of the northbound rows with a value in a column, "" for none.
func (n *Node) find(ctx context.Context, table, condition string) (string, error) {
	return n.Output(ctx, "ovn-nbctl", "--bare", "--columns=_uuid", "find", table, condition)
}

// environment returns what the pods of kube-ovn have in their environment.
func (n *Node) environment(pod string) []string {
	return []string{
		"POD_NAME=" + pod + "-" + n.Name, "POD_NAMESPACE=" + namespace, "KUBE_NAMESPACE=" + namespace, "KUBE_NODE_NAME=" + n.Name, "POD_IP=" + n.IPv4, "POD_IPS=" + n.IPv4 + "," + n.IPv6,
		"KUBECONFIG=" + n.deployment.kubeconfig, // for a library of the controller that does not know its flag
	}
}

// startDaemon starts the daemon of the node and waits until it serves the network plugin, whose
// configuration it then gives to containerd.
func (n *Node) startDaemon(ctx context.Context) error {
	plugin, err := os.ReadFile(filepath.Join(n.deployment.options.Built, "kube-ovn"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(n.Plugins(), "kube-ovn"), plugin, 0o755); err != nil {
		return err
	}
	const socket = "/run/openvswitch/kube-ovn-daemon.sock"
	argv := append([]string{"env"}, n.environment("kube-ovn-cni")...)
	argv = append(argv, "/mnt/kube-ovn-daemon", "--kubeconfig="+n.deployment.kubeconfig, "--node-name="+n.Name,
		"--ovs-socket=/run/openvswitch/db.sock", "--bind-socket="+socket, "--service-cluster-ip-range="+serviceCIDRs, "--mtu=1400", "--enable-metrics=false")
	n.Daemon = n.ProcessInRoot("kube-ovn-cni", argv...)
	if err := n.Daemon.Start(); err != nil {
		return err
	}
	if err := n.Daemon.Await(ctx, func() error { return n.Tool(ctx, "test", "-S", socket) }); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.Plugins(), "01-kube-ovn.conflist"), []byte(pluginsConfig), 0o600)
}

// mounts returns those of the pods in which collect-k8s finds the tools and the sockets of the daemons, which
// are themselves no part of the pods.
func (n *Node) mounts() []cluster.Mount {
	return []cluster.Mount{
		{Host: filepath.Join(n.deployment.options.Root, "usr"), Container: "/usr", ReadOnly: true},
		{Host: "/run/openvswitch", Container: "/run/openvswitch"},
		{Host: "/run/ovn", Container: "/run/ovn"},
	}
}

// pods returns the pod of Open vSwitch and ovn-controller, named as in a cluster.
func (n *Node) pods() []cluster.Pod {
	file := cluster.Mount{Host: filepath.Join(n.Root, "etc/openvswitch"), Container: "/etc/openvswitch"}
	return []cluster.Pod{{
		Namespace: namespace, Name: "ovs-ovn-" + n.Name, Node: n.Name, Labels: map[string]string{"app": "ovs"},
		Containers: map[string]cluster.Container{"openvswitch": {Mounts: append(n.mounts(), file)}},
	}}
}

// central returns the pod of the databases.
func (n *Node) central() cluster.Pod {
	return cluster.Pod{
		Namespace: namespace, Name: "ovn-central", Node: n.Name,
		Labels:     map[string]string{"app": "ovn-central", "ovn-nb-leader": "true", "ovn-sb-leader": "true", "ovn-northd-leader": "true"},
		Containers: map[string]cluster.Container{"ovn-central": {Mounts: n.mounts()}},
	}
}
