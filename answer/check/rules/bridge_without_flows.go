package rules

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// bridgeWithoutFlows finds the bridges that drop every packet: they have no flows. A bridge whose
// controller is not connected forwards without them, unless its fail mode is secure. It also finds the integration bridge of OVN, or of
// neutron-openvswitch-agent, with nothing but a flow of a plain switch.
func bridgeWithoutFlows() rule.Rule {
	return rule.Rule{
		Name: "bridge-without-flows", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS(), rule.Dumps()},
		Follows: "the bridge drops every packet",
		Sources: []string{"ovs-vswitchd.conf.db(5), Bridge, fail_mode"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			writers, err := writersOf(n)
			if err != nil {
				return err
			}
			failed := n.OVS.Each("Bridge", func(row ovsdb.Row) {
				name := row.String("name")
				if writer, ok := writers[name]; ok {
					plain, readErr := isPlain(n.Dir, n.Dir.DumpFile(name, workdir.Flows))
					if readErr != nil {
						err = readErr
					}
					if plain {
						found(rule.Finding{What: fmt.Sprintf("%s, the integration bridge of %s, has one flow, with the action NORMAL", name, writer.name),
							Follows: writer.follows, Causes: []string{"drift"}, Evidence: []string{"ovs-ofctl dump-flows " + name}, Next: writer.next})
					}
				}
				forwards := row.String("fail_mode") != "secure" && len(row.UUIDs("controller")) > 0
				if forwards || len(row.UUIDs("ports")) < 2 {
					return
				}
				empty, readErr := isEmpty(n.Dir, n.Dir.DumpFile(name, workdir.Flows))
				if readErr != nil {
					err = readErr
				}
				if empty {
					found(rule.Finding{What: fmt.Sprintf("bridge %s has no flows", name),
						Evidence: []string{"Bridge " + name + " in conf.db: fail_mode", "ovs-ofctl dump-flows " + name},
						Next:     []rule.Next{rule.Ask("timeline", "--program", "ovs-vswitchd"), rule.Ask("drift")}})
				}
			}, "name", "fail_mode", "controller", "ports")
			if failed != nil {
				return failed
			}
			return err
		},
	}
}

// writer is the program that writes the flows of an integration bridge.
type writer struct {
	name, follows string // follows is what follows from its absence
	next          []rule.Next
}

// writersOf returns the programs that write the flows of integration bridges, by the names of the bridges.
func writersOf(n *rule.Node) (map[string]writer, error) {
	settings, err := n.Settings()
	if err != nil {
		return nil, err
	}
	if settings.Configured() {
		return map[string]writer{settings.Bridge(): {"OVN", "packets go to all ports by their MAC addresses, past the logical network",
			[]rule.Next{rule.Ask("drift"), rule.OnTheNode("ovn-appctl -t ovn-controller connection-status")}}}, nil
	}
	kinds, err := rules.AgentBridges(n.OVS)
	writers := map[string]writer{}
	for name, kind := range kinds {
		if kind == rules.AgentIntegration {
			writers[name] = writer{"neutron-openvswitch-agent", "packets pass security groups and the protection against false addresses, and tunnelled networks lose theirs",
				[]rule.Next{rule.Ask("timeline", "--program", "neutron-openvswitch-agent", "--all"), rule.OnTheNode("systemctl restart neutron-openvswitch-agent")}}
		}
	}
	return writers, err
}

// isEmpty reports whether a dump was collected and holds no flow.
func isEmpty(wd *workdir.Dir, path string) (bool, error) {
	file, ok, err := wd.Collected(path)
	if !ok {
		return false, err
	}
	defer file.Close()
	for _, problem := range openflow.RawFlows(bufio.NewReader(file)) {
		if problem == nil {
			return false, nil
		}
		if problem.Lost {
			return false, nil // something is there
		}
	}
	return true, nil
}

// isPlain reports whether a dump was collected and holds one flow, whose only action is NORMAL.
func isPlain(wd *workdir.Dir, path string) (bool, error) {
	file, ok, err := wd.Collected(path)
	if !ok {
		return false, err
	}
	defer file.Close()
	flows, plain := 0, false
	for f, problem := range openflow.Flows(file) {
		if problem != nil || flows > 0 {
			return false, nil
		}
		flows, plain = 1, strings.HasSuffix(strings.TrimSpace(f.Text), "actions=NORMAL")
	}
	return plain, nil
}
