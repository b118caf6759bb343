package trace

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// incomplete is what is known to be missing in the flow tables, groups, ports and learned addresses of a replica.
type incomplete struct {
	recorded map[string]bool             // the bridges whose flows were recorded
	partial  map[string]*workdir.Partial // the dumps of flows of which a part was recorded, by bridge
	rejected map[tableOf][]openflow.Key  // the flows that could not be restored
	unread   map[string]bool             // the bridges with lines whose flow, and so its table, is not known
	groups   map[groupOf]bool            // the groups that are placeholders
	listed   map[string]bool             // the bridges whose ports an output lists
	ports    map[string]bool             // the bridges of which the VLANs or the numbers of some ports were not recorded
	learned  map[string]string           // why it is not known which MAC addresses a bridge had learned, "" if it is known
}

// groupOf is a group of a bridge.
type groupOf struct {
	bridge string
	id     uint32
}

// readIncomplete reads what is missing from the manifest and the report of a start.
func readIncomplete(node *host.Host, wd *workdir.Dir, manifest *workdir.Manifest, start *report.Report) (*incomplete, error) {
	found := &incomplete{recorded: map[string]bool{}, partial: map[string]*workdir.Partial{}, rejected: map[tableOf][]openflow.Key{}, unread: map[string]bool{}, groups: map[groupOf]bool{},
		listed: map[string]bool{}, ports: node.UnknownPorts, learned: map[string]string{}}
	bridges, err := wd.DumpedBridges(workdir.Flows)
	if err != nil {
		return nil, err
	}
	for _, bridge := range bridges {
		found.recorded[bridge] = true
		found.listed[bridge] = isListed(wd, bridge)
		if partial := manifest.Partial(wd.Relative(wd.DumpFile(bridge, workdir.Flows))); partial != nil {
			found.partial[bridge] = partial
		}
	}
	named := map[string]int{}
	for _, item := range start.Rejected {
		if item.Dump == workdir.Flows {
			named[item.Bridge]++
			found.reject(item)
		}
	}
	for _, b := range start.Bridges {
		if counts := b.Counts[workdir.Flows]; counts != nil && counts.Rejected > named[b.Name] {
			found.unread[b.Name] = true
		}
	}
	for _, item := range start.Placeholders {
		if item.Dump != workdir.Groups {
			continue
		}
		made, _ := openflow.Groups(strings.NewReader(item.Text))
		for _, group := range made {
			found.groups[groupOf{item.Bridge, group.ID}] = true
		}
	}
	for _, b := range start.Bridges {
		if found.learned[b.Name], err = unlearned(node, wd, b.Name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// isListed reports whether an output was collected that lists the ports of a bridge.
func isListed(wd *workdir.Dir, bridge string) bool {
	return slices.ContainsFunc([]string{wd.Database(workdir.OVS), wd.Recorded(workdir.RecordedDatabaseDump), wd.Recorded(workdir.RecordedList("Interface")),
		wd.Recorded(workdir.RecordedSwitchShow), wd.Recorded(workdir.RecordedDpifShow), wd.BridgeRecorded(bridge, workdir.RecordedShow)}, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// unlearned returns why it is not known which MAC addresses a bridge had learned, "" if it is known.
func unlearned(node *host.Host, wd *workdir.Dir, bridge string) (string, error) {
	text, _, err := wd.CollectedText(wd.BridgeRecorded(bridge, workdir.RecordedFDB))
	if text == "" || err != nil {
		return fmt.Sprintf("the MAC addresses that it had learned were not recorded: ovs-appctl fdb/show %s has them", bridge), err
	}
	for mac := range appctl.LearnedMACs(text) {
		if number, err := strconv.Atoi(mac.Port); err == nil {
			if port, known := node.Numbered(bridge, number); !known || port.Unknown == ovsdb.UnknownNumber || port.Unknown == ovsdb.UnusedNumber {
				return fmt.Sprintf("it had learned addresses at port %d, whose name was not recorded: ovs-ofctl show %s has it", number, bridge), nil
			}
		}
	}
	return "", nil
}

// reject adds a flow that could not be restored.
func (i *incomplete) reject(item report.Item) {
	key, err := openflow.ParseKey(item.Text)
	if err != nil || !strings.Contains(item.Text, "actions=") {
		i.unread[item.Bridge] = true
		return
	}
	table := tableOf{item.Bridge, key.Table}
	i.rejected[table] = append(i.rejected[table], key)
}

// doubt returns why it is not known what becomes of a packet in a pass, "" if it is known: a flow that was not recorded, or not restored,
// could match the packet before the one that did.
func (i *incomplete) doubt(p *pass.Pass) string {
	for _, stage := range p.Stages {
		if stage.Chain != "" {
			continue
		}
		partial := i.partial[stage.Bridge]
		rejected := slices.ContainsFunc(i.rejected[tableOf{stage.Bridge, stage.Table}], func(flow openflow.Key) bool { return stage.Miss || flow.Priority >= stage.Priority })
		switch {
		case !i.recorded[stage.Bridge]:
			return fmt.Sprintf("the flows of bridge %s were not collected", stage.Bridge)
		case !i.listed[stage.Bridge] && slices.ContainsFunc(stage.Lines, isFlood):
			return fmt.Sprintf("the packet is sent to all or several ports of bridge %[1]s, whose ports were not recorded: ovs-ofctl show %[1]s has them", stage.Bridge)
		case partial != nil && !slices.Contains(partial.WholeTables, stage.Table):
			return fmt.Sprintf("the packet meets table %d of bridge %s, of whose flows only a part was collected: %s", stage.Table, stage.Bridge, partial)
		case i.unread[stage.Bridge]:
			return fmt.Sprintf("the packet meets table %d of bridge %s, and collected lines of its flows could not be read: the node's report lists them", stage.Table, stage.Bridge)
		case rejected:
			return fmt.Sprintf("the packet meets table %d of bridge %s, and flows there that could match it were collected and not restored: the node's report lists them", stage.Table, stage.Bridge)
		}
		if why := i.switching(p, stage); why != "" {
			return why
		}
		if group := i.placeholder(stage); group != "" {
			return fmt.Sprintf("the packet is sent to group %s of bridge %s, which was not collected", group, stage.Bridge)
		}
	}
	return ""
}

// isFlood reports whether a line of a trace is an action whose ports the switch chooses.
func isFlood(line string) bool {
	return slices.Contains([]string{"NORMAL", "FLOOD", "ALL"}, strings.TrimSpace(line))
}

// switching returns why it is not known where the action NORMAL of a stage sends the packet, "" if it is known, or there is none.
func (i *incomplete) switching(p *pass.Pass, stage pass.Stage) string {
	if !slices.Contains(stage.Lines, "NORMAL") {
		return ""
	}
	if i.ports[stage.Bridge] {
		return fmt.Sprintf("bridge %s forwards with NORMAL, and the VLANs or the numbers of some of its ports were not recorded: ovs-vsctl show has VLANs, ovs-ofctl show numbers", stage.Bridge)
	}
	toAll := isMulticast(p.Flow.Get("dl_dst")) && !p.Sets("dl_dst")
	if why := i.learned[stage.Bridge]; why != "" && stage.Floods() && !toAll {
		return fmt.Sprintf("bridge %s floods the packet with NORMAL, and %s", stage.Bridge, why)
	}
	return ""
}

// placeholder returns the group that a stage sends the packet to if nothing of it was collected, "" for none.
func (i *incomplete) placeholder(stage pass.Stage) string {
	for _, line := range stage.Lines {
		if len(i.groups) == 0 || !openflow.MayHaveIDs(line) {
			continue
		}
		for _, id := range openflow.IDs(line) {
			if id.Kind == openflow.GroupID && i.groups[groupOf{stage.Bridge, id.Number}] {
				return fmt.Sprint(id.Number)
			}
		}
	}
	return ""
}

// lacks returns why it is not known what becomes of a packet in a hop, "" if it is known.
func (j *judge) lacks(hop *follow.Hop) string {
	if n := j.nodes[hop.Node]; n != nil && n.incomplete != nil && hop.Pass != nil && !hop.Kernel {
		return n.incomplete.doubt(hop.Pass)
	}
	return ""
}
