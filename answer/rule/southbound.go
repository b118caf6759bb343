package rule

import (
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
)

// southbound is what rules need of the southbound database. It is read once.
type southbound struct {
	chassis  []ovn.Chassis
	bindings map[string]ovn.Binding
}

// Chassis returns the chassis of the southbound database, none where it was not collected.
func (d *Deployment) Chassis() ([]ovn.Chassis, error) {
	read, err := d.southbound()
	if err != nil {
		return nil, err
	}
	return read.chassis, nil
}

// Bindings returns the rows of Port_Binding by their logical ports, none where the southbound
// database was not collected.
func (d *Deployment) Bindings() (map[string]ovn.Binding, error) {
	read, err := d.southbound()
	if err != nil {
		return nil, err
	}
	return read.bindings, nil
}

// ChassisOf returns the chassis of a node; ok is false where the southbound database has none.
func (n *Node) ChassisOf() (chassis ovn.Chassis, ok bool, err error) {
	settings, err := n.Settings()
	if err != nil {
		return chassis, false, err
	}
	all, err := n.Deployment.Chassis()
	for _, c := range all {
		if c.Name == settings.Chassis() && c.Name != "" {
			return c, true, err
		}
	}
	return chassis, false, err
}

func readSouthbound(sb *file.Index) (*southbound, error) {
	read := &southbound{bindings: map[string]ovn.Binding{}}
	var err error
	if read.chassis, err = ovn.ReadChassis(sb); err != nil {
		return nil, err
	}
	return read, ovn.EachBinding(sb, func(b ovn.Binding) { read.bindings[b.Port] = b })
}
