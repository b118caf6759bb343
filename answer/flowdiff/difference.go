package flowdiff

import (
	"strings"

	"ovs-offline/internal/phrase"
)

// KindLogicalFlow is the kind of an entry that is a logical flow.
const KindLogicalFlow = "logical flow"

// Difference is the entries that differ and have one cause.
type Difference[E Entry] struct {
	Cause
	What      string   `json:"what"` // Cause, stages and datapaths in one sentence
	Stages    []string `json:"stages,omitempty"`
	Datapaths []string `json:"datapaths,omitempty"`
	Count     int      `json:"count"`
	// Note explains the difference, where that is known.
	Note    string `json:"note,omitempty"`
	Entries []E    `json:"entries"`
}

// Entry is a flow, a group or a meter that differs, as a command describes it.
type Entry interface {
	// EntryKind returns KindFlow, KindGroup, KindMeter or KindLogicalFlow.
	EntryKind() string
}

// DifferenceOf returns a group of changes as a difference; entry describes each change.
func DifferenceOf[E Entry](g Group, entry func(Change) E) Difference[E] {
	difference := Difference[E]{Cause: g.Cause, What: g.String(), Stages: g.Stages, Datapaths: g.Datapaths, Count: len(g.Changes)}
	for _, c := range g.Changes {
		difference.Entries = append(difference.Entries, entry(c))
	}
	return difference
}

// CountEntries counts the entries of differences by their kinds: "12 flows, 1 group".
func CountEntries[E Entry](list []Difference[E]) string {
	counts := map[string]int{}
	for _, d := range list {
		for _, e := range d.Entries {
			counts[e.EntryKind()]++
		}
	}
	var parts []string
	for _, kind := range []string{KindFlow, KindGroup, KindMeter, KindLogicalFlow} {
		if counts[kind] > 0 {
			parts = append(parts, phrase.Count(counts[kind], kind))
		}
	}
	return strings.Join(parts, ", ")
}

// String returns the difference in one line: "12 flows of NetworkPolicy ns2/allow-db ...".
func (d *Difference[E]) String() string {
	count, what := CountEntries([]Difference[E]{*d}), d.What
	if strings.Contains(count, KindLogicalFlow) {
		what = strings.TrimPrefix(what, KindLogicalFlow+" of ")
	}
	text := count + " of " + what
	if d.Note != "" {
		text += "; " + d.Note
	}
	return text
}
