package drift

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/answer/prove"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/versions"
)

// Verdict is the outcome for a node in a word.
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
	// Why is the reason for a verdict other than None and Found.
	Why string `json:"why,omitempty"`
	// Doubts are the reasons why the differences may come from the databases, not from the node.
	Doubts []string `json:"doubts,omitempty"`
	// Unread is how many lines of the recorded dumps can't be used: what is missing may have been there.
	Unread int `json:"unread,omitempty"`
	// Behind is how many changes of nb_cfg of the SB database ovn-controller had not installed, where something differs.
	Behind   int           `json:"behind,omitempty"`
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
	// Either lists flows for which OVN leaves open what they are: logical flows of one
	// priority, or the flows of several router ports, match the same packets, and
	// ovn-controller installs one of them.
	Either []Difference `json:"either,omitempty"`

	// Changing lists what differs in the datapaths for which ovn-controller was installing flows while the
	// node was collected: the databases and the flows are not of one moment.
	Changing []Difference `json:"changing,omitempty"`

	// Meaning is what Missing, Extra and Altered do to packets: their Before is what becomes of these by the recorded state, After by the computed one.
	Meaning *prove.Meaning `json:"meaning,omitempty"`

	LeftOut []LeftOut `json:"left_out,omitempty"`
	Northd  *Northd   `json:"northd,omitempty"`
	Remarks []string  `json:"remarks,omitempty"`
}

// Caveats returns why what differs may be no fault of the node.
func (r *Report) Caveats() []string {
	caveats := slices.Clone(r.Doubts)
	if r.Behind > 0 {
		caveats = append(caveats, fmt.Sprintf("ovn-controller had not yet installed %s of the SB database", phrase.Count(r.Behind, "change")))
	}
	return caveats
}

// Differing returns how many entries differ.
func (r *Report) Differing() int { return Entries(r.Missing) + Entries(r.Extra) + Entries(r.Altered) }

// Entries returns how many entries differ in a list.
func Entries(list []Difference) (count int) {
	for _, d := range list {
		count += len(d.Entries)
	}
	return count
}

// Counts are the recorded entries that were compared.
type Counts struct {
	Flows  int `json:"flows"`
	Groups int `json:"groups"`
	Meters int `json:"meters"`
}

// Difference is the entries that differ and have one cause.
type Difference = flowdiff.Difference[Entry]

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

	logical flowdiff.LogicalKey // of a logical flow that was computed
}

// LeftOut is recorded flows that ovn-controller does not install, and that are not compared.
type LeftOut struct {
	Bridge string `json:"bridge"`
	Table  int    `json:"table,omitempty"`
	Flows  int    `json:"flows"`
	Why    string `json:"why"`
}

// undetermined sets the verdict to Undetermined.
func (r *Report) undetermined(why string) *Report {
	r.Verdict, r.Why = Undetermined, why
	return r
}

// Summary returns the verdict in one sentence.
func (r *Report) Summary() string {
	switch r.Verdict {
	case NoOVN:
		return r.Why
	case Undetermined:
		return "UNDETERMINED: " + r.Why
	}
	compared := fmt.Sprintf("%s, %s and %s of %s", phrase.Count(r.Compared.Flows, "flow"), phrase.Count(r.Compared.Groups, "group"), phrase.Count(r.Compared.Meters, "meter"), r.Bridge)
	var differ []string
	for _, list := range []struct {
		of   []Difference
		what string
	}{{r.Missing, "missing"}, {r.Extra, "extra"}, {r.Altered, "altered"}} {
		if n := Entries(list.of); n > 0 {
			differ = append(differ, fmt.Sprintf("%d %s", n, list.what))
		}
	}
	if len(differ) == 0 {
		return fmt.Sprintf("no drift: %s are what OVN %s computes", compared, r.Running.OVN)
	}
	return fmt.Sprintf("drift: %s; %d are what OVN %s computes (of %s)", strings.Join(differ, ", "), r.Same, r.Running.OVN, compared)
}

// Summary returns the outcome in one sentence.
func (n *Northd) Summary() string {
	if len(n.Missing)+len(n.Extra)+len(n.Altered) == 0 {
		return fmt.Sprintf("the %s are what ovn-northd makes of the NB database", phrase.Count(n.Compared, flowdiff.KindLogicalFlow))
	}
	return fmt.Sprintf("of %s, %d are what ovn-northd makes of the NB database", phrase.Count(n.Compared, flowdiff.KindLogicalFlow), n.Same)
}

// EntryKind implements flowdiff.Entry.
func (e Entry) EntryKind() string { return e.Kind }

// Lines returns the entry in lines for a user.
func (e *Entry) Lines() (lines []string) {
	if e.Recorded != "" {
		lines = append(lines, "recorded: "+e.Recorded)
	}
	if e.Computed != "" {
		lines = append(lines, "computed: "+e.Computed)
	}
	if e.Packets != "" {
		lines = append(lines, "packets that it matched: "+e.Packets)
	}
	for _, flow := range e.Datapath {
		lines = append(lines, "used by datapath flow: "+flow)
	}
	return lines
}
