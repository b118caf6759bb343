package ovnkube

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
)

//go:embed testdata/networks.yaml
var networks []byte

//go:embed testdata/connect.yaml
var connect []byte

//go:embed testdata/objects.yaml
var objects []byte

// BalancerIP is the address of the service front/balanced.
const BalancerIP = "203.0.113.50"

// Pod is a pod of the rig that answers in its network.
type Pod struct {
	Namespace, Name, Node string
	Network               cluster.Network
	NAD                   string       // the network that its programs use, "default" or NAMESPACE/NAME
	IPs                   []netip.Addr // in that network
	// Secondary are its addresses in networks beside that one, by NAMESPACE/NAME.
	Secondary map[string]netip.Addr

	id, uid string // of its container and of the pod
}

// AddObjects adds all kinds of networks and objects, with two nodes or more, and waits
// until the pods run. It returns them in the order in which they were made.
func (d *Deployment) AddObjects(ctx context.Context) ([]Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*ovs.Patience())
	defer cancel()
	const assignable = `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":""}}}`
	if _, err := d.Cluster.Client.CoreV1().Nodes().Patch(ctx, d.Nodes[0].Name, types.MergePatchType, []byte(assignable), metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	if err := d.Cluster.Apply(ctx, networks); err != nil {
		return nil, err
	}
	if err := d.awaitNetworks(ctx); err != nil {
		return nil, err
	}
	if d.hasConnect() {
		if err := d.Cluster.Apply(ctx, connect); err != nil {
			return nil, err
		}
	}
	if err := d.Cluster.Apply(ctx, objects); err != nil {
		return nil, err
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": []map[string]string{{"ip": BalancerIP}}}}})
	if err != nil {
		return nil, err
	}
	if _, err := d.Cluster.Client.CoreV1().Services("front").Patch(ctx, "balanced", types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return nil, err
	}
	return d.Pods(ctx)
}

// awaitNetworks waits until each namespace of a user-defined network has it.
func (d *Deployment) awaitNetworks(ctx context.Context) error {
	return d.Manager.Await(ctx, func() error {
		list, err := d.Cluster.Client.Discovery().RESTClient().Get().AbsPath("/apis/k8s.cni.cncf.io/v1/network-attachment-definitions").DoRaw(ctx)
		if err != nil {
			return err
		}
		for _, namespace := range []string{"blue", "mono", "red", "green", "left", "right", "lan"} {
			if !strings.Contains(string(list), fmt.Sprintf(`"namespace":%q`, namespace)) {
				return fmt.Errorf("namespace %s has no network yet", namespace)
			}
		}
		return nil
	})
}

// Pods waits until all pods that are not of the deployment itself run, gives them their
// secondary interfaces, and returns them.
func (d *Deployment) Pods(ctx context.Context) (pods []Pod, err error) {
	running, err := d.fabric.Pods(ctx, d.Manager)
	if err != nil {
		return nil, err
	}
	for _, pod := range running {
		p := Pod{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Network: pod.Network, uid: string(pod.UID)}
		_, p.id, _ = strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
		if err := p.readNetworks(pod.Annotations["k8s.ovn.org/pod-networks"]); err != nil {
			return nil, err
		}
		if err := d.attach(ctx, p); err != nil {
			return nil, err
		}
		if err := d.fabric.ComputeChecksums(ctx, p.Network); err != nil {
			return nil, err
		}
		pods = append(pods, p)
	}
	return pods, nil
}
