// Package kubeovn runs a real kube-ovn in a test's cluster: its controller beside the one pair
// of OVN databases of the cluster, and on each node its daemon, its network plugin,
// ovn-controller and Open vSwitch.
package kubeovn

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/fabric"
)

// Networks and names of the cluster.
const (
	podCIDRs      = "10.16.0.0/16,fd00:10:16::/112"
	podGateways   = "10.16.0.1,fd00:10:16::1"
	joinCIDRs     = "100.64.0.0/16,fd00:100:64::/112"
	serviceCIDRs  = "10.96.0.0/16,fd00:10:96::/112"
	namespace     = "kube-system" // of kube-ovn
	northbound    = 6641          // the port of the database's server
	southbound    = 6642
	pluginsConfig = `{"cniVersion": "1.0.0", "name": "kube-ovn", "plugins": [{"type": "kube-ovn", "server_socket": "/run/openvswitch/kube-ovn-daemon.sock"}]}`
)

// Flags are those of the API server in a cluster for kube-ovn.
var Flags = []string{"--service-cluster-ip-range=" + serviceCIDRs, "--allow-privileged=true"}

// Options of a deployment.
type Options struct {
	Cluster *cluster.Cluster // with Flags and Jobs, and without nodes
	Built   string           // the folder that ./build filled
	Root    string           // a root file system with OVS, OVN and what kube-ovn calls
	Nodes   int
}

// Deployment is a running kube-ovn.
type Deployment struct {
	Cluster    *cluster.Cluster
	Nodes      []*Node // the first one has the databases
	Controller *cluster.Process

	options    Options
	kubeconfig string
	fabric     *fabric.Fabric
}

// Start starts kube-ovn and waits until pods on each node can have a network.
func Start(ctx context.Context, options Options) (*Deployment, error) {
	d := &Deployment{Cluster: options.Cluster, options: options}
	ctx, cancel := context.WithTimeout(ctx, 3*ovs.Patience())
	defer cancel()
	if err := d.start(ctx); err != nil {
		return nil, fmt.Errorf("kube-ovn: %w", err)
	}
	return d, nil
}

func (d *Deployment) start(ctx context.Context) (err error) {
	if d.kubeconfig, err = d.Cluster.Kubeconfig(cluster.Admin, ""); err != nil {
		return err
	}
	if err := d.Cluster.ApplyFiles(ctx, filepath.Join(d.options.Built, "crds/*.yaml")); err != nil {
		return err
	}
	// The daemon takes the tunnels' addresses from the bridge br-phy where Open vSwitch forwards
	// in user space.
	if d.fabric, err = fabric.Start(ctx, fabric.Options{Cluster: d.Cluster, Root: d.options.Root, Built: d.options.Built, Bridge: "br-phy"}); err != nil {
		return err
	}
	if err := d.fabric.IP(ctx, "address", "add", ExternalGateway+"/24", "dev", "fabric"); err != nil {
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
	if err := d.startController(); err != nil {
		return err
	}
	var pods []cluster.Pod
	for _, n := range d.Nodes {
		if err := n.startDaemon(ctx); err != nil {
			return err
		}
		pods = append(pods, n.pods()...)
	}
	return d.Cluster.AddPods(ctx, append(pods, d.Nodes[0].central())...)
}

// startController starts kube-ovn-controller where the databases are.
func (d *Deployment) startController() error {
	n := d.Nodes[0]
	argv := append([]string{"env"}, n.environment("kube-ovn-controller")...)
	argv = append(argv, "/mnt/kube-ovn-controller", "--kubeconfig="+d.kubeconfig,
		"--ovn-nb-addr="+d.database(northbound), "--ovn-sb-addr="+d.database(southbound),
		"--default-cidr="+podCIDRs, "--default-gateway="+podGateways, "--node-switch-cidr="+joinCIDRs, "--service-cluster-ip-range="+serviceCIDRs,
		"--default-exclude-ips=10.16.0.1", "--enable-metrics=false", "--enable-anp")
	d.Controller = n.ProcessInRoot("kube-ovn-controller", argv...)
	return d.Controller.Start()
}

// database returns where the server of a database is.
func (d *Deployment) database(port int) string {
	return fmt.Sprintf("tcp:%s:%d", d.Nodes[0].IPv4, port)
}

// awaitNeighbours waits until the routers have learned no MAC address for two seconds.
func (d *Deployment) awaitNeighbours(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ovs.Patience())
	defer cancel()
	last, since := "", time.Now()
	return d.Controller.Await(ctx, func() error {
		list, err := d.Nodes[0].Output(ctx, "ovn-sbctl", "--bare", "--columns=_uuid", "list", "MAC_Binding")
		if err != nil {
			return err
		}
		if list != last {
			last, since = list, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return errors.New("routers learn MAC addresses")
		}
		return nil
	})
}
