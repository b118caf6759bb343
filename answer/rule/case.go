package rule

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	dbfile "ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/node"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
	"ovs-offline/workdir/recording"
)

// Case is everything that was collected together.
type Case struct {
	Deployments []*Deployment
}

// Nodes returns the nodes of all deployments.
func (c *Case) Nodes() (all []*Node) {
	for _, d := range c.Deployments {
		all = append(all, d.Nodes...)
	}
	return all
}

// Deployment is an OVN deployment, or the nodes without OVN.
type Deployment struct {
	*snapshot.Deployment
	Nodes []*Node

	// Northbound returns the logical network, an empty one where the northbound database was not
	// collected.
	Northbound func() (*ovn.Northbound, error)

	southbound func() (*southbound, error)
	words      func() *rules.Rules
}

// Node is one node of a case.
type Node struct {
	snapshot.Member
	Deployment *Deployment
	Programs   Programs

	// Bridges returns the bridges of the OVS database, none where it was not collected.
	Bridges func() ([]*node.Bridge, error)
	// Manifest returns what was collected.
	Manifest func() (*workdir.Manifest, error)
	// Settings returns the settings of the node's ovn-controller, none without an OVS database.
	Settings func() (ovn.Settings, error)
	// UnknownErrors is the number of lines of errors in the node's logs that no rule is about, once the rule "logs" has looked.
	UnknownErrors int
	// Namespaces returns the network namespaces that were recorded, the node's own first.
	Namespaces func() ([]netns.Namespace, error)
}

// Of returns the case of opened deployments.
func Of(deployments []*snapshot.Deployment, programs Programs) *Case {
	c := &Case{}
	for _, opened := range deployments {
		d := &Deployment{Deployment: opened, southbound: sync.OnceValues(func() (*southbound, error) { return readSouthbound(opened.SB) }),
			Northbound: sync.OnceValues(func() (*ovn.Northbound, error) { return ovn.ReadNorthbound(opened.NB) }),
			words:      sync.OnceValue(func() *rules.Rules { return rules.New(opened.NB, opened.SB) })}
		for _, n := range opened.Nodes {
			d.Nodes = append(d.Nodes, &Node{Member: n, Deployment: d, Programs: programs, Manifest: sync.OnceValues(n.Dir.Manifest),
				Bridges:    sync.OnceValues(func() ([]*node.Bridge, error) { return node.Bridges(n.OVS) }),
				Settings:   sync.OnceValues(func() (ovn.Settings, error) { return ovn.ReadSettings(n.OVS) }),
				Namespaces: sync.OnceValues(func() ([]netns.Namespace, error) { return netns.Read(&n.Dir.Data) })})
		}
		c.Deployments = append(c.Deployments, d)
	}
	return c
}

// Title returns what users call a northbound row.
func (d *Deployment) Title(table, uuid string) string {
	if d.NB != nil {
		if row, ok, err := d.NB.Row(table, uuid); ok && err == nil {
			return d.words().Name(table, row)
		}
	}
	return rules.Kind(table) + " " + uuid
}

// Output returns what a command of a whole node printed, "" where that was not recorded.
func (n *Node) Output(name recording.Name) (string, error) {
	text, _, err := n.Dir.CollectedText(n.Dir.Recorded(string(name)))
	return text, err
}

// BridgeOutput returns what a command printed for a bridge, "" where that was not recorded.
func (n *Node) BridgeOutput(bridge string, name recording.Name) (string, error) {
	text, _, err := n.Dir.CollectedText(n.Dir.BridgeRecorded(bridge, string(name)))
	return text, err
}

// Printed returns the rows of a table of the OVS database in the order of their names, as ovs-vsctl list printed them, with the states that no database file holds: of
// a table that was printed in part, only if each row has the columns. It returns none where that was not recorded. whole reports that these
// are all rows of the table.
func (n *Node) Printed(table string, columns ...string) (rows []ovsdb.Record, whole bool, err error) {
	file, ok, err := n.Dir.Collected(n.Dir.Recorded(workdir.RecordedList(table)))
	if err != nil {
		return nil, false, err
	}
	if ok {
		defer file.Close()
		rows, err = ovsdb.Listing(file)
		return byName(rows), true, err
	}
	known, part, err := n.known(table)
	if err != nil || !part || len(columns) == 0 || !known.Has(columns...) {
		return nil, false, err
	}
	tables, err := dbfile.PrintedTables(context.Background(), n.Dir.HostRecorded(workdir.HostParts(workdir.OVS)))
	return byName(tables[table]), known.All, err
}

func byName(rows []ovsdb.Record) []ovsdb.Record {
	slices.SortStableFunc(rows, func(a, b ovsdb.Record) int { return cmp.Compare(a.Column("name"), b.Column("name")) })
	return rows
}

// known returns what is known of a table of the OVS database that was printed in part.
func (n *Node) known(table string) (known dbfile.KnownTable, part bool, err error) {
	manifest, err := n.Manifest()
	if err != nil {
		return known, false, err
	}
	known, part = manifest.Known(workdir.OVS)[table]
	return known, part, nil
}

// Shown returns what ovs-vsctl show printed of the switch, of which most columns are unknown; nil where that was not recorded.
func (n *Node) Shown() (*ovsdb.Outline, error) {
	return ovsdb.ShownIn(n.Dir.Recorded(workdir.RecordedSwitchShow))
}

// RecordedBridges returns the bridges of which commands were recorded.
func (n *Node) RecordedBridges() ([]string, error) { return n.Dir.RecordedBridges() }
