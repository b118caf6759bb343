package rules

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// outputToMissingPort finds flows and groups that send packets to a missing port of their bridge. Mostly somebody deleted the port, and
// the controller left its flows behind.
func outputToMissingPort() rule.Rule {
	return rule.Rule{
		Name: "output-to-missing-port", Severity: rule.Warning, Slow: true,
		Needs:   []rule.Data{rule.Dumps(), rule.BridgeOutput(workdir.RecordedShow)},
		Follows: "the bridge drops what is sent there",
		Sources: []string{"ovs-actions(7), The output action", "ofproto/ofproto-dpif-xlate.c of Open vSwitch: Nonexistent output port"},
		Node: func(ctx context.Context, n *rule.Node, found func(rule.Finding)) error {
			bridges, err := n.Dir.DumpedBridges(workdir.Flows)
			if err != nil {
				return err
			}
			for _, bridge := range bridges {
				if err := findMissingPorts(ctx, n, bridge, found); err != nil {
					return fmt.Errorf("bridge %s: %w", bridge, err)
				}
			}
			return nil
		},
	}
}

// senders are the flows, and the groups, that send packets to a port.
type senders struct {
	flows, table int // the number of flows, and the table of the first
	packets      uint64
	groups       []string
}

// findMissingPorts looks at a bridge whose ports ovs-ofctl show printed to its end, which says how fragments are handled.
func findMissingPorts(ctx context.Context, n *rule.Node, bridge string, found func(rule.Finding)) error {
	text, err := n.BridgeOutput(bridge, workdir.RecordedShow)
	shown := openflow.Show(strings.NewReader(text))
	if err != nil || shown.Fragments == "" || len(shown.Ports) == 0 {
		return err
	}
	exists := map[string]bool{}
	for _, port := range shown.Ports {
		exists[strconv.Itoa(port.Number)], exists[port.Name] = true, true
	}
	missing := map[string]*senders{}
	of := func(entry string) (all []*senders) {
		for _, port := range slices.Compact(slices.Sorted(slices.Values(openflow.Ports(entry)))) {
			if exists[port] {
				continue
			}
			if missing[port] == nil {
				missing[port] = &senders{}
			}
			all = append(all, missing[port])
		}
		return all
	}
	if err := readSenders(ctx, n, bridge, of); err != nil {
		return err
	}
	for port, senders := range missing {
		found(senders.finding(bridge, port))
	}
	return nil
}

// readSenders reads the flows and the groups of a bridge. of returns what to add an entry to.
func readSenders(ctx context.Context, n *rule.Node, bridge string, of func(entry string) []*senders) error {
	err := readDump(ctx, n, bridge, workdir.Flows, func(dump io.Reader) {
		for flow, problem := range openflow.RawFlows(dump) {
			if problem != nil {
				continue // costly-rules and start name it
			}
			for _, to := range of("actions=" + flow.Actions) {
				if to.flows++; to.flows == 1 {
					key, _ := flow.Key()
					to.table = key.Table
				}
				to.packets += flow.Packets
			}
		}
	})
	if err != nil {
		return err
	}
	return readDump(ctx, n, bridge, workdir.Groups, func(dump io.Reader) {
		groups, _ := openflow.Groups(dump)
		for _, group := range groups {
			for _, to := range of(group.Text) {
				to.groups = append(to.groups, strconv.Itoa(int(group.ID)))
			}
		}
	})
}

// readDump lets use read a dump of a bridge, if it was collected.
func readDump(ctx context.Context, n *rule.Node, bridge string, kind workdir.Dump, use func(io.Reader)) error {
	file, ok, err := n.Dir.Collected(n.Dir.DumpFile(bridge, kind))
	if !ok {
		return err
	}
	defer file.Close()
	use(bufio.NewReader(interrupt.Reader(ctx, file)))
	return ctx.Err()
}

func (s *senders) finding(bridge, port string) rule.Finding {
	f := rule.Finding{Weight: int(min(s.packets, 1<<31)), Next: []rule.Next{rule.OnTheNode("ovs-ofctl show", bridge)}}
	var by []string
	if s.flows > 0 {
		by = append(by, fmt.Sprintf("by %s (%s)", phrase.Count(s.flows, "flow"), phrase.Count(int(min(s.packets, 1<<53)), "packet")))
		f.Evidence = append(f.Evidence, fmt.Sprintf("ovs-ofctl dump-flows %s, table %d", bridge, s.table))
		f.Next = slices.Insert(f.Next, 0, rule.Ask("flows", bridge, "--table", strconv.Itoa(s.table)))
	}
	if len(s.groups) > 0 {
		by = append(by, "by group "+phrase.FirstNames(s.groups))
		f.Evidence = append(f.Evidence, "ovs-ofctl dump-groups "+bridge)
	}
	f.What = fmt.Sprintf("bridge %s has no port %s: packets are sent there %s", bridge, port, strings.Join(by, " and "))
	f.Evidence = append(f.Evidence, "ovs-ofctl show "+bridge)
	return f
}
