// Package report defines report.json, the document that describes how faithful a
// replica is: what each step restored, how many entries of each dump were read back
// unchanged, and which entries were rejected, rewritten or replaced by placeholders.
// docs/formats.md describes each key.
package report

import (
	"fmt"
	"slices"
	"sync"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// Format is the version of the document, its key "version".
const Format = 1

// Report is the document report.json. Only Remark may be called concurrently.
type Report struct {
	Version      int            `json:"version"`
	Steps        []Result       `json:"steps"`
	Bridges      []BridgeReport `json:"bridges"`
	Rejected     []Item         `json:"rejected,omitempty"`     // entries that the replica does not have
	Rewritten    []Item         `json:"rewritten,omitempty"`    // entries that were loaded with another text than the dump's
	Placeholders []Item         `json:"placeholders,omitempty"` // entries made up because others refer to them
	Ports        []PortRow      `json:"ports,omitempty"`
	LogicalFlows *LogicalFlows  `json:"logical_flows,omitempty"` // nil if they were not checked
	Remarks      []string       `json:"remarks,omitempty"`
	Lost         []string       `json:"lost,omitempty"`   // what the source held and could not be read
	Origin       *Origin        `json:"origin,omitempty"` // nil for a node without OVN, or without its databases
	Recorded     versions.Pair  `json:"recorded"`
	Running      versions.Pair  `json:"running"`
	// Synthesised describes how the data of OVS was made up; nil where it was collected.
	Synthesised *workdir.Synthesis `json:"synthesised,omitempty"`
	// Built says what became of the commands that the node was made from; nil for another node.
	Built *workdir.Built `json:"built,omitempty"`
	// Moments has the times of what was recorded one after the other, the earliest first.
	Moments []workdir.Moment `json:"moments,omitempty"`
	// Namespaces are the network namespaces of the node that were restored; none if none were recorded.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// NamespacesProblem is why network namespaces that were recorded, or those that Namespaces lacks, are not restored; "" if they are.
	NamespacesProblem string `json:"namespaces_problem,omitempty"`
	// Loaded counts the flows of ovs-vswitchd once all was restored; nil without an ovs-vswitchd.
	Loaded *Loaded `json:"loaded,omitempty"`

	mu sync.Mutex
}

// Loaded counts what an ovs-vswitchd has, by which a later change is noticed.
type Loaded struct {
	Rules int `json:"rules"` // flows of all bridges, hidden ones included
	Ports int `json:"ports"`
}

// New returns an empty report.
func New() *Report { return &Report{Version: Format} }

// BridgeReport counts the entries of one bridge's dumps.
type BridgeReport struct {
	Name   string                   `json:"name"`
	Counts map[workdir.Dump]*Counts `json:"counts"`
	// OpenFlow is the version of the dump that was restored, by dump.
	OpenFlow map[workdir.Dump]openflow.Version `json:"openflow,omitempty"`
}

// Counts counts the entries of a dump by their outcome.
type Counts struct {
	Collected    int `json:"collected"`
	Restored     int `json:"restored"`  // read back from the replica unchanged
	Rewritten    int `json:"rewritten"` // restored entries that were loaded with another text than the dump's
	Placeholders int `json:"placeholders"`
	Rejected     int `json:"rejected"`
	Different    int `json:"different"` // loaded, but read back differently

	rejectedLines map[int]bool // all of them, also beyond the items that Rejected names
}

// IsRejected reports whether the entry on a line of the dump was rejected.
func (c *Counts) IsRejected(line int) bool { return c.rejectedLines[line] }

// Item is one entry that was not restored as it was collected.
type Item struct {
	Bridge string       `json:"bridge"`
	Dump   workdir.Dump `json:"dump"`
	File   string       `json:"file,omitempty"` // relative to the workdir
	Line   int          `json:"line,omitempty"`
	Text   string       `json:"text,omitempty"`
	Reason string       `json:"reason"`
}

// PortRow is one port with its number in the live datapath and in the replica's.
// A patch port has neither.
type PortRow struct {
	Bridge  string `json:"bridge"`
	Port    string `json:"port"`
	OfPort  int    `json:"ofport"`
	Live    string `json:"live_datapath_port"`
	Replica string `json:"replica_datapath_port"`
}

// Complete reports whether everything that was collected of Open vSwitch and OVN was restored, all commands that the node was
// made from were carried out, ovn-trace can parse all logical flows, and the southbound database belongs to the flows.
func (r *Report) Complete() bool {
	return r.Restored() && r.Built.Complete() && !r.LogicalFlows.Lossy() && !r.Origin.IsForeign()
}

// Sentence sums up the report.
func (r *Report) Sentence() string {
	switch {
	case r.Strict():
		return "All collected data is restored, and reads back the same."
	case r.Complete() && !r.namespacesComplete():
		return "All collected data of Open vSwitch and OVN is restored; what is not restored of the network namespaces is listed below."
	case r.Complete() && r.Synthesised != nil:
		return "The switch is synthesised from " + r.Synthesised.Origin() + "; what is assumed is listed below."
	case r.Complete():
		return "All collected data is restored; placeholders or defaults replace state of the node that was not collected."
	case r.Restored() && !r.Built.Complete():
		return "What the commands made is restored, but not all of them were carried out: they are listed below."
	case r.Restored() && r.Origin.IsForeign():
		return "All collected data is restored, but " + r.Origin.Sentence() + "."
	case r.Restored():
		return "All collected data is restored, but an answer of ovn-trace may be wrong: see the logical flows below."
	}
	return "Some of the collected data is not in the replica: it is listed below."
}

// Total sums up a count over all dumps. A report counts more entries than it lists.
func (r *Report) Total(of func(*Counts) int) (n int) {
	for _, report := range r.Bridges {
		for _, counts := range report.Counts {
			n += of(counts)
		}
	}
	return n
}

// Restored reports whether everything that was collected was restored.
func (r *Report) Restored() bool {
	if len(r.Rejected) > 0 || len(r.Lost) > 0 {
		return false
	}
	if slices.ContainsFunc(r.Steps, func(result Result) bool { return result.Status == Failed }) {
		return false
	}
	for _, report := range r.Bridges {
		for _, counts := range report.Counts {
			if counts.Different > 0 {
				return false
			}
		}
	}
	return true
}

// Strict reports whether the replica is complete without approximations,
// placeholders or unknown state. A synthesised switch has nothing but assumptions of these.
func (r *Report) Strict() bool {
	inexact := func(result Result) bool { return result.Status == Approximated || result.Status == Unknown }
	return r.Complete() && r.namespacesComplete() && r.Synthesised == nil && len(r.Placeholders) == 0 && !slices.ContainsFunc(r.Steps, inexact)
}

// Bridge returns the part of the report on a bridge and adds it if missing.
func (r *Report) Bridge(name string) *BridgeReport {
	for i := range r.Bridges {
		if r.Bridges[i].Name == name {
			return &r.Bridges[i]
		}
	}
	r.Bridges = append(r.Bridges, BridgeReport{Name: name, Counts: map[workdir.Dump]*Counts{}, OpenFlow: map[workdir.Dump]openflow.Version{}})
	return &r.Bridges[len(r.Bridges)-1]
}

// Counts returns the counts of a bridge's dump and adds them if missing.
func (r *Report) Counts(bridge string, dump workdir.Dump) *Counts {
	report := r.Bridge(bridge)
	if report.Counts[dump] == nil {
		report.Counts[dump] = &Counts{}
	}
	return report.Counts[dump]
}

// MaxItems bounds each list of items. All items are counted.
const MaxItems = 10000

// Reject records an entry that could not be restored.
func (r *Report) Reject(item Item) {
	r.Rejected = r.add(r.Rejected, item, "rejected")
	counts := r.Counts(item.Bridge, item.Dump)
	counts.Rejected++
	if counts.rejectedLines == nil {
		counts.rejectedLines = map[int]bool{}
	}
	counts.rejectedLines[item.Line] = true
}

// RejectUnnamed counts lines that could not be used, without naming them.
func (r *Report) RejectUnnamed(bridge string, dump workdir.Dump, lines int) {
	r.Remark(bounded("rejected"))
	counts := r.Counts(bridge, dump)
	counts.Collected += lines
	counts.Rejected += lines
}

// Rewrite records an entry that was loaded with another text than the dump's.
func (r *Report) Rewrite(item Item) {
	r.Rewritten = r.add(r.Rewritten, item, "rewritten")
	r.Counts(item.Bridge, item.Dump).Rewritten++
}

// Placeholder records an entry that was made up because others refer to it.
func (r *Report) Placeholder(item Item) {
	r.Placeholders = r.add(r.Placeholders, item, "placeholder")
	r.Counts(item.Bridge, item.Dump).Placeholders++
}

func (r *Report) add(list []Item, item Item, what string) []Item {
	const maxText, maxReason = 4096, 500 // bytes; a line can have 16 MB, and the errors of ovs-ofctl repeat it
	if len(list) == MaxItems {
		r.Remark(bounded(what))
		return list
	}
	item.Text, item.Reason = phrase.Shorten(item.Text, maxText), phrase.Shorten(item.Reason, maxReason)
	return append(list, item)
}

func bounded(what string) string {
	return fmt.Sprintf("only the first %d %s entries are listed", MaxItems, what)
}

// Remark adds a remark unless the report already has it.
func (r *Report) Remark(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.Remarks, text) {
		r.Remarks = append(r.Remarks, text)
	}
}

// DatapathPorts maps the replica's datapath port numbers to the live node's, or with
// toReplica the live node's to the replica's. Ports without a known pair of numbers are
// left out.
func (r *Report) DatapathPorts(toReplica bool) map[string]string {
	ports := map[string]string{}
	for _, row := range r.Ports {
		if row.Live == "none" || row.Live == "unknown" || row.Replica == "none" {
			continue
		}
		if toReplica {
			ports[row.Live] = row.Replica
		} else {
			ports[row.Replica] = row.Live
		}
	}
	return ports
}
