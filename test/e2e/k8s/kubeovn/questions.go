package kubeovn

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/e2e/k8s/fabric"
	"ovs-offline/test/e2e/k8s/truth"
)

// Serve starts servers in all pods and outside.
func (d *Deployment) Serve(pods []Pod) (io.Closer, error) {
	peers := []truth.Peer{d.outside()}
	for _, p := range pods {
		peers = append(peers, p.Peer)
	}
	return truth.ServeAll(peers)
}

// outside is a machine in the external network, which also has the addresses outside of the
// cluster.
func (d *Deployment) outside() truth.Peer {
	return truth.Peer{Name: fabric.OutsideName, Network: d.fabric.Network()}
}

// Questions returns all questions between the pods, and from them to services and to what is
// outside, and from there.
func (d *Deployment) Questions(ctx context.Context, pods []Pod) ([]truth.Question, error) {
	var list []truth.Question
	for _, from := range pods {
		for _, to := range pods {
			if from.Name != to.Name {
				list = append(list, between(from, to)...)
			}
		}
		if from.Namespace == "edge" {
			for _, address := range append(fabric.OutsideAddresses, ExternalGateway) {
				list = append(list, truth.Outside(from.Peer, netip.MustParseAddr(address), fabric.OutsideName))
			}
		}
	}
	list = append(list, d.fromOutside()...)
	services, err := d.toServices(ctx, pods)
	return append(list, services...), err
}

// between returns the questions between two pods.
func between(from, to Pod) (list []truth.Question) {
	for _, protocol := range []string{"tcp", "udp", "icmp"} {
		if protocol == "udp" && from.Node == to.Node && from.Subnet == to.Subnet {
			continue // as with TCP
		}
		list = append(list, truth.Between(from.Peer, to.Peer, protocol, to.IPs[0]))
	}
	if len(from.IPs) > 1 && len(to.IPs) > 1 {
		q := truth.Between(from.Peer, to.Peer, "tcp", to.IPs[1])
		q.Family = 6
		list = append(list, q)
	}
	return list
}

// fromOutside returns the questions from the external network to the addresses of the VPC edge.
func (d *Deployment) fromOutside() (list []truth.Question) {
	for _, to := range []string{"172.19.0.51:8080", "172.19.0.52:8080", "172.19.0.52:80"} {
		list = append(list, truth.Question{From: "external/" + ExternalGateway, To: to, Protocol: "tcp", Sender: d.fabric.Network(), Address: netip.MustParseAddrPort(to)})
	}
	return list
}

// toServices returns the questions to the services and to the SwitchLBRule.
func (d *Deployment) toServices(ctx context.Context, pods []Pod) (list []truth.Question, err error) {
	services, err := d.Cluster.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		if s.Namespace == "default" || s.Spec.ClusterIP == "None" {
			continue // the API server is not in the pods' network
		}
		for _, port := range s.Spec.Ports {
			for _, from := range pods {
				for family, ip := range s.Spec.ClusterIPs {
					if family >= len(from.IPs) {
						continue
					}
					q := truth.Service(from.Peer, s.Namespace+"/"+s.Name, strings.ToLower(string(port.Protocol)), netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port.Port)))
					if q.Tries = 8; family > 0 { // the answer may depend on the endpoint
						q.Family = 6
					}
					q.Sticks = s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP
					list = append(list, q)
				}
			}
		}
	}
	for _, from := range pods {
		if from.VPC == "blue" {
			at := netip.MustParseAddrPort(lbRule)
			list = append(list, truth.Question{From: from.Name, To: lbRule, Protocol: "tcp", Sender: from.Network, Address: at, Tries: 8})
		}
	}
	return list, nil
}

// lbRule is the address and port of the SwitchLBRule.
const lbRule = "172.30.0.100:8088"

// Truths adds the objects, asks all questions with real packets, and returns the pods and what
// happened. The servers that answered are left, since kube-ovn checks the health of those of the
// SwitchLBRule.
func (d *Deployment) Truths(ctx context.Context) ([]Pod, []truth.Truth, io.Closer, error) {
	pods, err := d.AddObjects(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	servers, err := d.Serve(pods)
	if err != nil {
		return nil, nil, nil, err
	}
	truths, err := d.ask(ctx, pods)
	if err != nil {
		servers.Close()
		return nil, nil, nil, err
	}
	return pods, truths, servers, nil
}

func (d *Deployment) ask(ctx context.Context, pods []Pod) ([]truth.Truth, error) {
	if err := d.settle(ctx); err != nil {
		return nil, err
	}
	questions, err := d.Questions(ctx, pods)
	if err != nil {
		return nil, err
	}
	return truth.Find(ctx, questions)
}

// settle waits until kube-ovn has made what the objects ask for, and until each ovn-controller
// has installed it.
func (d *Deployment) settle(ctx context.Context) error {
	n := d.Nodes[0]
	err := d.Controller.Await(ctx, func() error {
		for _, want := range [][2]string{
			{"NAT", "external_ip=172.19.0.50"}, {"NAT", "external_ip=172.19.0.51"}, {"Load_Balancer", "name=edge-dnat"},
			{"Port_Group", "name=db.for.front.shop"}, {"Port_Group", "name=closed.front"}, {"Port_Group", "name=closed.green"},
			{"Port_Group", "name=no.guard"}, {"Port_Group", "name=default"},
		} {
			out, err := n.find(ctx, want[0], want[1])
			if err != nil {
				return err
			}
			if out == "" {
				return fmt.Errorf("no %s with %s", want[0], want[1])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.Tool(ctx, "ovn-nbctl", "--wait=hv", "--timeout=60", "sync")
}
