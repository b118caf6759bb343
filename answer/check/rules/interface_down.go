package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/iproute"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// interfaceDown finds the interfaces without a link. Internal interfaces count only if they have a
// logical port: the one with the name of its bridge is down on many healthy nodes. Where the devices of the node were
// recorded, they decide: ovs-vswitchd does not see the flags of a device in another network namespace (netdev-linux.c). A device of the same name
// in another namespace is one of Open vSwitch only if it is internal.
func interfaceDown() rule.Rule {
	return rule.Rule{
		Name: "interface-down", Severity: rule.Error,
		Needs:   []rule.Data{rule.Printed("Interface", "name", "type", "admin_state", "link_state", "external_ids")},
		Follows: "no packet enters or leaves by this interface",
		Sources: []string{"ovs-vswitchd.conf.db(5), Interface, admin_state and link_state"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			printed, _, err := n.Printed("Interface", "name", "type", "admin_state", "link_state", "external_ids")
			if err != nil {
				return err
			}
			namespaces, err := n.Namespaces()
			if err != nil {
				return err
			}
			text, err := n.Output(workdir.RecordedLinks)
			namespaces = append([]netns.Namespace{{Name: netns.Own, Links: iproute.Links(text)}}, namespaces...)
			if err != nil {
				return err
			}
			var unknown []string
			for _, row := range printed {
				if f, ok := linkFinding(row, namespaces); ok {
					found(f)
				} else if name := row.Column("name"); isOfRouter(name) {
					if device, _ := deviceIn(namespaces, name); device == nil {
						unknown = append(unknown, name)
					}
				}
			}
			if len(unknown) > 0 {
				return fmt.Errorf("the network namespaces of %s were not recorded (sos report has them in its plugin networking)", phrase.FirstNames(unknown))
			}
			return nil
		},
	}
}

// linkFinding returns the finding about an interface that has no link; ok is false for others, and where nothing tells.
func linkFinding(row ovsdb.Record, namespaces []netns.Namespace) (f rule.Finding, ok bool) {
	name, port, kind := row.Column("name"), file.PrintedMap(row.Column("external_ids"))["iface-id"], row.Column("type")
	if kind != "" && kind != "system" && kind != "dpdk" && (kind != "internal" || port == "") {
		return f, false
	}
	off, unplugged := row.Column("admin_state") == "down", row.Column("link_state") == "down"
	title, evidence, show := name, "ovs-vsctl list Interface: admin_state, link_state", []string{"ip", "link", "show", name}
	if kind != "internal" {
		namespaces = namespaces[:1]
	}
	if device, in := deviceIn(namespaces, name); device != nil {
		if !device.Up && isStandbyOf(namespaces, in) {
			return f, false
		}
		off, unplugged, evidence = !device.Up, !device.Carrier, "ip address of network namespace "+netns.Title(in)
		if in != netns.Own {
			title += " in network namespace " + in
			show = append([]string{"ip", "netns", "exec", in}, show...)
		}
	} else if kind == "internal" && !strings.HasPrefix(name, managementPort) {
		return f, false // it may be in a namespace that was not recorded
	}
	state := "has no link"
	switch {
	case off:
		state = "is switched off"
	case !unplugged:
		return f, false
	}
	if port != "" {
		title += " of port " + port
	}
	return rule.Finding{What: fmt.Sprintf("interface %s %s", title, state), Evidence: []string{evidence},
		Next: []rule.Next{rule.OnTheNode(show[0], show[1:]...)}}, true
}

// managementPort is how the names of ovn-kubernetes' ports of the node itself begin, which stay in the node's own namespace
// (go-controller/pkg/types, K8sMgmtIntfNamePrefix).
const managementPort = "ovn-k8s-mp"

// deviceIn returns a device with a name, and the namespace that has it; nil if none of the recorded ones has it.
func deviceIn(namespaces []netns.Namespace, name string) (*iproute.Link, string) {
	for _, namespace := range namespaces {
		if device, ok := namespace.Link(name); ok {
			return &device, namespace.Name
		}
	}
	return nil, ""
}

// isStandbyOf reports whether a highly available router of neutron, which is not active on this node, lives in a namespace.
func isStandbyOf(namespaces []netns.Namespace, name string) bool {
	return slices.ContainsFunc(namespaces, func(n netns.Namespace) bool { return n.Name == name && isStandby(n) })
}

// isOfRouter reports whether an interface has the name of a port of neutron's routers, which are in network namespaces.
func isOfRouter(name string) bool {
	return slices.ContainsFunc([]string{"qr-", "qg-", "ha-", "sg-", "fg-"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
