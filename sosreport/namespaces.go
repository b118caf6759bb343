package sosreport

import (
	"fmt"
	"path"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir/recording"
)

// The list of the named network namespaces, and the folders of their outputs: those of conntrack, and before
// sos 4.3 all, are in the folder of the plugin, later ones in a folder with the name of the namespace.
const (
	namespaceList   = "sos_commands/networking/ip_netns"
	namespaceFolder = "sos_commands/networking/namespaces/"
)

// namespaceOutputs returns the beginnings of the paths of the outputs of named network namespaces.
func namespaceOutputs() []string {
	return []string{"sos_commands/networking/ip_netns_exec_", "sos_commands/conntrack/ip_netns_exec_", namespaceFolder}
}

// isNamespaceOutput reports whether a name below a report's top is that of an output of a named network
// namespace, or of their list.
func isNamespaceOutput(rel string) bool {
	if !strings.HasPrefix(rel, "sos_commands/networking/") && !strings.HasPrefix(rel, "sos_commands/conntrack/") {
		return false // a source can have a million names
	}
	if rel == namespaceList {
		return true
	}
	folder, base := path.Split(rel)
	_, _, _, ok := recording.NamespaceOfFile(base)
	below, inFolder := strings.CutPrefix(folder, namespaceFolder)
	return ok && (!inFolder || strings.Count(below, "/") == 1)
}

// indexNamespaces adds the outputs of named network namespaces. A remark names the namespaces that have
// none: sos can be told to take some only.
func (c *contents) indexNamespaces(report *Report, byFile map[string]executed) {
	listed := listedNamespaces(c.text(namespaceList))
	byMangled := map[string][]string{}
	for _, name := range listed {
		byMangled[mangle(name)] = append(byMangled[mangle(name)], name)
	}
	found, ambiguous := map[string]bool{}, map[string]bool{}
	for _, prefix := range namespaceOutputs() {
		for _, rel := range c.names(prefix) {
			run, ok := recording.ParseLine(byFile[rel].command)
			if byFile[rel].command == "" {
				run, ok = c.namespaced(rel, byMangled, ambiguous)
			}
			if ok && run.Command.Scope == recording.OfNamespace {
				found[run.Argument] = true
				c.addOutput(report, pattern{name: run.Command.Name}, argument{namespace: run.Argument}, rel, byFile)
			}
		}
	}
	report.remarkNamespaces(listed, found, ambiguous)
}

// namespaced returns the command that a file is named for, and its namespace: the name of the folder, or
// the one of the list whose mangled name is in the file's name. If several of the list have the same
// mangled name, sos numbers their files in the order of the list, and every file has to be there.
func (c *contents) namespaced(rel string, byMangled map[string][]string, ambiguous map[string]bool) (run recording.Invocation, ok bool) {
	command, mangled, number, ok := recording.NamespaceOfFile(path.Base(rel))
	if below, inFolder := strings.CutPrefix(rel, namespaceFolder); inFolder {
		return recording.Invocation{Command: command, Argument: path.Dir(below)}, ok && number == 0
	}
	names := byMangled[mangle(mangled)]
	first := rel
	if number > 0 {
		first = strings.TrimSuffix(rel, path.Ext(rel))
	}
	switch {
	case !ok, number > max(0, len(names)-1):
		return recording.Invocation{}, false
	case len(names) == 0:
		return recording.Invocation{Command: command, Argument: mangled}, true
	case !c.has(numbered(first, len(names)-1)):
		ambiguous[mangled] = true
		return recording.Invocation{}, false
	}
	return recording.Invocation{Command: command, Argument: names[number]}, true
}

// remarkNamespaces adds remarks about the namespaces whose outputs the report lacks.
func (r *Report) remarkNamespaces(listed []string, found, ambiguous map[string]bool) {
	var without, unclear []string
	for _, name := range listed {
		switch {
		case found[name]:
		case ambiguous[mangle(name)]:
			unclear = append(unclear, phrase.Shorten(name, 60))
		default:
			without = append(without, phrase.Shorten(name, 60))
		}
	}
	if len(unclear) > 0 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("network namespaces %s: sos gives their files the same names, and it is not known which file belongs to which namespace: their outputs are not taken", phrase.FirstNames(unclear)))
	}
	if len(without) > 0 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("the report has no outputs of %s that the node lists (%s): what the kernel does in them is not known; sos report limits their number by the option namespaces",
			phrase.Count(len(without), "network namespace"), phrase.FirstNames(without)))
	}
}

// listedNamespace matches a line of "ip netns": a name, and a number that some kernels give.
var listedNamespace = lazyregexp.New(`^(\S+)(?: \(id: [0-9]+\))?\s*$`)

// listedNamespaces returns the names in the output of "ip netns", without error messages.
func listedNamespaces(text string) (list []string) {
	for line := range strings.Lines(text) {
		if match := listedNamespace.FindStringSubmatch(line); match != nil {
			list = append(list, match[1])
		}
	}
	return list
}
