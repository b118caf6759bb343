package ovnkube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Question asks whether a sender reaches what a user calls To. Written as JSON, it is a check
// of `trace --file`.
type Question struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Protocol string `json:"protocol"`
	Network  string `json:"network,omitempty"`
	Family   int    `json:"family,omitempty"`

	network cluster.Network // of the sender
	address netip.AddrPort  // what the sender's program takes To for
	only    string          // the one whose answer counts, "" for any
	tries   int             // how often to ask, since the answer may depend on the endpoint; 0 for once
}

// Truth is what happened to the packets of a question.
type Truth struct {
	Question
	Expect string `json:"expect"` // the right verdict: reachable, unreachable or, if the endpoints differ, ambiguous
}

// Find asks all questions with real packets, several at once.
func Find(ctx context.Context, questions []Question) ([]Truth, error) {
	truths, errs := make([]Truth, len(questions)), make([]error, len(questions))
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i, q := range questions {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			truths[i].Question = q
			truths[i].Expect, errs[i] = q.find(ctx)
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s to %s (%s): %w", questions[i].From, questions[i].To, questions[i].Protocol, err)
		}
	}
	return truths, nil
}

// find returns the right verdict.
func (q Question) find(ctx context.Context) (string, error) {
	reached, tries := 0, max(1, q.tries)
	for range tries {
		answer, err := Ask(ctx, q.network, q.Protocol, q.address)
		if err != nil {
			return "", err
		}
		if answer != "" && (q.only == "" || q.only == answer || q.Protocol == "icmp") {
			reached++
		}
	}
	switch reached {
	case 0:
		return "unreachable", nil
	case tries:
		return "reachable", nil
	}
	return "ambiguous", nil
}

// Title returns the name that users give a pod.
func (p Pod) Title() string { return p.Namespace + "/" + p.Name }

// Questions returns all questions between the pods, and from them to services, nodes and
// what is outside.
func (d *Deployment) Questions(ctx context.Context, pods []Pod) ([]Question, error) {
	var list []Question
	for _, from := range pods {
		for _, to := range pods {
			if from.Title() != to.Title() {
				list = append(list, between(from, to)...)
			}
		}
		for _, address := range OutsideAddresses {
			list = append(list, d.toOutside(from, address)...)
		}
	}
	list = append(list, betweenSecondary(pods)...)
	services, err := d.toServices(ctx, pods)
	return append(list, services...), err
}

// between returns the questions between two pods: with TCP, and where they have a network
// in common, with other protocols and over IPv6.
func between(from, to Pod) (list []Question) {
	ask := func(protocol string, ip netip.Addr, family int) {
		q := Question{From: from.Title(), To: to.Title(), Protocol: protocol, Family: family, network: from.Network, only: to.Title(), address: netip.AddrPortFrom(ip, ServerPort)}
		if protocol != "icmp" {
			q.To += fmt.Sprintf(":%d", ServerPort)
		}
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
func betweenSecondary(pods []Pod) (list []Question) {
	for _, from := range pods {
		for _, to := range pods {
			for network, ip := range to.Secondary {
				if _, has := from.Secondary[network]; !has || from.Title() == to.Title() {
					continue
				}
				for _, protocol := range []string{"tcp", "udp", "icmp"} {
					q := Question{From: from.Title(), To: to.Title(), Protocol: protocol, Network: network, network: from.Network, only: to.Title(), address: netip.AddrPortFrom(ip, ServerPort)}
					if protocol != "icmp" {
						q.To += fmt.Sprintf(":%d", ServerPort)
					}
					list = append(list, q)
				}
			}
		}
	}
	return list
}

func (d *Deployment) toOutside(from Pod, address string) []Question {
	ip := netip.MustParseAddr(address)
	q := Question{From: from.Title(), Protocol: "tcp", network: from.Network, address: netip.AddrPortFrom(ip, ServerPort), only: outside}
	q.To = fmt.Sprintf("external/%s:%d", ip, ServerPort)
	return []Question{q}
}

// toServices returns the questions to the services.
func (d *Deployment) toServices(ctx context.Context, pods []Pod) (list []Question, err error) {
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
				q := Question{From: from.Title(), Protocol: protocol, network: from.Network}
				if from.Namespace == s.Namespace { // a policy may treat the sender's own endpoint otherwise
					q.tries = 12
				}
				q.To, q.address = fmt.Sprintf("svc/%s/%s:%d", s.Namespace, s.Name, port.Port), netip.AddrPortFrom(ip, uint16(port.Port))
				list = append(list, q)
				if len(s.Spec.ClusterIPs) > 1 && len(from.IPs) > 1 {
					q.Family, q.address = 6, netip.AddrPortFrom(netip.MustParseAddr(s.Spec.ClusterIPs[1]), uint16(port.Port))
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
func (d *Deployment) toNodePorts(pods []Pod, protocol string, port uint16) (list []Question) {
	for _, n := range d.Nodes {
		address := netip.AddrPortFrom(netip.MustParseAddr(n.IPv4), port)
		q := Question{From: "external/" + Outside4, To: address.String(), Protocol: protocol, network: d.fabric.network(), address: address}
		list = append(list, q)
		for _, from := range pods {
			if from.Namespace == "front" || from.Namespace == "mono" {
				q.From, q.network = from.Title(), from.Network
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
