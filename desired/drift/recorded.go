package drift

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// node is what was recorded of a node.
type node struct {
	wd       *workdir.Dir
	manifest *workdir.Manifest
	bridge   string         // the integration bridge
	ovn      bool           // its OVS database configures an ovn-controller
	others   []string       // the other bridges
	ports    map[string]int // the numbers of the ports of all bridges, by their names in OpenFlow
	seen     int            // the nb_cfg that ovn-controller had installed, 0 if unknown

	state flowdiff.State
	lost  []openflow.Problem
	lacks []string // the dumps that were not collected: groups, meters
	flows bool     // the dump of flows was collected
}

// readNode reads what was recorded of a node, with the dumps of its integration bridge.
func readNode(ctx context.Context, wd *workdir.Dir) (*node, error) {
	n := &node{wd: wd}
	var err error
	if n.manifest, err = wd.Manifest(); err != nil {
		return nil, err
	}
	if err := n.readDatabase(ctx); err != nil || !n.ovn {
		return n, err
	}
	readers := map[workdir.Dump]io.Reader{}
	for _, dump := range []workdir.Dump{workdir.Flows, workdir.Groups, workdir.Meters} {
		f, ok, err := workdir.OpenCollected(wd.DumpFile(n.bridge, dump))
		switch {
		case err != nil:
			return nil, err
		case ok:
			defer f.Close()
			readers[dump] = interrupt.Reader(ctx, f)
		default:
			n.lacks = append(n.lacks, string(dump))
			readers[dump] = strings.NewReader("")
		}
		n.flows = n.flows || ok && dump == workdir.Flows
	}
	n.state, n.lost = flowdiff.Read(readers[workdir.Flows], readers[workdir.Groups], readers[workdir.Meters])
	n.state.OfFlows, n.state.OfGroups, n.state.Ports = n.dumpVersion(workdir.Flows), n.dumpVersion(workdir.Groups), n.ports
	return n, ctx.Err()
}

// readDatabase reads from the OVS database which bridge ovn-controller uses.
func (n *node) readDatabase(ctx context.Context) error {
	conf, err := file.OpenIndex(ctx, n.wd.Database(workdir.OVS), ovsdb.OVS, "Bridge", "Interface")
	if err != nil {
		return err
	}
	defer conf.Close()
	for row, err := range conf.Rows(ovsdb.OVS, "external_ids") {
		if err != nil {
			return err
		}
		n.bridge, n.ovn = ovsdb.IntegrationBridge(row.Map("external_ids"))
	}
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
func (n *node) countFlows(ctx context.Context, bridge string) (count int, err error) {
	f, ok, err := workdir.OpenCollected(n.wd.DumpFile(bridge, workdir.Flows))
	if err != nil || !ok {
		return 0, err
	}
	defer f.Close()
	for _, problem := range openflow.Flows(interrupt.Reader(ctx, f)) {
		if problem == nil {
			count++
		}
	}
	return count, ctx.Err()
}
