package sosreport

import (
	"path"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// bridges returns the node's bridges, each once: from ovs-vsctl list-br, else from
// the printed Bridge table, else from the names of the flow dumps.
func (c *contents) bridges(byFile map[string]executed) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(c.listed(byFile), func(bridge string) bool {
		again := seen[bridge]
		seen[bridge] = true
		return again
	})
}

func (c *contents) listed(byFile map[string]executed) []string {
	for _, p := range patterns() {
		if p.name != bridgeList {
			continue
		}
		if list := listedBridges(c.text(path.Join(p.folder, mangle(p.command)))); len(list) > 0 {
			return list
		}
	}
	for _, name := range []string{"ovs-vsctl_-t_5_list_bridge", "ovs-vsctl_list_bridge", "ovsdb-client_-f_list_dump"} {
		if list := rowNames(c.text("sos_commands/openvswitch/" + name)); len(list) > 0 {
			return list
		}
	}
	var list []string
	for _, rel := range c.names("sos_commands/openvswitch/ovs-ofctl_dump-flows_") {
		name := strings.TrimPrefix(path.Base(rel), "ovs-ofctl_dump-flows_")
		if e, ok := byFile[rel]; ok {
			name = strings.TrimPrefix(e.command, "ovs-ofctl dump-flows ")
		}
		list = append(list, name)
	}
	return list
}

// rowNames returns the names of the bridges in the output of ovs-vsctl list bridge,
// or in a dump of the whole database.
func rowNames(text string) []string {
	tables, err := ovsdb.Tables(strings.NewReader(text), "Bridge")
	if err != nil {
		return nil
	}
	var list []string
	for _, row := range tables["Bridge"] {
		if name := row.Column("name"); name != "" {
			list = append(list, name)
		}
	}
	return list
}

// listedBridges returns the bridges in the output of ovs-vsctl list-br, without
// the lines of error messages.
func listedBridges(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		name := strings.TrimRight(line, "\r\n")
		if name == "" || strings.Contains(name, "ovs-vsctl:") || strings.Contains(name, "|WARN|") || strings.Contains(name, "|ERR|") {
			continue
		}
		list = append(list, name)
	}
	return list
}
