// Package recording is what a source told of one node, by meaning: what those who
// recognise a source (an sos report, a must-gather, files of a person's own)
// hand to the one who writes a workdir. Where a thing stood in the source, and
// how its file was called there, no longer matters.
package recording

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/workdir"
)

// Meaning is what a command's output tells, spelled as the command with dots
// for slashes. The recorded state of a workdir carries the same names.
type Meaning string

// The dumps, which come in OpenFlow versions (see Output.OpenFlow). Everything
// else is a name of workdir/recorded.go.
const (
	Flows  Meaning = "dump-flows"
	Groups Meaning = "dump-groups"
	Meters Meaning = "dump-meters"
	TLVMap Meaning = "dump-tlv-map"
	// SaveScript is the script that ovs-save wrote. It is read, never run.
	SaveScript Meaning = "ovs-save"
)

// OfBridges are the recorded meanings that are about one bridge each.
func OfBridges() []Meaning {
	return []Meaning{workdir.RecordedMeterStats, workdir.RecordedShow, workdir.RecordedBridgeFlows, workdir.RecordedFeatures,
		workdir.RecordedFDB, workdir.RecordedMDB, workdir.RecordedRSTP, workdir.RecordedSTP}
}

// OfNodes are the recorded meanings that are about the whole node.
func OfNodes() []Meaning {
	list := []Meaning{workdir.RecordedBFD, workdir.RecordedBond, workdir.RecordedCFM, workdir.RecordedLACP, workdir.RecordedRoutes,
		workdir.RecordedNeighbours, workdir.RecordedTunnels, workdir.RecordedDpifShow, workdir.RecordedTunnelPorts, workdir.RecordedDatapathShow,
		workdir.RecordedDatapathFlows, workdir.RecordedConntrack, workdir.RecordedDatabaseDump}
	for _, table := range workdir.ListedTables() {
		list = append(list, Meaning(workdir.RecordedList(table)))
	}
	return list
}

// Output is what one command printed on the node.
type Output struct {
	Meaning  Meaning
	Bridge   string // "" where the command is not about one bridge
	OpenFlow string // "OpenFlow15"; "" for a command without -O
	Origin   string // its path in the source
	File     string // where its text stands now
	Size     int64
	// Truncated says that the source cut it: only its end is there.
	Truncated bool
}

// Database is a file that holds a database, or stands where one does. What it
// is, its content says.
type Database struct {
	Origin    string
	File      string
	Size      int64
	Truncated bool
	// Elsewhere says that it stands where no node has its databases: a copy, or
	// a deployment that the source doesn't know.
	Elsewhere bool
	// Second says that it is of another source than the node, and taken only
	// where the node has none of its kind.
	Second  bool
	Shared  bool            // other nodes get it too
	Source  *workdir.Source // nil for the node's own
	Remarks []string
}

// Node is what is known of one node.
type Node struct {
	// Host is its name as the source tells it, "" where it doesn't.
	Host       string
	Source     workdir.Source
	OVSVersion string
	OVNVersion string
	// Bridges in the order in which the node listed them.
	Bridges   []string
	Databases []Database
	// Dangling are the links to databases whose targets the source lacks.
	Dangling []string
	// All are the outputs of every meaning, the best of each first.
	All []Output
	// Remarks are what a person should know; Lost is what the source held and
	// could not be read.
	Remarks []string
	Lost    []string
	// LostDatabases are those of Lost that are about a database, by its kind.
	LostDatabases map[workdir.Kind][]string
}

// Outputs returns every output of that meaning for a bridge ("" for those that
// are about the whole node), the best first.
func (n *Node) Outputs(m Meaning, bridge string) []Output { return n.ByMeaning()[About{m, bridge}] }

// About is what an output is about.
type About struct {
	Meaning Meaning
	Bridge  string
}

// ByMeaning returns all outputs by what they are about, the best of each first.
func (n *Node) ByMeaning() map[About][]Output {
	found := map[About][]Output{}
	for _, o := range n.All {
		about := About{o.Meaning, o.Bridge}
		found[about] = append(found[about], o)
	}
	return found
}

// BoundBridges keeps no more bridges than any node should have, and says so: a list
// of names is quickly made.
func (n *Node) BoundBridges() {
	const most = 4096
	if len(n.Bridges) > most {
		n.Lost = append(n.Lost, fmt.Sprintf("%d bridges are told of: only the first %d are taken", len(n.Bridges), most))
		n.Bridges = n.Bridges[:most]
	}
}

// Some names the first of many.
func Some(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// AddBridge notes a bridge that is not yet known.
func (n *Node) AddBridge(name string) {
	if !slices.Contains(n.Bridges, name) {
		n.Bridges = append(n.Bridges, name)
	}
}
