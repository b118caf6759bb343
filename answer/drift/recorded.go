package drift

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// recordedNode is the recorded state of a node.
type recordedNode struct {
	wd       *workdir.Dir
	manifest *workdir.Manifest
	bridge   string         // the integration bridge
	ovn      bool           // its OVS database configures an ovn-controller
	unknown  bool           // whether it does was not recorded
	others   []string       // the other bridges
	ports    map[string]int // the numbers of the ports of all bridges, by their names in OpenFlow
	seen     int            // the nb_cfg that ovn-controller had installed, 0 if unknown

	state   flowdiff.State
	lost    []openflow.Problem
	lacks   []string         // the dumps that were not collected: groups, meters
	flows   bool             // the dump of flows was collected
	partial *workdir.Partial // why that is not all of it, nil if it is
}

// readNode reads what was recorded of a node, with the dumps of its integration bridge.
func readNode(ctx context.Context, wd *workdir.Dir) (*recordedNode, error) {
	recorded := &recordedNode{wd: wd}
	var err error
	if recorded.manifest, err = wd.Manifest(); err != nil {
		return nil, err
	}
	if err := recorded.readDatabase(ctx); err != nil || !recorded.ovn {
		return recorded, err
	}
	recorded.partial = recorded.manifest.Partial(wd.Relative(wd.DumpFile(recorded.bridge, workdir.Flows)))
	readers := map[workdir.Dump]io.Reader{}
	for _, dump := range []workdir.Dump{workdir.Flows, workdir.Groups, workdir.Meters} {
		file, ok, err := wd.Collected(wd.DumpFile(recorded.bridge, dump))
		switch {
		case err != nil:
			return nil, err
		case ok:
			defer file.Close()
			readers[dump] = interrupt.Reader(ctx, file)
		default:
			recorded.lacks = append(recorded.lacks, string(dump))
			readers[dump] = strings.NewReader("")
		}
		recorded.flows = recorded.flows || ok && dump == workdir.Flows
	}
	recorded.state, recorded.lost = flowdiff.Read(readers[workdir.Flows], readers[workdir.Groups], readers[workdir.Meters])
	recorded.state.OfFlows, recorded.state.OfGroups, recorded.state.Ports = recorded.dumpVersion(workdir.Flows), recorded.dumpVersion(workdir.Groups), recorded.ports
	return recorded, ctx.Err()
}

// readDatabase reads from the OVS database which bridge ovn-controller uses.
func (n *recordedNode) readDatabase(ctx context.Context) error {
	conf, err := n.wd.Index(ctx, n.wd.SwitchDatabase(), ovsdb.OVS, "Bridge", "Interface")
	if err != nil {
		return err
	}
	defer conf.Close()
	settings, err := ovn.ReadSettings(conf)
	if err != nil {
		return err
	}
	n.bridge, n.ovn, n.unknown = settings.Bridge(), settings.Configured(), settings.Unknown()
	for row, err := range conf.Rows("Bridge", "name", "external_ids") {
		if err != nil {
			return err
		}
		if name := row.String("name"); name != n.bridge {
			n.others = append(n.others, name)
		} else {
			_, _ = fmt.Sscan(row.Map("external_ids")["ovn-nb-cfg"], &n.seen)
		}
	}
	n.ports = map[string]int{openflow.PortName(n.bridge): openflow.PortLocal}
	for row, err := range conf.Rows("Interface", "name", "ofport") {
		if err != nil {
			return err
		}
		if number, ok := row.Int("ofport"); ok {
			n.ports[openflow.PortName(row.String("name"))] = int(number)
		}
	}
	return nil
}

// countFlows returns the number of recorded flows of a bridge.
func (n *recordedNode) countFlows(ctx context.Context, bridge string) (count int, err error) {
	file, ok, err := n.wd.Collected(n.wd.DumpFile(bridge, workdir.Flows))
	if err != nil || !ok {
		return 0, err
	}
	defer file.Close()
	for _, problem := range openflow.Flows(interrupt.Reader(ctx, file)) {
		if problem == nil {
			count++
		}
	}
	return count, ctx.Err()
}
