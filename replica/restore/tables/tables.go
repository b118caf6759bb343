// Package tables fills the tables of a replica's bridges: TLV maps, meters,
// groups and flows. It loads the collected dumps, tries other ways where the
// switch rejects an entry, reads the tables back and reports each entry that is
// not as it was collected.
package tables

import (
	"context"
	"fmt"
	"io"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// Switch is the replica's ovs-vswitchd and its database, as far as this package
// needs them.
type Switch interface {
	// Ofctl runs ovs-ofctl. Its error is a *command.Error if the command failed.
	Ofctl(ctx context.Context, c Ofctl) error
	// BridgeFlows writes the output of bridge/dump-flows to w.
	BridgeFlows(ctx context.Context, bridge string, w io.Writer) error
	// Version returns the newest OpenFlow version that a bridge speaks.
	Version(ctx context.Context, bridge string) (openflow.Version, error)
	// Names returns the names of a bridge's interfaces and of all flow tables.
	Names(ctx context.Context, bridge string) ([]string, error)
	// IsOVN reports whether ovn-controller manages a bridge's flows.
	IsOVN(ctx context.Context, bridge string) (bool, error)
	// IsManaged reports whether the database names an OVSDB manager.
	IsManaged(ctx context.Context) (bool, error)
}

// Ofctl is a command of ovs-ofctl on a bridge: ovs-ofctl OPTIONS COMMAND BRIDGE ARGS.
type Ofctl struct {
	Bridge  string
	Options []string
	Command string
	Args    []string
	Stdin   io.Reader // nil for none
	Stdout  io.Writer // nil to discard it
}

// Bridge is a bridge of the replica.
type Bridge struct {
	Name           string
	Protocols      []string // the OpenFlow versions that it speaks; empty for all
	HasControllers bool
}

// Tables restores the tables of all bridges. Its methods are steps of the
// restore; each reports through its outcome and returns an error only where the
// replica cannot go on.
type Tables struct {
	Switch   Switch
	Workdir  *workdir.Dir // holds the collected dumps
	Manifest *workdir.Manifest
	Facts    *Facts
	Report   *report.Report
	Progress func(text string) // nil for none
	Isolated bool              // the daemons have a network namespace of their own
	Bridges  []Bridge

	script   *saveScript // nil until it is read
	readBack map[table][]openflow.Entry
}

// table is a table of a bridge.
type table struct {
	bridge string
	dump   workdir.Dump
}

// ofctl runs ovs-ofctl in an OpenFlow version on a bridge.
func (t *Tables) ofctl(ctx context.Context, version openflow.Version, b Bridge, command string, args ...string) error {
	return t.Switch.Ofctl(ctx, Ofctl{Bridge: b.Name, Options: []string{NoNames, "-O", version.String()}, Command: command, Args: args})
}

func (t *Tables) remark(b Bridge, format string, args ...any) {
	t.Report.Remark(b.Name + ": " + fmt.Sprintf(format, args...))
}
