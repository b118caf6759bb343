package graph

import (
	"fmt"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
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
func logicalPorts(content *file.Content) map[string]*logicalPort {
	rows := content.Rows("Logical_Switch_Port")
	ports, byUUID := map[string]*logicalPort{}, map[string]*logicalPort{}
	for _, row := range rows {
		port := &logicalPort{name: givenName(row, portName), kind: row.String("type")}
		ports[row.String("name")], byUUID[row.UUID] = port, port
	}
	for _, row := range content.Rows("Logical_Switch") {
		for _, id := range row.UUIDs("ports") {
			if port := byUUID[id]; port != nil {
				port.network = givenName(row, networkName)
			}
		}
	}
	for _, row := range rows {
		name := byUUID[row.UUID].name
		if parent := ports[row.String("parent_name")]; parent != nil {
			parent.children = append(parent.children, strings.TrimSpace(name+" "+tagOf(row)))
		}
		for _, parent := range virtualParents(row) {
			if port := ports[parent]; port != nil {
				port.virtual = append(port.virtual, name)
			}
		}
	}
	return ports
}

// virtualParents returns the names in OVN of the ports that may have the address of
// a virtual port.
func virtualParents(row ovsdb.Row) []string {
	if row.String("type") != "virtual" {
		return nil
	}
	return strings.FieldsFunc(row.Map("options")["virtual-parents"], func(char rune) bool { return char == ',' || char == ' ' })
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
