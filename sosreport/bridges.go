package sosreport

import (
	"path"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir/recording"
)

// bridges returns the node's bridges, each once: from ovs-vsctl list-br, else from the
// printed Bridge table or ovs-vsctl show, else from the names of the flow dumps.
func (c *contents) bridges(byFile map[string]executed) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(c.listed(byFile), func(bridge string) bool {
		again := seen[bridge]
		seen[bridge] = true
		return again
	})
}

func (c *contents) listed(byFile map[string]executed) []string {
	for _, pattern := range patterns() {
		if pattern.name != bridgeList {
			continue
		}
		if list := listedBridges(c.text(path.Join(pattern.folder, mangle(pattern.command)))); len(list) > 0 {
			return list
		}
	}
	for _, name := range []string{"ovs-vsctl_-t_5_list_bridge", "ovs-vsctl_list_bridge", "ovsdb-client_-f_list_dump"} {
		if list := rowNames(c.text("sos_commands/openvswitch/" + name)); len(list) > 0 {
			return list
		}
	}
	for _, name := range []string{"ovs-vsctl_-t_5_show", "ovs-vsctl_show"} {
		if list := shownBridges(c.text("sos_commands/openvswitch/" + name)); len(list) > 0 {
			return list
		}
	}
	return c.dumpedBridges(byFile)
}

// dumpedBridges returns the bridges that the names of the flow dumps name.
func (c *contents) dumpedBridges(byFile map[string]executed) (list []string) {
	for _, rel := range c.names("sos_commands/openvswitch/ovs-ofctl_") {
		run, ok := recording.ParseFileName(rel)
		if executed, known := byFile[rel]; known {
			run, ok = recording.ParseLine(executed.command)
		}
		if ok && run.Command.Name == recording.Flows && run.Argument != "" {
			list = append(list, run.Argument)
		}
	}
	return list
}

// shownBridges returns the names of the bridges in the output of ovs-vsctl show.
func shownBridges(text string) (list []string) {
	outline, err := ovsdb.Shown(strings.NewReader(text))
	if outline == nil || err != nil {
		return nil
	}
	for _, bridge := range outline.Below("Bridge") {
		list = append(list, bridge.Name)
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
