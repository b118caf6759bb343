package netns

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/iproute"
)

// OwnTitle is how people name the node's own network namespace.
const OwnTitle = "node"

// Title returns the name of a namespace for people.
func Title(name string) string {
	if name == Own {
		return OwnTitle
	}
	return name
}

// Link returns a device of the namespace by its name.
func (n Namespace) Link(name string) (link iproute.Link, ok bool) {
	for _, link := range n.Links {
		if link.Name == name {
			return link, true
		}
	}
	return iproute.Link{}, false
}

// IsRouter reports whether a namespace forwards packets even if its settings were not recorded. Neutron's routers do, and so
// does a node with a device of OVN-Kubernetes or kube-ovn to its pods.
func (n Namespace) IsRouter() bool {
	if n.Name == Own {
		return slices.ContainsFunc(n.Links, func(l iproute.Link) bool { return strings.HasPrefix(l.Name, "ovn-k8s-mp") || l.Name == "ovn0" })
	}
	return slices.ContainsFunc([]string{"qrouter-", "snat-", "fip-"}, func(kind string) bool { return strings.HasPrefix(n.Name, kind) })
}

// KnowsForwarding reports whether it was recorded if the namespace forwards packets of a family, 4 or 6.
func (n Namespace) KnowsForwarding(family int) bool {
	_, all := n.Sysctls[fmt.Sprintf("net.ipv%d.conf.all.forwarding", family)]
	_, ipv4 := n.Sysctls["net.ipv4.ip_forward"]
	return all || ipv4 && family == 4
}

// end is a device of a namespace.
type end struct {
	namespace string
	link      iproute.Link
}

// Peer returns the other end of a pair of virtual devices (veth). Each end names the index of the other, which
// is unique in its namespace only: of several devices that fit, the one whose name ends alike is the peer,
// as neutron names both ends for their router (rfp-ID and fpr-ID).
func Peer(all []Namespace, namespace, device string) (other, peer string, ok bool) {
	var own end
	for _, n := range all {
		if link, has := n.Link(device); has && n.Name == namespace {
			own = end{namespace, link}
		}
	}
	if own.link.Peer == "" {
		return "", "", false
	}
	var fitting, alike []end
	for _, n := range all {
		for _, link := range n.Links {
			found := end{n.Name, link}
			if !joined(own, found) {
				continue
			}
			fitting = append(fitting, found)
			if suffix(link.Name) == suffix(device) {
				alike = append(alike, found)
			}
		}
	}
	if len(alike) == 1 {
		fitting = alike
	}
	if len(fitting) != 1 {
		return "", "", false
	}
	return fitting[0].namespace, fitting[0].link.Name, true
}

// joined reports whether each of two devices names the other as its peer.
func joined(a, b end) bool {
	names := func(from, to end) bool {
		return from.link.Peer == fmt.Sprint("if", to.link.Index) || from.namespace == to.namespace && from.link.Peer == to.link.Name
	}
	return names(a, b) && names(b, a) && (a.namespace != b.namespace || a.link.Name != b.link.Name)
}

// suffix returns what follows the first dash in the name of a device.
func suffix(name string) string {
	_, rest, _ := strings.Cut(name, "-")
	return rest
}
