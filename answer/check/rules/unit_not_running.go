package rules

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/workdir"
)

// unitNotRunning finds the units of Open vSwitch and OVN that are enabled on a node and do not run, or
// that have failed.
func unitNotRunning() rule.Rule {
	return rule.Rule{
		Name: "unit-not-running", Severity: rule.Error,
		Needs:   []rule.Data{rule.HostOutput(workdir.HostUnits, "list of units")},
		Follows: "what this daemon does is not done: changes do not reach the flows",
		Sources: []string{"systemctl(1), list-units and list-unit-files"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			files, err := n.HostOutput(workdir.HostUnitFiles)
			if err != nil {
				return err
			}
			processes, err := n.HostOutput(workdir.HostProcesses)
			if err != nil {
				return err
			}
			text, err := n.HostOutput(workdir.HostUnits)
			units := readUnits(text)
			enabled := map[string]bool{}
			for line := range strings.Lines(files) {
				if words := strings.Fields(line); len(words) >= 2 && (words[1] == "enabled" || words[1] == "static") {
					enabled[words[0]] = true
				}
			}
			for _, name := range watchedUnits() {
				state, listed := units[name+".service"]
				evidence := []string{"systemctl list-units, list-unit-files"}
				next := []rule.Next{rule.Ask("timeline", "--grep", name), rule.OnTheNode("systemctl status", name)}
				switch {
				case listed && state == "failed":
					found(rule.Finding{What: fmt.Sprintf("the unit %s has failed", name), Evidence: evidence, Next: next})
				case name == "ovn-northd" && enabled["ovn-northd.service"] && enabled["ovn-ovsdb-server-nb.service"] && state != "running" && !isProcess(processes, name):
					found(rule.Finding{What: "ovn-northd is not running on this node, which has the servers of OVN's databases", Evidence: evidence, Next: next,
						Follows: "if no other node runs ovn-northd, changes of the northbound database do not reach the southbound one"})
				}
			}
			return err
		},
	}
}

// isProcess reports whether the output of ps has a process of a program.
func isProcess(processes, program string) bool {
	for line := range strings.Lines(processes) {
		if words := strings.Fields(line); len(words) > 10 && path.Base(words[10]) == program {
			return true
		}
	}
	return false
}

// watchedUnits are the units of Open vSwitch and OVN.
func watchedUnits() []string {
	return []string{"ovs-vswitchd", "openvswitch-switch", "openvswitch", "ovsdb-server", "ovn-controller", "ovn-host", "ovn-northd", "ovn-central",
		"ovn-ovsdb-server-nb", "ovn-ovsdb-server-sb", "ovn-nb-ovsdb", "ovn-sb-ovsdb", "ovs-configuration"}
}

// readUnits reads "systemctl list-units": their states, such as "running" and "failed", by the names of
// the units.
func readUnits(text string) map[string]string {
	units := map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(strings.TrimLeft(line, "●* "))
		if len(words) >= 4 && strings.HasSuffix(words[0], ".service") && slices.Contains([]string{"loaded", "not-found", "masked", "error"}, words[1]) {
			units[words[0]] = words[3]
		}
	}
	return units
}
