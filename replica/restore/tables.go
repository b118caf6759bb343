package restore

import (
	"context"
	"io"
	"slices"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/restore/tables"
)

// tables returns the Tables that restores the tables of the node's bridges.
func (n *Replica) tables() *tables.Tables {
	if n.tableSteps == nil {
		n.tableSteps = &tables.Tables{Switch: tableSwitch{n}, Workdir: n.Workdir, Manifest: n.Manifest, Facts: n.Facts,
			Report: n.Report, Progress: n.Progress, Isolated: n.Isolated}
		for _, bridge := range n.Bridges {
			n.tableSteps.Bridges = append(n.tableSteps.Bridges, tables.Bridge{Name: bridge.Name, Protocols: bridge.Protocols,
				HasControllers: len(bridge.controllers) > 0, OfKernel: bridge.hasKernelDatapath()})
		}
	}
	return n.tableSteps
}

// tableSwitch gives package tables access to the replica.
type tableSwitch struct{ *Replica }

func (s tableSwitch) bridge(name string) *Bridge {
	return s.Bridges[slices.IndexFunc(s.Bridges, func(bridge *Bridge) bool { return bridge.Name == name })]
}

// Ofctl implements tables.Switch.
func (s tableSwitch) Ofctl(ctx context.Context, ofctl tables.Ofctl) error {
	argv := append([]string{"ovs-ofctl"}, ofctl.Options...)
	argv = append(append(argv, "--", ofctl.Command, s.management(s.bridge(ofctl.Bridge))), ofctl.Args...)
	if ofctl.Stdout != nil {
		return s.Runtime.ToolTo(ctx, s.Switch.dir, ofctl.Stdin, ofctl.Stdout, argv...)
	}
	_, err := s.Runtime.Tool(ctx, s.Switch.dir, ofctl.Stdin, argv...)
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
	for _, iface := range s.bridge(bridge).Interfaces() {
		names = append(names, iface.Name)
	}
	rows, err := s.DB.Select(ctx, "Flow_Table", "name")
	for _, row := range rows {
		names = append(names, row.String("name"))
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
	for _, row := range rows {
		if settings := ovn.Settings(row.Map("external_ids")); settings.Configured() && bridge == settings.Bridge() {
			return true, nil
		}
	}
	return false, nil
}
