package sosreport

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// pattern is one command that sos runs. What follows it on the command line
// is nothing, a bridge or a datapath.
type pattern struct {
	command  string // with a blank at its end where an argument follows
	argument argument
	meaning  recording.Meaning
	openflow string
	plugin   string // the plugin's folder in sos_commands
}

func (p pattern) folder() string { return "sos_commands/" + p.plugin }

type argument int

const (
	none argument = iota
	aBridge
	aDatapath
)

// Versions are the OpenFlow versions that sos asks for, the best first.
func Versions() []string {
	return []string{"OpenFlow15", "OpenFlow14", "OpenFlow13", "OpenFlow12", "OpenFlow11", "OpenFlow10"}
}

// commands is the table of the commands that matter, of sos 3.8 to 4.12.
func commands() []pattern {
	const ovs = "openvswitch"
	var table []pattern
	for _, dump := range []recording.Meaning{recording.Flows, recording.Groups, recording.Meters, recording.TLVMap, workdir.RecordedMeterStats, workdir.RecordedShow} {
		for _, v := range Versions() {
			table = append(table, pattern{fmt.Sprintf("ovs-ofctl -O %s %s ", v, dump), aBridge, dump, v, ovs})
		}
		table = append(table, pattern{fmt.Sprintf("ovs-ofctl %s ", dump), aBridge, dump, "", ovs})
	}
	table = append(table,
		pattern{"ovs-ofctl -O OpenFlow13 dump-flows ", aBridge, recording.Flows, "OpenFlow13", "ovn_host"},
		pattern{"ovs-appctl bridge/dump-flows --offload-stats ", aBridge, workdir.RecordedBridgeFlows, "", ovs},
		pattern{"ovs-appctl bridge/dump-flows ", aBridge, workdir.RecordedBridgeFlows, "", ovs},
	)
	for _, m := range []recording.Meaning{workdir.RecordedFeatures, workdir.RecordedFDB, workdir.RecordedMDB, workdir.RecordedRSTP, workdir.RecordedSTP} {
		table = append(table, pattern{"ovs-appctl " + strings.ReplaceAll(string(m), ".", "/") + " ", aBridge, m, "", ovs})
	}
	for _, m := range []recording.Meaning{workdir.RecordedBFD, workdir.RecordedBond, workdir.RecordedCFM, workdir.RecordedLACP, workdir.RecordedRoutes,
		workdir.RecordedNeighbours, workdir.RecordedTunnels, workdir.RecordedDpifShow} {
		table = append(table, pattern{"ovs-appctl " + strings.ReplaceAll(string(m), ".", "/"), none, m, "", ovs})
	}
	table = append(table,
		pattern{"ovs-appctl tnl/ports/show -v", none, workdir.RecordedTunnelPorts, "", ovs},
		pattern{"ovs-appctl dpctl/show -s ", aDatapath, workdir.RecordedDatapathShow, "", ovs},
		pattern{"ovs-appctl dpctl/dump-flows -m ", aDatapath, workdir.RecordedDatapathFlows, "", ovs},
		pattern{"ovs-appctl dpctl/dump-conntrack -m ", aDatapath, workdir.RecordedConntrack, "", ovs},
		pattern{"ovs-ofctl -t 5 --version", none, version, "", ovs},
		pattern{"ovs-vsctl -t 5 --version", none, version, "", ovs},
		pattern{"ovs-vsctl list-br", none, listBr, "", "ovn_host"},
		pattern{"ovsdb-client -f list dump", none, workdir.RecordedDatabaseDump, "", ovs},
	)
	for _, wait := range []string{"-t 5 ", ""} {
		table = append(table, pattern{"ovs-vsctl " + wait + "list-br", none, listBr, "", ovs})
		for _, t := range workdir.ListedTables() {
			meaning := recording.Meaning(workdir.RecordedList(t))
			table = append(table, pattern{"ovs-vsctl " + wait + "list " + strings.ToLower(t), none, meaning, "", ovs})
			if strings.ToLower(t) != t {
				table = append(table, pattern{"ovs-vsctl " + wait + "list " + t, none, meaning, "", ovs})
			}
		}
	}
	return table
}

