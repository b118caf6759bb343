package drift

import (
	"slices"
	"strings"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/pkg/ovsdb/file"
)

// Wanted is an entry that a node should have, and that it lacks or has otherwise.
type Wanted struct {
	Difference // of which it is one
	Entry      Entry
}

// Wanted returns the first entry that is missing or altered and whose flow or cause contains a text, or nil. It skips an entry
// that differs only in its cookie, because the node treats packets as it should.
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

// LogicalIn returns the UUID of the same logical flow, for the same datapath, in an SB database; "" if it has none.
func (e *Entry) LogicalIn(sb *file.Index) (uuid string, err error) {
	flows, err := flowdiff.ReadLogical(nil, sb)
	if err != nil {
		return "", err
	}
	return flows.UUID(e.logical), nil
}
