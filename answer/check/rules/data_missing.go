package rules

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// dataMissing finds data that was collected of some nodes and is missing of others, which should have it as well.
func dataMissing() rule.Rule {
	return rule.Rule{
		Name: "data-missing", Severity: rule.Warning,
		Follows: "what depends on this data is not judged, and traces may lack it",
		Needs:   []rule.Data{rule.Either(rule.OVS(), rule.NB(), rule.SB())},
		Sources: []string{"manifest.json of the working directory"},
		Case: func(_ context.Context, c *rule.Case, found func(rule.Finding)) error {
			parts := partsOfNodes{has: map[string][]string{}, lacks: map[string][]string{}, next: map[string]rule.Next{}}
			for _, n := range c.Nodes() {
				for _, look := range []func(*rule.Node) error{parts.addFlows, parts.addDatabases, parts.addNamespaces} {
					if err := look(n); err != nil {
						return err
					}
				}
			}
			var nowhere []string
			for _, part := range parts.order {
				switch has, lacks := parts.has[part], parts.lacks[part]; {
				case len(lacks) > 0 && len(has) > 0:
					found(rule.Finding{What: fmt.Sprintf("%s were not collected, as those of %s were", part, phrase.FirstNames(has)), Nodes: lacks,
						Evidence: []string{"manifest.json of the working directory of each node"}, Next: []rule.Next{parts.next[part]}})
				case len(lacks) > 0:
					nowhere = append(nowhere, fmt.Sprintf("%s of %s", part, phrase.FirstNames(lacks)))
				}
			}
			if len(nowhere) > 0 {
				return fmt.Errorf("%s were not collected", phrase.FirstNames(nowhere))
			}
			return nil
		},
	}
}

// partsOfNodes are the parts of the data of nodes, with the names of the nodes that have them and that lack them.
type partsOfNodes struct {
	order      []string // of the parts
	has, lacks map[string][]string
	next       map[string]rule.Next // how to get a part
}

func (p *partsOfNodes) add(part string, n *rule.Node, has bool, next rule.Next) {
	if _, known := p.next[part]; !known {
		p.order, p.next[part] = append(p.order, part), next
	}
	if has {
		p.has[part] = append(p.has[part], n.Name)
	} else {
		p.lacks[part] = append(p.lacks[part], n.Name)
	}
}

// addFlows adds the flows of each bridge of a node.
func (p *partsOfNodes) addFlows(n *rule.Node) error {
	dumped, err := n.Dir.DumpedBridges(workdir.Flows)
	if err != nil || len(dumped) == 0 {
		return err
	}
	bridges, err := n.Bridges()
	for _, b := range bridges {
		p.add("the flows of "+b.Name, n, slices.Contains(dumped, b.Name), rule.OnTheNode("ovs-ofctl dump-flows", b.Name))
	}
	return err
}

// addDatabases adds the databases of OVN of a node that has one of them.
func (p *partsOfNodes) addDatabases(n *rule.Node) error {
	manifest, err := n.Manifest()
	if err != nil {
		return err
	}
	nb, sb := manifest.Collection(workdir.NB) != nil, manifest.Collection(workdir.SB) != nil
	if nb || sb {
		p.add("the rows of the northbound database", n, nb, rule.OnTheNode("ovsdb-client backup unix:/run/ovn/ovnnb_db.sock OVN_Northbound > ovnnb_db.db"))
		p.add("the rows of the southbound database", n, sb, rule.OnTheNode("ovsdb-client backup unix:/run/ovn/ovnsb_db.sock OVN_Southbound > ovnsb_db.db"))
	}
	return nil
}

// addNamespaces adds the network namespaces of a node that has ports of neutron's routers, which live in them.
func (p *partsOfNodes) addNamespaces(n *rule.Node) error {
	bridges, err := n.Bridges()
	if err != nil {
		return err
	}
	for _, b := range bridges {
		for _, port := range b.Ports {
			if isOfRouter(port.Name) {
				namespaces, err := n.Namespaces()
				named := slices.ContainsFunc(namespaces, func(namespace netns.Namespace) bool { return namespace.Name != netns.Own })
				p.add("the network namespaces", n, named, rule.OnTheNode("sos report --only-plugins networking,openvswitch"))
				return err
			}
		}
	}
	return nil
}
