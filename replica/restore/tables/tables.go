// Package tables fills the tables of a replica's bridges: TLV maps, meters,
// groups and flows. It loads the collected dumps, tries other ways where the
// switch rejects an entry, reads the tables back and reports each entry that is
// not as it was collected.
package tables

import (
	"context"
	"fmt"
	"io"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Switch is the replica's ovs-vswitchd and its database, as far as this package
// needs them.
type Switch interface {
	// Ofctl runs ovs-ofctl. Its error is a *command.Error if the command failed.
	Ofctl(ctx context.Context, ofctl Ofctl) error
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
	OfKernel       bool // its datapath on the node was the kernel's
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
	Isolated bool              // the daemons can reach no network
	Bridges  []Bridge

	script *saveScript // nil until it is read
	loaded []*loaded   // the tables that Flows reads back
}

// kind is a kind of table that ovs-ofctl dumps and fills.
type kind struct {
	dump    workdir.Dump
	print   string // the command of ovs-ofctl that dumps the table
	add     string // the one that adds an entry, or with isList the lines of its input
	isList  bool
	entries func(io.Reader) ([]openflow.Entry, []openflow.Problem)
}

var (
	flowTable  = kind{workdir.Flows, "dump-flows", "add-flows", true, nil}
	groupTable = kind{workdir.Groups, "dump-groups", "add-groups", true, openflow.Groups}
	meterTable = kind{workdir.Meters, "dump-meters", "add-meter", false, openflow.Meters}
	tlvTable   = kind{workdir.TLV, "dump-tlv-map", "add-tlv-map", false, openflow.TLVMap}
)

// table is a table of a bridge.
type table struct {
	*Tables
	kind
	bridge  Bridge
	version openflow.Version // the newest that the bridge speaks
	names   string           // the ovs-ofctl option with which the replica prints entries as the dump does
	runs    int              // of ovs-ofctl that added entries, beside the first of each bundle of flows
	untried int              // entries that were not tried by themselves: see maxRuns
}

func (t *Tables) table(ctx context.Context, bridge Bridge, k kind) (*table, error) {
	version, err := t.Switch.Version(ctx, bridge.Name)
	return &table{Tables: t, kind: k, bridge: bridge, version: version, names: NoNames}, err
}

// tableOf returns the bridge's table of another kind.
func (t *table) tableOf(kind kind) *table {
	return &table{Tables: t.Tables, kind: kind, bridge: t.bridge, version: t.version, names: NoNames}
}

// restore fills the tables of a kind. prepare returns the collected entries in the
// order in which they are added.
func (t *Tables) restore(ctx context.Context, kind kind, outcome *report.Outcome, prepare func(*table, []openflow.Entry) ([]openflow.Entry, error)) error {
	for _, bridge := range t.Bridges {
		table, err := t.table(ctx, bridge, kind)
		if err != nil {
			return err
		}
		list, err := table.collectedEntries()
		if err == nil {
			list, err = prepare(table, list)
		}
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		if err := table.load(ctx, list); err != nil {
			return err
		}
		t.loaded = append(t.loaded, &loaded{table: table, collected: list})
		outcome.Note(report.Restored, "")
	}
	return nil
}

func (t *table) remark(format string, args ...any) {
	t.Report.Remark(t.bridge.Name + ": " + fmt.Sprintf(format, args...))
}
