package restore

import (
	"context"
	"io"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/replica/restore/tables"
)

// tables returns the Tables that restores the tables of the node's bridges.
func (n *Node) tables() *tables.Tables {
	if n.tableSteps == nil {
		n.tableSteps = &tables.Tables{Switch: tableSwitch{n}, Workdir: n.Workdir, Manifest: n.Manifest, Facts: n.Facts,
			Report: n.Report, Progress: n.Progress, Isolated: n.Isolated}
		for _, b := range n.Bridges {
			n.tableSteps.Bridges = append(n.tableSteps.Bridges, tables.Bridge{Name: b.Name, Protocols: b.Protocols, HasControllers: len(b.controllers) > 0, OfKernel: b.hasKernelDatapath()})
		}
	}
	return n.tableSteps
}

// tableSwitch gives package tables access to the replica.
type tableSwitch struct{ *Node }

func (s tableSwitch) bridge(name string) *Bridge {
	return s.Bridges[slices.IndexFunc(s.Bridges, func(b *Bridge) bool { return b.Name == name })]
}

// Ofctl implements tables.Switch.
func (s tableSwitch) Ofctl(ctx context.Context, c tables.Ofctl) error {
	argv := append([]string{"ovs-ofctl"}, c.Options...)
	argv = append(append(argv, "--", c.Command, s.management(s.bridge(c.Bridge))), c.Args...)
	if c.Stdout != nil {
		return s.Runtime.ToolTo(ctx, s.Switch.dir, c.Stdin, c.Stdout, argv...)
	}
	_, err := s.Runtime.Tool(ctx, s.Switch.dir, c.Stdin, argv...)
	return err
}

// BridgeFlows implements tables.Switch.
func (s tableSwitch) BridgeFlows(ctx context.Context, bridge string, w io.Writer) error {
	return s.Runtime.ToolTo(ctx, s.Switch.dir, nil, w, "ovs-appctl", "bridge/dump-flows", bridge)
}

// Version implements tables.Switch.
func (s tableSwitch) Version(ctx context.Context, bridge string) (openflow.Version, error) {
	return s.newest(ctx, s.bridge(bridge))
}

// Names implements tables.Switch.
func (s tableSwitch) Names(ctx context.Context, bridge string) ([]string, error) {
	var names []string
	for _, i := range s.bridge(bridge).Interfaces() {
		names = append(names, i.Name)
	}
	rows, err := s.DB.Select(ctx, "Flow_Table", "name")
	for _, r := range rows {
		names = append(names, r.String("name"))
	}
	return names, err
}

// IsManaged implements tables.Switch.
func (s tableSwitch) IsManaged(ctx context.Context) (bool, error) {
	rows, err := s.DB.Select(ctx, "Manager", "target")
	return len(rows) > 0, err
}

// IsOVN implements tables.Switch.
func (s tableSwitch) IsOVN(ctx context.Context, bridge string) (bool, error) {
	rows, err := s.DB.Select(ctx, "Open_vSwitch", "external_ids")
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		if name, ovn := ovsdb.IntegrationBridge(r.Map("external_ids")); ovn && bridge == name {
			return true, nil
		}
	}
	return false, nil
}
