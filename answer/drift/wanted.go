package drift

import (
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/ovsdb/file"
)

// Wanted is an entry that a node should have, and that it lacks or has otherwise.
type Wanted struct {
	Difference // of which it is one
	Entry      Entry
}

// Wanted returns the first entry of this kind in whose texts, or in whose cause, a text occurs; nil if there is none. An
// entry of which only the cookie differs is none of them: the node has what it does.
func (r *Report) Wanted(text string) *Wanted {
	differences := slices.Concat(r.Missing, r.Altered)
	if r.Northd != nil {
		differences = slices.Concat(differences, r.Northd.Missing, r.Northd.Altered)
	}
	for _, difference := range differences {
		for _, entry := range difference.Entries {
			texts := []string{difference.String(), entry.Computed, entry.Recorded}
			if entry.Differs != "cookie" && slices.ContainsFunc(texts, func(of string) bool { return strings.Contains(of, text) }) {
				return &Wanted{difference, entry}
			}
		}
	}
	return nil
}

// IsLogicalIn reports whether an SB database has the logical flow, for the same datapath.
func (e *Entry) IsLogicalIn(sb *file.Index) (bool, error) {
	flows, err := flowdiff.ReadLogical(nil, sb)
	return err == nil && flows.Has(e.logical), err
}
