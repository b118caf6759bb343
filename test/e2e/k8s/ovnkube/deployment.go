// Package ovnkube runs a real OVN-Kubernetes in a test's cluster: its cluster manager,
// and on each node, which is a zone of its own, its controller, its node part, OVN and
// Open vSwitch.
package ovnkube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/fabric"
)

// Networks of the cluster.
const (
	PodCIDRs     = "10.244.0.0/16/24,fd00:10:244::/48/64"
	ServiceCIDRs = "10.96.0.0/16,fd00:10:96::/112"
)

// Flags are those of the API server in a cluster for OVN-Kubernetes.
var Flags = []string{"--service-cluster-ip-range=" + ServiceCIDRs, "--allow-privileged=true"}

// Options of a deployment.
type Options struct {
	Cluster *cluster.Cluster // with Flags and Jobs, and without nodes
	Built   string           // the folder that ./build filled
	Root    string           // a root file system with OVS, OVN and what ovnkube calls
	Nodes   int
}

// Deployment is a running OVN-Kubernetes.
type Deployment struct {
	Cluster *cluster.Cluster
	Nodes   []*Node
	Manager *cluster.Process

	options    Options
	kubeconfig string
	fabric     *fabric.Fabric
}

// Start starts OVN-Kubernetes and waits until each node's network is ready.
func Start(ctx context.Context, options Options) (*Deployment, error) {
	d := &Deployment{Cluster: options.Cluster, options: options}
	ctx, cancel := context.WithTimeout(ctx, 3*ovs.Patience())
	defer cancel()
	if err := d.start(ctx); err != nil {
		return nil, fmt.Errorf("OVN-Kubernetes: %w", err)
	}
	return d, nil
}

func (d *Deployment) start(ctx context.Context) (err error) {
	if d.kubeconfig, err = d.Cluster.Kubeconfig(cluster.Admin, ""); err != nil {
		return err
	}
	if err := d.define(ctx); err != nil {
		return err
	}
	if err := d.Cluster.AddNamespace(ctx, namespace, nil); err != nil {
		return err
	}
	if d.fabric, err = fabric.Start(ctx, fabric.Options{Cluster: d.Cluster, Root: d.options.Root, Built: d.options.Built, Bridge: "br-ex"}); err != nil {
		return err
	}
	for i := range d.options.Nodes {
		n, err := d.startNode(ctx, i+1)
		if err != nil {
			return err
		}
		d.Nodes = append(d.Nodes, n)
	}
	if err := d.fabric.ComputeChecksums(ctx, d.fabric.Network()); err != nil {
		return err
	}
	// The service's address is announced to the router, as MetalLB would do it.
	if err := d.fabric.IP(ctx, "route", "add", BalancerIP+"/32", "via", d.Nodes[0].IPv4); err != nil {
		return err
	}
	if err := d.startOvnkube(ctx); err != nil {
		return err
	}
	var pods []cluster.Pod
	for _, n := range d.Nodes {
		pods = append(pods, n.pods()...)
	}
	return d.Cluster.AddPods(ctx, pods...)
}

// startOvnkube starts the manager and the nodes' controllers, and waits until each node's network is ready.
func (d *Deployment) startOvnkube(ctx context.Context) error {
	if err := d.startManager(); err != nil {
		return err
	}
	for _, n := range d.Nodes {
		if err := n.startOvnkube(); err != nil {
			return err
		}
	}
	for _, n := range d.Nodes {
		if err := n.awaitNetwork(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Upgrade replaces ovnkube by another release. Open vSwitch and OVN keep running, and so do the pods.
func (d *Deployment) Upgrade(ctx context.Context, built string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*ovs.Patience())
	defer cancel()
	d.Manager.Kill()
	d.options.Built = built
	if err := d.define(ctx); err != nil {
		return err
	}
	for _, n := range d.Nodes {
		n.Ovnkube.Kill()
		if err := n.Mount(ctx, built); err != nil {
			return err
		}
	}
	return d.startOvnkube(ctx)
}

// define creates or changes the custom resource definitions of OVN-Kubernetes.
func (d *Deployment) define(ctx context.Context) error {
	return d.Cluster.ApplyFiles(ctx, filepath.Join(d.options.Built, "crds/*.yaml"))
}

// hasConnect reports whether the release of ovnkube joins networks.
func (d *Deployment) hasConnect() bool {
	_, err := os.Stat(filepath.Join(d.options.Built, "crds/k8s.ovn.org_clusternetworkconnects.yaml"))
	return err == nil
}

// namespace is that of OVN-Kubernetes.
const namespace = "ovn-kubernetes"

// features are the flags of ovnkube that switch on what it has.
func (d *Deployment) features() []string {
	list := []string{
		"--cluster-subnets=" + PodCIDRs, "--k8s-service-cidrs=" + ServiceCIDRs, "--gateway-mode=shared",
		"--ovn-config-namespace=" + namespace, "--host-network-namespace=ovn-host-network", "--loglevel=4", "--metrics-bind-address=",
		// Each user-defined network takes two addresses, more than the default subnets have.
		"--gateway-v4-masquerade-subnet=169.254.0.0/17", "--gateway-v6-masquerade-subnet=fd69::/112",
	}
	for _, feature := range []string{
		"interconnect", "multi-network", "network-segmentation", "multi-networkpolicy", "persistent-ips",
		"egress-ip", "egress-firewall", "egress-qos", "egress-service", "multi-external-gateway", "admin-network-policy", "network-qos",
	} {
		list = append(list, "--enable-"+feature)
	}
	if d.hasConnect() {
		list = append(list, "--enable-network-connect")
	}
	return list
}

func (d *Deployment) startManager() (err error) {
	argv := append([]string{"/mnt/ovnkube", "--init-cluster-manager=manager", "--k8s-kubeconfig=" + d.kubeconfig}, d.features()...)
	// The manager runs where the first node does, as in a cluster.
	d.Manager = d.Nodes[0].ProcessInRoot("cluster-manager", argv...)
	return d.Manager.Start()
}
