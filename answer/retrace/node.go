package retrace

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/node"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// reader is a node with what reading its traces needs.
type reader struct {
	*snapshot.Node
	running Replica
	dir     *workdir.Dir
	sb      *file.Index               // nil where it was not collected
	rules   *rules.Rules              // without sb, only for reasons
	agents  map[string]string         // the kinds of the bridges of neutron's agent
	ports   map[string]map[int]string // names by bridge and OpenFlow number
	// numbers are the names of ports by their datapath numbers, recorded on the node.
	numbers map[string]string
	layouts map[string]rules.Layout
	replica *host.Host // nil until it is asked
	down    error      // why it can't be
}

// openNode reads what was collected about the ports of a node, and takes its databases from deployments.
func openNode(ctx context.Context, n *snapshot.Node, running Replica, wd *workdir.Dir, deployments []*snapshot.Deployment) (*reader, error) {
	r := &reader{Node: n, running: running, dir: wd, ports: map[string]map[int]string{}, numbers: map[string]string{}, layouts: map[string]rules.Layout{}}
	var nb, ovs *file.Index
	for _, deployment := range deployments {
		if own := deployment.Node(n.Name); own.Name != "" {
			nb, r.sb, ovs = deployment.NB, deployment.SB, own.OVS
		}
	}
	r.rules = rules.New(nb, r.sb)
	var err error
	if ovs != nil && r.sb == nil {
		if r.agents, err = rules.AgentBridges(ovs); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	bridges, err := node.Bridges(ovs)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	for i := range node.Interfaces(bridges...) {
		r.namePort(i.Port.Bridge.Name, i.Number, i.Name)
	}
	return r, r.readPorts()
}

// readPorts reads the names of ports that commands printed.
func (r *reader) readPorts() error {
	text, err := r.recordedText(r.dir.Recorded(workdir.RecordedDpifShow))
	if err != nil {
		return err
	}
	for port := range appctl.BridgePorts(text) {
		r.namePort(port.Bridge, port.OpenFlow, port.Name)
		if port.Datapath != "none" {
			r.numbers[port.Datapath] = port.Name
		}
	}
	bridges, err := r.dir.RecordedBridges()
	if err != nil {
		return err
	}
	for _, bridge := range bridges {
		shown, ok, err := r.dir.Collected(r.dir.BridgeRecorded(bridge, workdir.RecordedShow))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for _, port := range openflow.Show(shown).Ports {
			r.namePort(bridge, port.Number, port.Name)
		}
		shown.Close()
	}
	return nil
}

// recordedText returns a collected text, "" if it was not collected.
func (r *reader) recordedText(path string) (string, error) {
	in, ok, err := r.dir.Collected(path)
	if err != nil || !ok {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxBytes))
	return string(text), err
}

func (r *reader) namePort(bridge string, number int, name string) {
	if number <= 0 {
		return
	}
	if r.ports[bridge] == nil {
		r.ports[bridge] = map[int]string{}
	}
	if r.ports[bridge][number] == "" {
		r.ports[bridge][number] = name
	}
}

// portName returns a port of a bridge as it is printed, with its name where only the number is: "2 (tap1)".
func (r *reader) portName(bridge, printed string) string {
	number, err := strconv.Atoi(printed)
	if err != nil || r.ports[bridge][number] == "" {
		return printed
	}
	return fmt.Sprintf("%s (%s)", printed, r.ports[bridge][number])
}

// layout returns where ovn-controller put OVN's pipelines on a bridge: by its recorded flows, or else by those of a trace.
func (r *reader) layout(ctx context.Context, bridge string, keys []openflow.Key) (rules.Layout, error) {
	if known, ok := r.layouts[bridge]; ok {
		return known, nil
	}
	if r.sb == nil {
		return rules.Layout{}, nil
	}
	dump := r.dir.DumpFile(bridge, workdir.Flows)
	if _, err := os.Stat(dump); err == nil {
		layout, err := r.rules.ReadLayout(ctx, &r.dir.Data, dump)
		if err != nil {
			return layout, fmt.Errorf("node %s: the flows of bridge %s: %w", r.Name, bridge, err)
		}
		r.layouts[bridge] = layout
		return layout, nil
	}
	return r.rules.Layout(func(yield func(openflow.Key) bool) {
		for _, key := range keys {
			if !yield(key) {
				return
			}
		}
	})
}

// hasSwitch reports whether anything was collected of which a replica of the switch can be made.
func (r *reader) hasSwitch() bool {
	if bridges, err := r.dir.DumpedBridges(); r.dir.SwitchDatabase() != "" || err != nil || len(bridges) > 0 {
		return true
	}
	for _, name := range []string{workdir.RecordedSwitchShow, workdir.RecordedListBridge, workdir.RecordedDatabaseDump} {
		if _, err := os.Stat(r.dir.Recorded(name)); err == nil {
			return true
		}
	}
	return false
}

func (r *reader) close() {
	if r.replica != nil {
		r.replica.Close()
	}
}
