// Package ovn has what is shared about an OVN deployment: its databases, its nodes and the
// settings of their ovn-controllers. Package names below it finds the endpoints in the
// databases, and package rules the rules that flows stand for.
package ovn

import (
	"ovs-offline/internal/workdir"
	"ovs-offline/pkg/ovsdb/file"
)

// Deployment is one OVN control plane: its databases, and the nodes that it controls. With OVN
// interconnection, each zone is one. NB or SB is nil where it was not collected; nodes
// without OVN are a deployment without both.
type Deployment struct {
	NB, SB *file.Index
	Nodes  []Node

	nbParts, sbParts *file.Index // what is known in part of a database that was not collected; nil for nothing
}

// Node is a node of a deployment.
type Node struct {
	Name string
	Dir  *workdir.Dir
	OVS  *file.Index // nil where it was not collected
}

// Close closes the databases.
func (d *Deployment) Close() {
	d.NB.Close()
	d.SB.Close()
	d.nbParts.Close()
	d.sbParts.Close()
	for _, node := range d.Nodes {
		node.OVS.Close()
	}
}

// CloseAll closes the databases of deployments.
func CloseAll(deployments []*Deployment) {
	for _, deployment := range deployments {
		deployment.Close()
	}
}

// Node returns the node of a name; the zero Node for none.
func (d *Deployment) Node(name string) Node {
	for _, node := range d.Nodes {
		if node.Name == name {
			return node
		}
	}
	return Node{}
}
