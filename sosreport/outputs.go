package sosreport

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir/recording"
)

// pattern is one command line that an sos plugin runs.
type pattern struct {
	name     recording.Name
	scope    recording.Scope
	command  string // ends in a space where a bridge or a datapath follows
	openflow openflow.Version
	folder   string // of the plugin: sos_commands/PLUGIN
	file     string // the path of the output, where it is not named for the command
	host     bool   // the output is about the machine
}

// The outputs that describe the node itself. They are not recorded.
const (
	bridgeList recording.Name = "list-br"
	version    recording.Name = "version"
)

// patterns returns the command lines of sos 3.8 to 4.12 whose output is used.
func patterns() []pattern {
	table := []recording.Command{
		{Name: version, Sos: []recording.SosLine{{Plugin: "openvswitch", Line: "ovs-ofctl -t 5 --version"}, {Plugin: "openvswitch", Line: "ovs-vsctl -t 5 --version"}}},
		{Name: bridgeList, Sos: []recording.SosLine{{Plugin: "openvswitch", Line: "ovs-vsctl -t 5 list-br"}, {Plugin: "openvswitch", Line: "ovs-vsctl list-br"}, {Plugin: "ovn_host", Line: "ovs-vsctl list-br"}}},
	}
	var list []pattern
	for _, command := range append(table, recording.Commands()...) {
		if command.Scope == recording.OfNamespace {
			continue // indexNamespaces finds them
		}
		for _, line := range command.SosLines() {
			pattern := pattern{command.Name, command.Scope, line.Line, line.OpenFlow, "sos_commands/" + line.Plugin, line.File, command.Host}
			if command.Scope != recording.OfNode && line.File == "" {
				pattern.command += " "
			}
			list = append(list, pattern)
		}
	}
	return list
}

var (
	binPath   = lazyregexp.New(`^/(usr/)?s?bin/`)
	unmangled = lazyregexp.New(`[^\p{L}\p{N}_\-./]+`)
)

func stripPath(command string) string { return binPath.ReplaceAllString(command, "") }

// mangle returns the file name that sos 3.5 to 4.12 gives to the output of a command.
func mangle(command string) string {
	name := unmangled.ReplaceAllString(stripPath(command), "_")
	name = strings.Trim(strings.ReplaceAll(name, "/", "."), " ._-")
	if runes := []rune(name); len(runes) > 255 {
		name = string(runes[:255])
	}
	return name
}

// argument is one argument with which a command was run, and the file name that
// its output has if the manifest does not name one.
type argument struct {
	value  string
	bridge string
	table  string
	device string
	file   string

	namespace string
}

// indexOutputs adds the output of every pattern to the report. The manifest maps a
// command to its file; without one, the mangled command does.
func (c *contents) indexOutputs(ctx context.Context, report *Report, byFile map[string]executed) {
	byCommand := map[string]string{}
	for _, rel := range c.names("sos_commands/") {
		if executed, ok := byFile[rel]; ok {
			if key := inFolder(path.Dir(rel), executed.command); byCommand[key] == "" {
				byCommand[key] = rel
			}
		}
	}
	var ambiguous []string
	for _, pattern := range patterns() {
		arguments := []argument{{file: mangle(pattern.command)}}
		switch pattern.scope {
		case recording.OfBridge:
			arguments = c.bridgeArguments(pattern, report.Bridges, &ambiguous)
		case recording.OfDatapath:
			arguments = c.datapathArguments(pattern, byCommand)
		case recording.OfTable:
			arguments = c.tableArguments(pattern)
		case recording.OfDevice:
			arguments = c.deviceArguments(pattern)
		}
		for _, arg := range arguments {
			rel := cmp.Or(pattern.file, byCommand[inFolder(pattern.folder, pattern.command+arg.value)])
			if rel == "" {
				rel = path.Join(pattern.folder, arg.file)
				if executed, known := byFile[rel]; known && executed.command != pattern.command+arg.value {
					continue // the name matches, but another command made this file
				}
			}
			c.addOutput(report, pattern, arg, rel, byFile)
		}
		if ctx.Err() != nil {
			return
		}
	}
	c.indexTargets(report, byFile)
	c.indexNamespaces(report, byFile)
	if len(ambiguous) > 0 {
		report.Remarks = append(report.Remarks, fmt.Sprintf("bridges %s: sos gives their files the same names, and it is not known which file belongs to which bridge: their OpenFlow dumps are not taken", phrase.FirstNames(ambiguous)))
	}
}

// inFolder returns the key of a command in byCommand: plugins share some commands.
func inFolder(folder, command string) string { return folder + ":" + command }

