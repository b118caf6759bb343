package recording

import (
	"slices"
	"strings"

	"ovs-offline/workdir"
)

// kernelConnections is the file in /proc/net that has what conntrack -L -o extended prints.
const kernelConnections = "nf_conntrack"

// parseConntrack finds the connections of the kernel that conntrack -L or a program such as cat prints, in the node's own network
// namespace. Options that choose among them are the filter.
func parseConntrack(words []string) (run Invocation, ok bool) {
	if words[0] != "conntrack" && words[0] != kernelConnections {
		return Invocation{}, false
	}
	run.Command, ok = Find(workdir.NamespaceConntrack)
	if words[0] == kernelConnections {
		return run, ok
	}
	var filter []string
	list := false
	for i := 1; i < len(words); i++ {
		switch word := words[i]; {
		case word == "-L" || word == "--dump":
			list = true
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") { // the table
				i++
				ok = ok && words[i] == "conntrack"
			}
		case (word == "-o" || word == "--output") && i+1 < len(words):
			i++
			for name := range strings.SplitSeq(words[i], ",") {
				ok = ok && name != "xml" && name != "save"
			}
		default:
			filter = append(filter, word)
		}
	}
	run.Filter = strings.Join(filter, " ")
	return run, ok && list
}

// findOfBridge finds dpif/dump-flows, which prints the flows of the datapath that come from the ports of one bridge.
func (r run) findOfBridge() (found Invocation, ok bool) {
	if !slices.Equal(r.words[:min(2, len(r.words))], []string{"ovs-appctl", "dpif/dump-flows"}) || len(r.words) != 3 || r.target != "" {
		return Invocation{}, false
	}
	found.Command, ok = Find(workdir.RecordedDatapathFlows)
	found.Filter = "the ports of " + r.words[2]
	return found, ok
}
