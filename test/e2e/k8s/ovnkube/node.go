package ovnkube

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/fabric"
)

// Node is a node and zone.
type Node struct {
	*fabric.Node
	Ovnkube *cluster.Process

	deployment *Deployment
	written    string // where ovnkube writes the configuration of its network plugin
}

func (d *Deployment) startNode(ctx context.Context, number int) (*Node, error) {
	base, err := d.fabric.StartNode(ctx, number)
	if err != nil {
		return nil, err
	}
	n := &Node{Node: base, deployment: d}
	if err := n.startOVN(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name, err)
	}
	return n, nil
}

func (n *Node) startOVN(ctx context.Context) error {
	if err := n.Tool(ctx, "mkdir", "-p", "/var/log/ovn-kubernetes", "/run/ovn-kubernetes/cni"); err != nil {
		return err
	}
	if err := n.StartDatabases(ctx); err != nil {
		return err
	}
	if err := n.Tool(ctx, "ovn-nbctl", "set", "NB_Global", ".", "name="+n.Name, "options:name="+n.Name); err != nil {
		return err
	}
	if err := n.StartNorthd(ctx); err != nil {
		return err
	}
	return n.StartController(ctx, "unix:/run/ovn/ovnsb_db.sock")
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
	if err := os.RemoveAll(n.configuration()); err != nil { // of an earlier ovnkube
		return err
	}
	argv := append([]string{
		"/mnt/ovnkube", "--init-ovnkube-controller=" + n.Name, "--init-node=" + n.Name, "--zone=" + n.Name, "--k8s-kubeconfig=" + n.deployment.kubeconfig, "--k8s-token=" + n.deployment.Cluster.Config.BearerToken,
		"--gateway-interface=br-ex", "--gateway-nexthop=" + fabric.Outside4 + "," + fabric.Outside6, "--nodeport", "--mtu=1400", "--encap-ip=" + n.IPv4,
		"--cni-conf-dir=" + n.written, "--disable-pkt-mtu-check",
	}, n.deployment.features()...)
	n.Ovnkube = n.ProcessInRoot("ovnkube", argv...)
	return n.Ovnkube.Start()
}

// configuration is the file of the network plugin's configuration that ovnkube writes.
func (n *Node) configuration() string { return filepath.Join(n.written, "10-ovn-kubernetes.conf") }

// Restart restarts the node as a reboot does, but for its pods, which go on: all daemons end, and start
// again with the databases that they had.
func (n *Node) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*ovs.Patience())
	defer cancel()
	n.Ovnkube.Kill()
	if err := n.Node.Restart(ctx); err != nil {
		return err
	}
	if err := n.startOvnkube(); err != nil {
		return err
	}
	return n.awaitNetwork(ctx)
}

// awaitNetwork waits until ovnkube has written the configuration of its network plugin,
// which it does last, and gives it to containerd with a version that Debian's knows.
func (n *Node) awaitNetwork(ctx context.Context) error {
	var text []byte
	err := n.Ovnkube.Await(ctx, func() (err error) {
		text, err = os.ReadFile(n.configuration())
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
	file := append(ovs, cluster.Mount{Host: filepath.Join(n.Root, "etc/openvswitch"), Container: "/etc/openvswitch"})
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
