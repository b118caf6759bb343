package kubeovn

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/fabric"
	"ovs-offline/test/e2e/k8s/truth"
)

//go:embed testdata/networks.yaml
var networks []byte

//go:embed testdata/objects.yaml
var objects []byte

// ExternalGateway is the address of the router in the external network.
const ExternalGateway = "172.19.0.1"

// Annotations of kube-ovn.
const (
	annotationIP     = "ovn.kubernetes.io/ip_address"
	annotationSubnet = "ovn.kubernetes.io/logical_switch"
	annotationVPC    = "ovn.kubernetes.io/logical_router"
)

// Pod is a pod of the rig that answers in its network.
type Pod struct {
	truth.Peer
	Namespace, Node string
	Subnet, VPC     string
	IPs             []netip.Addr
}

// planned is a pod that the rig makes. Its address is chosen here where an object names it.
type planned struct{ name, node, app, ip string }

// plan has the pods of the namespaces.
func plan() map[string][]planned {
	return map[string][]planned{
		"front":  {{"c1", "node1", "web", ""}, {"c2", "node2", "web", ""}, {"c3", "node1", "closed", ""}},
		"guard":  {{"g1", "node1", "g", ""}, {"g2", "node2", "g", ""}},
		"shop":   {{"db1", "node1", "db", "10.17.0.11,fd00:10:17::11"}, {"db2", "node2", "db", "10.17.0.12,fd00:10:17::12"}, {"web", "node2", "web", ""}},
		"vault":  {{"v1", "node1", "v", ""}, {"v2", "node2", "v", ""}},
		"middle": {{"m1", "node1", "m", ""}},
		"blue":   {{"b1", "node1", "b", "10.30.0.11"}, {"b2", "node2", "b", "10.30.0.12"}},
		"indigo": {{"i1", "node2", "i", ""}},
		"green":  {{"x1", "node1", "light", ""}, {"x2", "node2", "dark", ""}},
		"edge":   {{"e1", "node1", "e", ""}, {"e2", "node2", "e", ""}, {"e3", "node1", "e", ""}},
	}
}

// AddObjects adds the networks, the pods and the objects, with two nodes or more, and waits
// until the pods run. It returns them.
func (d *Deployment) AddObjects(ctx context.Context) ([]Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*ovs.Patience())
	defer cancel()
	const gateway = `{"metadata":{"labels":{"ovn.kubernetes.io/external-gw":"true"}}}`
	for _, n := range d.Nodes {
		if err := n.patch(ctx, gateway); err != nil {
			return nil, err
		}
	}
	if err := d.Cluster.Apply(ctx, networks); err != nil {
		return nil, err
	}
	if err := d.awaitNetworks(ctx); err != nil {
		return nil, err
	}
	for namespace, pods := range plan() {
		for _, p := range pods {
			if _, err := d.Cluster.Client.CoreV1().Pods(namespace).Create(ctx, p.object(namespace), metav1.CreateOptions{}); err != nil {
				return nil, err
			}
		}
	}
	pods, err := d.Pods(ctx)
	if err != nil {
		return nil, err
	}
	return pods, d.Cluster.Apply(ctx, objects)
}

// subnets returns the subnets of the namespaces that have their own.
func subnets() map[string]string {
	return map[string]string{"guard": "guard", "shop": "shop", "vault": "vault", "middle": "middle", "blue": "blue-a", "indigo": "blue-b", "green": "green-a", "edge": "edge-a"}
}

// awaitNetworks waits until kube-ovn has given each namespace its subnet.
func (d *Deployment) awaitNetworks(ctx context.Context) error {
	return d.Controller.Await(ctx, func() error {
		for name, subnet := range subnets() {
			namespace, err := d.Cluster.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := namespace.Annotations[annotationSubnet]; got != subnet {
				return fmt.Errorf("namespace %s has the subnet %q, not %s", name, got, subnet)
			}
		}
		return nil
	})
}

func (p planned) object(namespace string) *corev1.Pod {
	no, grace := false, int64(0)
	annotations := map[string]string{}
	if p.ip != "" {
		annotations[annotationIP] = p.ip
	}
	if namespace == "guard" {
		annotations["ovn.kubernetes.io/port_security"], annotations["ovn.kubernetes.io/security_groups"] = "true", "web"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name, Labels: map[string]string{"app": p.app}, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName: p.node, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "app", Image: cluster.ImageWithoutTools, ImagePullPolicy: corev1.PullNever}},
		},
	}
}

// Pods waits until all pods that are not of the deployment itself run, and returns them.
func (d *Deployment) Pods(ctx context.Context) ([]Pod, error) {
	running, err := d.fabric.Pods(ctx, d.Controller)
	if err != nil {
		return nil, err
	}
	var pods []Pod
	for _, r := range running {
		p, err := read(r)
		if err != nil {
			return nil, err
		}
		pods = append(pods, p)
	}
	return pods, nil
}

// read reads what kube-ovn wrote into the annotations of a pod.
func read(r fabric.Pod) (Pod, error) {
	p := Pod{Peer: truth.Peer{Name: r.Namespace + "/" + r.Name, Network: r.Network}, Namespace: r.Namespace, Node: r.Spec.NodeName,
		Subnet: r.Annotations[annotationSubnet], VPC: r.Annotations[annotationVPC]}
	for text := range strings.SplitSeq(r.Annotations[annotationIP], ",") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return p, fmt.Errorf("pod %s: annotation %s: %w", p.Name, annotationIP, err)
		}
		p.IPs = append(p.IPs, ip)
	}
	return p, nil
}
