package snapshot

import (
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// Deployment is one OVN control plane: its databases, and the nodes that it controls. With OVN
// interconnection, each zone is one. NB or SB is nil where it was not collected; nodes
// without OVN are a deployment without both.
type Deployment struct {
	NB, SB *file.Index
	Nodes  []Member

	nbParts, sbParts *file.Index // what is known in part of a database that was not collected; nil for nothing
}

// Member is a node of a deployment.
type Member struct {
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

// Node returns the node of a name; the zero Member for none.
func (d *Deployment) Node(name string) Member {
	for _, node := range d.Nodes {
		if node.Name == name {
			return node
		}
	}
	return Member{}
}

// SwitchPortsCalled returns both names, OVN's and the user's, of each port of a switch that has name as one of them.
func SwitchPortsCalled(name string, deployments []*Deployment) (all []string, err error) {
	name = strings.TrimPrefix(name, "pod/") // as trace takes it
	use := func(port, called string) {
		if port == name || called == name {
			all = append(all, port, called)
		}
	}
	for _, d := range deployments {
		if d.NB != nil {
			err = ovn.EachSwitchPort(d.NB, func(p *ovn.SwitchPort) { use(p.Name, p.Called()) })
		} else {
			err = ovn.EachBinding(d.SB, func(b ovn.Binding) { use(b.Port, ovn.PortName(b.Port, b.Type, b.IDs, b.Addresses)) })
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
