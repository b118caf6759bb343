package drift

import (
	"ovs-offline/desired/flowdiff"
	"ovs-offline/internal/versions"
)

// Verdict says whether a node has what it should have.
type Verdict string

// The verdicts.
const (
	None         Verdict = "no drift"
	Found        Verdict = "drift"
	Undetermined Verdict = "undetermined"
	NoOVN        Verdict = "no OVN" // there is nothing to compare
)

// Report is the outcome for a node.
type Report struct {
	Verdict Verdict `json:"verdict"`
	// Why is the cause of a verdict other than None and Found.
	Why      string        `json:"why,omitempty"`
	Bridge   string        `json:"bridge,omitempty"` // the integration bridge
	Recorded versions.Pair `json:"recorded"`         // the versions on the node
	Running  versions.Pair `json:"running"`          // the versions that computed what should be
	Compared Counts        `json:"compared"`
	Same     int           `json:"same"` // recorded entries that are as computed

	// Missing lists what was computed and not recorded, Extra what was recorded and not
	// computed, and Altered what was recorded otherwise than it was computed.
	Missing []Difference `json:"missing"`
	Extra   []Difference `json:"extra"`
	Altered []Difference `json:"altered"`

	LeftOut []LeftOut `json:"left_out,omitempty"`
	Northd  *Northd   `json:"northd,omitempty"`
	Remarks []string  `json:"remarks,omitempty"`
}

// Counts are the recorded entries that were compared.
type Counts struct {
	Flows  int `json:"flows"`
	Groups int `json:"groups"`
	Meters int `json:"meters"`
}

// Difference is the entries that differ and have one cause.
type Difference struct {
	flowdiff.Cause
	What      string   `json:"what"` // Cause, stages and datapaths in one sentence
	Stages    []string `json:"stages,omitempty"`
	Datapaths []string `json:"datapaths,omitempty"`
	Count     int      `json:"count"`
	// Note explains the difference, where that is known.
	Note    string  `json:"note,omitempty"`
	Entries []Entry `json:"entries"`
}

// Entry is a flow, a group or a meter that differs.
type Entry struct {
	Kind     string `json:"kind"`
	Recorded string `json:"recorded,omitempty"`
	Computed string `json:"computed,omitempty"`
	Line     int    `json:"line,omitempty"`    // of the recorded dump
	Differs  string `json:"differs,omitempty"` // of an altered entry: cookie, actions, or both
	// Packets is the number of packets that the recorded flow matched, where it was recorded.
	Packets string `json:"packets,omitempty"`
	// Datapath lists recorded flows of the datapath that name the cookie of the flow.
	Datapath []string `json:"datapath,omitempty"`
}

// LeftOut is recorded flows that ovn-controller does not install, and that are not compared.
type LeftOut struct {
	Bridge string `json:"bridge"`
	Table  int    `json:"table,omitempty"`
	Flows  int    `json:"flows"`
	Why    string `json:"why"`
}

// differences are the lists of a report.
func (r *Report) differences() int { return len(r.Missing) + len(r.Extra) + len(r.Altered) }

// undetermined sets the verdict to Undetermined.
func (r *Report) undetermined(why string) *Report {
	r.Verdict, r.Why = Undetermined, why
	return r
}