var (
	binPath   = regexp.MustCompile(`^/(usr/)?s?bin/`)
	unmangled = regexp.MustCompile(`[^\p{L}\p{N}_\-./]+`)
)

func stripPath(command string) string { return binPath.ReplaceAllString(command, "") }

// mangle turns a command into the file name that sos gives its output; the
// rule is the same from sos 3.5 to 4.12.
func mangle(command string) string {
	name := unmangled.ReplaceAllString(stripPath(command), "_")
	name = strings.Trim(strings.ReplaceAll(name, "/", "."), " ._-")
	if runes := []rune(name); len(runes) > 255 {
		name = string(runes[:255])
	}
	return name
}

// actual is one argument with which a command was run, and the file name that
// its output has if the manifest doesn't say.
type actual struct {
	value  string
	bridge string
	file   string
}

// arguments lists what a command was run with.
func (c *contents) arguments(ctx context.Context, p pattern, r *Report, byCommand map[string]string) []actual {
	switch p.argument {
	case none:
		return []actual{{file: mangle(p.command)}}
	case aBridge:
		return c.settle(ctx, p, r)
	default:
		return c.datapathArguments(p, byCommand)
	}
}

// datapathArguments finds them in what is there: a node has one or two, and
// their names ("system@ovs-system") steer nothing.
func (c *contents) datapathArguments(p pattern, byCommand map[string]string) []actual {
	var list []actual
	seen := map[string]bool{}
	prefix := inFolder(p.folder(), p.command)
	for command, rel := range byCommand {
		if value, ok := strings.CutPrefix(command, prefix); ok {
			list = append(list, actual{value: value})
			seen[rel] = true
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].value < list[j].value })
	for _, rel := range c.names(p.folder() + "/" + mangle(p.command) + "_") {
		if !seen[rel] {
			list = append(list, actual{file: path.Base(rel)})
		}
	}
	return list
}

// bridges are those that the node listed, each once; where no list was kept,
// those that its database, the manifest or the names of the flow dumps tell.
func (c *contents) bridges(byName map[string]executed) []string {
	var once []string
	seen := map[string]bool{}
	for _, b := range c.listed(byName) {
		if !seen[b] {
			seen[b] = true
			once = append(once, b)
		}
	}
	return once
}

func (c *contents) listed(byName map[string]executed) []string {
	for _, name := range []string{"openvswitch/ovs-vsctl_-t_5_list-br", "openvswitch/ovs-vsctl_list-br", "ovn_host/ovs-vsctl_list-br"} {
		if list := listedBridges(c.text("sos_commands/" + name)); len(list) > 0 {
			return list
		}
	}
	for _, name := range bridgeLists() {
		if list := rowNames(c.text("sos_commands/openvswitch/" + name)); len(list) > 0 {
			return list
		}
	}
	var list []string
	for _, rel := range c.names("sos_commands/openvswitch/ovs-ofctl_dump-flows_") {
		name := strings.TrimPrefix(path.Base(rel), "ovs-ofctl_dump-flows_")
		if e, ok := byName[rel]; ok {
			name = strings.TrimPrefix(e.command, "ovs-ofctl dump-flows ")
		}
		list = append(list, name)
	}
	return list
}

// bridgeLists are the outputs that tell of the bridges what the database does.
func bridgeLists() []string {
	return []string{"ovs-vsctl_-t_5_list_bridge", "ovs-vsctl_list_bridge", "ovsdb-client_-f_list_dump"}
}

func unquoted(text string) string {
	if bare, err := strconv.Unquote(text); err == nil {
		return bare
	}
	return text
}

// rowNames are the names of the bridges in ovs-vsctl list bridge, or in a dump
// of the whole database.
func rowNames(text string) []string {
	tables, err := ovsdb.Tables(strings.NewReader(text), "Bridge")
	if err != nil {
		return nil
	}
	var list []string
	for _, row := range tables["Bridge"] {
		for _, v := range row.Columns {
			if name := unquoted(v.Text); v.Column == "name" && name != "" {
				list = append(list, name)
			}
		}
	}
	return list
}

// listedBridges reads ovs-vsctl list-br; an error message is no bridge.
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
