package graph

import (
	"fmt"
	"strings"

	"ovs-offline/internal/ovn"
)

// logicalPort is a port of a logical switch as other ports and interfaces refer to it.
type logicalPort struct {
	name     string // the name that a user gave, or else the name in OVN
	kind     string // the column type
	network  string
	children []string // with their tags
	virtual  []string // the virtual ports that it is a parent of
}

// logicalPorts returns the ports of all logical switches by their names in OVN,
// which are the iface-ids of their interfaces.
func logicalPorts(nb *ovn.Northbound) map[string]*logicalPort {
	ports := map[string]*logicalPort{}
	for _, p := range nb.SwitchPorts {
		port := &logicalPort{name: p.Called(), kind: p.Type}
		if p.Switch != nil {
			port.network = p.Switch.Called()
		}
		ports[p.Name] = port
	}
	for _, p := range nb.SwitchPorts {
		name := p.Called()
		if parent := ports[p.Parent]; parent != nil {
			parent.children = append(parent.children, strings.TrimSpace(name+" "+tagOf(p.Tag, p.Tag != 0)))
		}
		for _, parent := range virtualParents(p) {
			if port := ports[parent]; port != nil {
				port.virtual = append(port.virtual, name)
			}
		}
	}
	return ports
}

// virtualParents returns the names in OVN of the ports that may have the address of
// a virtual port.
func virtualParents(p *ovn.SwitchPort) []string {
	if p.Type != "virtual" {
		return nil
	}
	return strings.FieldsFunc(p.Options["virtual-parents"], func(char rune) bool { return char == ',' || char == ' ' })
}

// describe adds to the port of an interface what the interface carries beside its
// own logical port.
func (l *logicalPort) describe(port *Port) {
	if l.kind != "" {
		port.note(l.kind)
	}
	port.note(namedOrCounted("parent of", l.children))
	port.note(namedOrCounted("virtual parent of", l.virtual))
	for _, child := range l.children {
		port.detail("child", child)
	}
	for _, virtual := range l.virtual {
		port.detail("virtual port", virtual)
	}
}

// namedOrCounted returns the only one of some ports by its name, or their number.
func namedOrCounted(what string, ports []string) string {
	switch len(ports) {
	case 0:
		return ""
	case 1:
		return what + " " + ports[0]
	}
	return fmt.Sprintf("%s %d ports", what, len(ports))
}
