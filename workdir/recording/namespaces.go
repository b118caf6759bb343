package recording

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
)

// inNamespace begins the names of the commands of named network namespaces: the node runs most of them in
// its own one too.
const inNamespace = "netns."

// File returns the name of the output's file. In the folder of a network namespace, files have the names
// that the same outputs of the node's own namespace have.
func (n Name) File() string { return strings.TrimPrefix(string(n), inNamespace) }

// namespaceCommands returns the commands that are recorded in each named network namespace. Line and
// the lines of sos are what follows "ip netns exec NAMESPACE". Pods don't see the namespaces of their node.
func namespaceCommands() []Command {
	of := func(file, line string, sos ...SosLine) Command {
		return Command{Name: Name(inNamespace + file), Scope: OfNamespace, NotLive: true, Line: line, Sos: sos}
	}
	run := func(line string) SosLine { return SosLine{Plugin: networking, Line: line} }
	return []Command{
		of(workdir.RecordedLinks, "ip -d address show", run("ip -d address show"), run("ip address show")),
		of(workdir.RecordedKernelRoutes, "ip route show table all", run("ip route show table all")),
		of(workdir.HostRules, "ip rule", run("ip -4 rule list"), run("ip rule list")),
		of(workdir.NamespaceRules6, "ip -6 rule", run("ip -6 rule list")),
		of(workdir.HostNeighbours, "ip neigh show", run("ip -s -s neigh show")),
		of(workdir.NamespaceFilters, "iptables-save", run("iptables-save")),
		of(workdir.NamespaceFilters6, "ip6tables-save", run("ip6tables-save")),
		of(workdir.HostNftables, "nft list ruleset"),
		of(workdir.NamespaceSets, "ipset save"),
		of(workdir.NamespaceConntrack, "conntrack -L -o extended", SosLine{Plugin: conntrack, Line: "conntrack -L -o extended"}),
		of(workdir.HostSysctl, "sysctl -a", run("sysctl -a")),
	}
}

// OfNamespaces returns the commands of named network namespaces.
func OfNamespaces() []Command {
	return slices.DeleteFunc(Commands(), func(command Command) bool { return command.Scope != OfNamespace })
}

// namespaceLines are the commands of named network namespaces by their command lines.
var namespaceLines = sync.OnceValue(func() map[string]Command {
	lines := map[string]Command{}
	for _, command := range namespaceCommands() {
		for _, line := range append(command.Sos, SosLine{Line: command.Line}) {
			lines[line.Line] = command
			lines[strings.Join(wholeAddress(strings.Fields(line.Line)), " ")] = command
		}
	}
	return lines
})

// parseNamespaced finds the recorded command that "ip netns exec NAMESPACE" runs. isOne is false for
// another command line; the command that it runs may be one that knows no namespaces.
func parseNamespaced(words []string) (run Invocation, isOne, ok bool) {
	if len(words) < 5 || words[0] != "ip" || len(words[1]) < 3 || !strings.HasPrefix("netns", words[1]) || !strings.HasPrefix("exec", words[2]) {
		return Invocation{}, false, false
	}
	line := append([]string{words[4][strings.LastIndexByte(words[4], '/')+1:]}, words[5:]...)
	if strings.HasPrefix(line[0], "ov") {
		return Invocation{}, false, false
	}
	command, ok := namespaceLines()[strings.Join(wholeAddress(line), " ")]
	if !ok {
		return Invocation{}, true, false
	}
	return Invocation{Command: command, Argument: words[3]}, true, true
}

// namespacedFile matches the file names of outputs of named network namespaces. sos numbers the files of one
// name.
var namespacedFile = sync.OnceValue(func() *regexp.Regexp {
	var lines []string
	for line := range namespaceLines() {
		lines = append(lines, regexp.QuoteMeta(strings.ReplaceAll(line, " ", "_")))
	}
	return regexp.MustCompile(`^ip_netns_exec_(.+)_(` + strings.Join(lines, "|") + `)(?:\.([1-9][0-9]{0,4}))?$`)
})

// NamespaceOfFile returns the command of a named network namespace that a file is named for, and the
// namespace as the file's name spells it. number is that of the file among those of one name, from 0.
func NamespaceOfFile(name string) (command Command, namespace string, number int, ok bool) {
	if !strings.HasPrefix(name, "ip_netns_exec_") { // a source can have a million names
		return Command{}, "", 0, false
	}
	match := namespacedFile().FindStringSubmatch(name)
	if match == nil {
		return Command{}, "", 0, false
	}
	number, _ = strconv.Atoi(match[3]) // 0 without a number
	return namespaceLines()[strings.ReplaceAll(match[2], "_", " ")], match[1], number, true
}

// maxNamespaces is more than any node has.
const maxNamespaces = 4096

// LimitNamespaces drops the outputs of network namespaces whose names no namespace can have, or that are
// too long for a file of a workdir, and of those beyond maxNamespaces. It adds them to Lost.
func (n *Recording) LimitNamespaces() {
	taken, bad, over := map[string]bool{}, map[string]bool{}, map[string]bool{}
	n.All = slices.DeleteFunc(n.All, func(output Output) bool {
		name := output.Namespace
		switch {
		case name == "" || taken[name]:
			return false
		case !isNamespaceName(name):
			bad[phrase.Shorten(name, 60)] = true
		case len(taken) == maxNamespaces:
			over[name] = true
		default:
			taken[name] = true
			return false
		}
		return true
	})
	if len(bad) > 0 {
		n.Lost = append(n.Lost, fmt.Sprintf("outputs of %s whose names can't be those of namespaces, or are too long (%s): not taken",
			phrase.Count(len(bad), "network namespace"), phrase.FirstNames(slices.Sorted(maps.Keys(bad)))))
	}
	if len(over) > 0 {
		n.Lost = append(n.Lost, fmt.Sprintf("outputs of %d network namespaces are there: only those of the first %d are taken", len(taken)+len(over), maxNamespaces))
	}
}

// isNamespaceName reports whether a name may be that of a network namespace, which is a file's
// (ip-netns(8)), and is short enough to be read from the name of a folder of a workdir.
func isNamespaceName(name string) bool {
	decoded, ok := workdir.DecodeName(workdir.EncodeName(name))
	return ok && decoded == name && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}
