package rules

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/workdir"
)

// maxUnitMemory is the memory in bytes above which a daemon of OVN has too much: 5 GiB.
const maxUnitMemory = 5 << 30

// unitMemory finds the daemons that use very much memory.
func unitMemory() rule.Rule {
	return rule.Rule{
		Name: "daemon-memory", Severity: rule.Warning,
		Needs:   []rule.Data{rule.HostOutput(workdir.HostUnitMemory, "memory of units")},
		Follows: "the kernel may end the daemon when there is no memory left",
		Sources: []string{"memory.current in the cgroup of the unit (Linux, cgroup-v2)"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			text, err := n.HostOutput(workdir.HostUnitMemory)
			for line := range strings.Lines(text) {
				file, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				bytes, parseErr := strconv.ParseUint(value, 10, 64)
				if parseErr != nil || bytes <= maxUnitMemory {
					continue
				}
				name := strings.TrimSuffix(path.Base(path.Dir(file)), ".service")
				found(rule.Finding{What: fmt.Sprintf("%s uses %.1f GiB of memory", name, float64(bytes)/(1<<30)), Evidence: []string{file},
					Next: []rule.Next{rule.OnTheNode("ovs-appctl memory/show -t", name), rule.Ask("timeline", "--grep", "memory")}})
			}
			return err
		},
	}
}
