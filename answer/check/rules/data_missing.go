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
			var parts partsOfNodes
			for _, n := range c.Nodes() {
				for _, look := range []func(*rule.Node) error{parts.addFlows, parts.addDatabases, parts.addNamespaces} {
					if err := look(n); err != nil {
						return err
					}
				}
			}
			var nowhere []string
			for _, part := range parts {
				switch {
				case len(part.lacks) > 0 && len(part.has) > 0:
					found(rule.Finding{What: fmt.Sprintf("%s were not collected; they were collected from %s", part.name, phrase.FirstNames(part.has)), Nodes: part.lacks,
						Evidence: []string{"manifest.json of the working directory of each node"}, Next: []rule.Next{part.next}})
				case len(part.lacks) > 0 && part.always:
					nowhere = append(nowhere, fmt.Sprintf("%s of %s", part.name, phrase.FirstNames(part.lacks)))
				}
			}
			if len(nowhere) > 0 {
				return fmt.Errorf("%s were not collected", phrase.FirstNames(nowhere))
			}
			return nil
		},
	}
}

// partOfNodes is a part of the data of nodes.
type partOfNodes struct {
	name       string
	has, lacks []string  // the names of the nodes that have it, and of those that lack it
	next       rule.Next // how to get it
	always     bool      // a node that lacks it is named even if no node has it
}

type partsOfNodes []*partOfNodes

// add notes whether a node has a part.
func (p *partsOfNodes) add(part partOfNodes, n *rule.Node, has bool) {
	i := slices.IndexFunc(*p, func(known *partOfNodes) bool { return known.name == part.name })
	if i < 0 {
		i = len(*p)
		*p = append(*p, &part)
	}
	if known := (*p)[i]; has {
		known.has = append(known.has, n.Name)
	} else {
		known.lacks = append(known.lacks, n.Name)
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
		p.add(partOfNodes{name: "the flows of " + b.Name, next: rule.OnTheNode("ovs-ofctl dump-flows", b.Name), always: true}, n, slices.Contains(dumped, b.Name))
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
		p.add(partOfNodes{name: "the rows of the northbound database", next: rule.OnTheNode("ovsdb-client backup unix:/run/ovn/ovnnb_db.sock OVN_Northbound > ovnnb_db.db")}, n, nb)
		p.add(partOfNodes{name: "the rows of the southbound database", next: rule.OnTheNode("ovsdb-client backup unix:/run/ovn/ovnsb_db.sock OVN_Southbound > ovnsb_db.db")}, n, sb)
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
				p.add(partOfNodes{name: "the network namespaces", next: rule.OnTheNode("sos report --only-plugins networking,openvswitch")}, n, named)
				return err
			}
		}
	}
	return nil
}
