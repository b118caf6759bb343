package rules

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/iproute"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir/netns"
)

// routerDoesNotForward finds neutron's routers whose network namespace forwards no IPv4 packets: the agent switches that on when
// it makes the namespace (neutron/agent/l3/namespaces.py).
func routerDoesNotForward() rule.Rule {
	return rule.Rule{
		Name: "router-does-not-forward", Severity: rule.Error,
		Needs:   []rule.Data{rule.Namespaces()},
		Follows: "packets between the networks of this router are dropped",
		Sources: []string{"ip-sysctl of Linux, ip_forward"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			namespaces, err := n.Namespaces()
			for _, namespace := range namespaces {
				if namespace.Name != netns.Own && namespace.IsRouter() && namespace.Sysctls["net.ipv4.ip_forward"] == "0" {
					found(rule.Finding{What: fmt.Sprintf("network namespace %s does not forward: net.ipv4.ip_forward is 0", namespace.Name),
						Evidence: []string{"sysctl -a of network namespace " + namespace.Name},
						Next:     []rule.Next{rule.OnTheNode("ip", "netns", "exec", namespace.Name, "sysctl", "net.ipv4.ip_forward")}})
				}
			}
			return err
		},
	}
}

// routerActiveTwice finds the highly available routers of neutron that are active on several nodes: keepalived gives the addresses of
// a router to one node. Where the nodes were not recorded at the same time, that is a warning: the router may have moved.
func routerActiveTwice() rule.Rule {
	return rule.Rule{
		Name: "router-active-twice", Severity: rule.Error,
		Needs:   []rule.Data{rule.Namespaces()},
		Follows: "several nodes answer for the addresses of the router, and its packets go to any of them",
		Sources: []string{"the administration guide of neutron, L3 high availability: keepalived and VRRP"},
		Case: func(_ context.Context, c *rule.Case, found func(rule.Finding)) error {
			active := map[string]map[string]time.Time{} // by namespace and node, when the node was recorded
			for _, n := range c.Nodes() {
				namespaces, err := n.Namespaces()
				if err != nil {
					return err
				}
				at, err := n.Recorded()
				if err != nil {
					return err
				}
				for _, namespace := range namespaces {
					if isHA(namespace) && !isStandby(namespace) {
						if active[namespace.Name] == nil {
							active[namespace.Name] = map[string]time.Time{}
						}
						active[namespace.Name][n.Name] = at
					}
				}
			}
			for _, name := range slices.Sorted(maps.Keys(active)) {
				if on := active[name]; len(on) > 1 {
					times := slices.SortedFunc(maps.Values(on), time.Time.Compare)
					severity, between := rule.Error, times[len(times)-1].Sub(times[0])
					what := "the router of network namespace " + name + " is active on each of these nodes"
					if between > failover {
						severity, what = rule.Warning, fmt.Sprintf("%s, which were recorded within %s: it may have moved in between", what, phrase.Duration(between))
					}
					found(rule.Finding{Severity: severity, What: what, Nodes: slices.Sorted(maps.Keys(on)),
						Evidence: []string{"ip address of network namespace " + name + ": addresses of the devices qr-, qg- and sg-"},
						Next: []rule.Next{rule.Elsewhere("on a client of OpenStack", "openstack network agent list --router ROUTER --long   # HA State"),
							rule.OnTheNode("ip", "netns", "exec", name, "ip", "address")}})
				}
			}
			return nil
		},
	}
}

// failover is longer than keepalived needs to activate a router on another node: three advertisements, of 2 s each by default (ha_vrrp_advert_int
// of neutron).
const failover = 10 * time.Second

// isHA reports whether a highly available router lives in a network namespace: keepalived uses its device ha-.
func isHA(n netns.Namespace) bool {
	return slices.ContainsFunc(n.Links, func(l iproute.Link) bool { return strings.HasPrefix(l.Name, "ha-") })
}

// isStandby reports whether a highly available router is not active on a node: its devices to the networks have no IPv4 addresses. Its
// gateway port is switched off then (neutron/agent/l3/ha_router.py).
func isStandby(n netns.Namespace) bool {
	for _, link := range n.Links {
		if kind, _, ok := strings.Cut(link.Name, "-"); !ok || kind != "qr" && kind != "qg" && kind != "sg" {
			continue
		}
		if slices.ContainsFunc(link.Addresses, func(a netip.Addr) bool { return a.Is4() }) {
			return false
		}
	}
	return isHA(n)
}