func (c *contents) addOutput(report *Report, p pattern, of argument, rel string, byFile map[string]executed) {
	real, file, ok := c.resolve(rel)
	if !ok {
		if target := c.tree.Links[path.Join(c.top, rel)]; strings.HasPrefix(target, "../../sos_strings/") {
			report.Remarks = append(report.Remarks, fmt.Sprintf("%s links to %s, which the report lacks", rel, target))
		}
		return
	}
	report.All = append(report.All, recording.Output{
		File: file, Command: p.name, Bridge: of.bridge, Table: of.table, Device: of.device, Namespace: of.namespace, OpenFlow: p.openflow,
		Origin: real, Truncated: isTailed(real) || byFile[rel].truncated, Ran: byFile[rel].began,
	})
}

// bridgeArguments returns the bridges of a command. If several bridges have the
// same mangled name, sos numbers their files in the order of the bridges. sos runs a
// command in an OpenFlow version only for bridges that speak it. So without a manifest
// the files can be assigned only if there is one for each bridge; otherwise the bridges
// are added to ambiguous.
func (c *contents) bridgeArguments(pattern pattern, bridges []string, ambiguous *[]string) []argument {
	var files []string // in the order of their first bridges
	sameName := map[string][]string{}
	for _, bridge := range bridges {
		name := mangle(pattern.command + bridge)
		if sameName[name] == nil {
			files = append(files, name)
		}
		sameName[name] = append(sameName[name], bridge)
	}
	var list []argument
	for _, name := range files {
		bridges := sameName[name]
		if last := numbered(name, len(bridges)-1); len(bridges) > 1 && pattern.openflow != 0 && c.manifest == nil && !c.has(path.Join(pattern.folder, last)) {
			if c.has(path.Join(pattern.folder, name)) && !slices.Contains(*ambiguous, bridges[0]) {
				*ambiguous = append(*ambiguous, bridges...)
			}
			continue
		}
		for n, bridge := range bridges {
			list = append(list, argument{value: bridge, bridge: bridge, file: numbered(name, n)})
		}
	}
	return list
}

// numbered returns the name that sos gives to the n-th file of a name, from 0.
func numbered(name string, n int) string {
	if n == 0 {
		return name
	}
	return name + "." + strconv.Itoa(n)
}

// datapathArguments finds the datapaths ("system@ovs-system") in the names of the
// files. A node has one or two.
func (c *contents) datapathArguments(pattern pattern, byCommand map[string]string) []argument {
	var list []argument
	seen := map[string]bool{}
	prefix := inFolder(pattern.folder, pattern.command)
	for command, rel := range byCommand {
		if value, ok := strings.CutPrefix(command, prefix); ok {
			list = append(list, argument{value: value})
			seen[rel] = true
		}
	}
	slices.SortFunc(list, func(a, b argument) int { return cmp.Compare(a.value, b.value) })
	for _, rel := range c.names(pattern.folder + "/" + mangle(pattern.command) + "_") {
		if !seen[rel] {
			list = append(list, argument{file: path.Base(rel)})
		}
	}
	return list
}

// tableArguments finds the tables in the names of the files: sos lists all tables of a schema.
func (c *contents) tableArguments(pattern pattern) (list []argument) {
	for _, rel := range c.names(pattern.folder + "/" + mangle(pattern.command) + "_") {
		file := path.Base(rel)
		if table := strings.TrimPrefix(file, mangle(pattern.command)+"_"); ovsdb.IsTableName(table) {
			list = append(list, argument{value: table, table: table, file: file})
		}
	}
	return list
}

// deviceArguments finds the network devices in the names of the files.
func (c *contents) deviceArguments(pattern pattern) (list []argument) {
	for _, rel := range c.names(pattern.folder + "/" + mangle(pattern.command) + "_") {
		file := path.Base(rel)
		device := strings.TrimPrefix(file, mangle(pattern.command)+"_")
		list = append(list, argument{value: device, device: device, file: file})
	}
	return list
}

// indexTargets adds the outputs of the programs that ovs-appctl asks by the path of a socket, in which
// their process ID is. Several plugins run such commands.
func (c *contents) indexTargets(report *Report, byFile map[string]executed) {
	seen := map[string]bool{}
	for _, rel := range c.names("sos_commands/") {
		run, ok := recording.ParseLine(byFile[rel].command)
		if !ok {
			run, ok = recording.ParseFileName(rel)
		}
		real, _, _ := c.resolve(rel)
		if ok && run.Command.Target != "" && !seen[real] {
			seen[real] = true
			c.addOutput(report, pattern{name: run.Command.Name}, argument{}, rel, byFile)
		}
	}
}
