package ovnkube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/e2e/k8s/fabric"
	"ovs-offline/test/e2e/k8s/truth"
)

// Title returns the name that users give a pod.
func (p Pod) Title() string { return p.Namespace + "/" + p.Name }

// Questions returns all questions between the pods, and from them to services, nodes and
// what is outside.
func (d *Deployment) Questions(ctx context.Context, pods []Pod) ([]truth.Question, error) {
	var list []truth.Question
	for _, from := range pods {
		for _, to := range pods {
			if from.Title() != to.Title() {
				list = append(list, between(from, to)...)
			}
		}
		for _, address := range fabric.OutsideAddresses {
			list = append(list, truth.Outside(from.peer(), netip.MustParseAddr(address), fabric.OutsideName))
		}
	}
	list = append(list, betweenSecondary(pods)...)
	services, err := d.toServices(ctx, pods)
	return append(list, services...), err
}

// peer returns the pod as one who asks and answers.
func (p Pod) peer() truth.Peer { return truth.Peer{Name: p.Title(), Network: p.Network} }

// between returns the questions between two pods: with TCP, and where they have a network
// in common, with other protocols and over IPv6.
func between(from, to Pod) (list []truth.Question) {
	ask := func(protocol string, ip netip.Addr, family int) {
		q := truth.Between(from.peer(), to.peer(), protocol, ip)
		q.Family = family
		list = append(list, q)
	}
	ask("tcp", to.IPs[0], 0)
	if from.NAD != to.NAD {
		return list
	}
	ask("icmp", to.IPs[0], 0)
	if len(to.IPs) > 1 {
		ask("tcp", to.IPs[1], 6)
	}
	if from.Node != to.Node {
		ask("udp", to.IPs[0], 0)
	}
	return list
}

// betweenSecondary returns the questions between the pods of each secondary network, which
// have to name it.
func betweenSecondary(pods []Pod) (list []truth.Question) {
	for _, from := range pods {
		for _, to := range pods {
			for network, ip := range to.Secondary {
				if _, has := from.Secondary[network]; !has || from.Title() == to.Title() {
					continue
				}
				for _, protocol := range []string{"tcp", "udp", "icmp"} {
					q := truth.Between(from.peer(), to.peer(), protocol, ip)
					q.Network = network
					list = append(list, q)
				}
			}
		}
	}
	return list
}

// toServices returns the questions to the services.
func (d *Deployment) toServices(ctx context.Context, pods []Pod) (list []truth.Question, err error) {
	services, err := d.Cluster.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		if s.Namespace == "default" {
			continue // the API server is not in the pods' network
		}
		ip := netip.MustParseAddr(s.Spec.ClusterIP)
		for _, port := range s.Spec.Ports {
			protocol := strings.ToLower(string(port.Protocol))
			for _, from := range pods {
				q := truth.Service(from.peer(), s.Namespace+"/"+s.Name, protocol, netip.AddrPortFrom(ip, uint16(port.Port)))
				if from.Namespace == s.Namespace { // a policy may treat the sender's own endpoint otherwise
					q.Tries = 12
				}
				list = append(list, q)
				if len(s.Spec.ClusterIPs) > 1 && len(from.IPs) > 1 {
					q.Family, q.Address = 6, netip.AddrPortFrom(netip.MustParseAddr(s.Spec.ClusterIPs[1]), uint16(port.Port))
					list = append(list, q)
				}
			}
			if port.NodePort != 0 {
				list = append(list, d.toNodePorts(pods, protocol, uint16(port.NodePort))...)
			}
		}
	}
	return list, nil
}

// toNodePorts returns the questions to a node port, from pods of the default network and
// from outside.
func (d *Deployment) toNodePorts(pods []Pod, protocol string, port uint16) (list []truth.Question) {
	for _, n := range d.Nodes {
		address := netip.AddrPortFrom(netip.MustParseAddr(n.IPv4), port)
		q := truth.Question{From: "external/" + fabric.Outside4, To: address.String(), Protocol: protocol, Sender: d.fabric.Network(), Address: address}
		list = append(list, q)
		for _, from := range pods {
			if from.Namespace == "front" || from.Namespace == "mono" {
				q.From, q.Sender = from.Title(), from.Network
				list = append(list, q)
			}
		}
	}
	return list
}

// readNetworks reads the addresses of a pod in the network that its programs use, as
// ovnkube has written them into the annotation.
func (p *Pod) readNetworks(annotation string) error {
	var networks map[string]struct {
		Addresses []string `json:"ip_addresses"`
		Role      string   `json:"role"`
	}
	if err := json.Unmarshal([]byte(annotation), &networks); err != nil {
		return fmt.Errorf("pod %s: annotation %q: %w", p.Title(), annotation, err)
	}
	p.Secondary = map[string]netip.Addr{}
	for name, network := range networks {
		if network.Role != "primary" {
			if network.Role == "secondary" {
				prefix, err := netip.ParsePrefix(network.Addresses[0])
				if err != nil {
					return err
				}
				p.Secondary[name] = prefix.Addr()
			}
			continue
		}
		p.NAD = name
		for _, text := range network.Addresses {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return err
			}
			p.IPs = append(p.IPs, prefix.Addr())
		}
	}
	if len(p.IPs) == 0 {
		return fmt.Errorf("pod %s has no primary network in %q", p.Title(), annotation)
	}
	return nil
}
