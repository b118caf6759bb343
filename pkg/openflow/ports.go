package openflow

import (
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// port matches a port that a flow or a group names, in its match or in an action at any depth.
var port = lazyregexp.New(`\b(?:in_port=|output:|output\(port=|enqueue[:(])("(?:[^"\\]|\\.)*"|[^\s,:()\[\]"]+\[?)`)

// Ports returns the ports that a flow or a group names: their numbers, or the names that ovs-ofctl prints on a terminal. Reserved
// ports (LOCAL, NORMAL, ...) and fields that hold a port are left out.
func Ports(entry string) (list []string) {
	for _, match := range port.FindAllStringSubmatch(entry, -1) {
		name := match[1]
		if plain, err := strconv.Unquote(name); err == nil {
			list = append(list, plain)
		} else if !strings.HasSuffix(name, "[") && !isReserved(name) {
			list = append(list, name)
		}
	}
	for action := range Split((Flow{Text: entry}).Actions()) {
		if _, err := strconv.Atoi(action); err == nil {
			list = append(list, action)
		}
	}
	return list
}

// isReserved reports whether a word is the name of a reserved port, in any case (ovs-ofctl(8)).
func isReserved(word string) bool {
	return slices.Contains([]string{"IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL", "ANY", "NONE", "UNSET"}, strings.ToUpper(word))
}
