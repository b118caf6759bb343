package collect

import (
	"ovs-offline/internal/workdir"
)

// OVN is where the OVN databases of a node are from, and why it lacks some.
type OVN struct {
	From []From `json:"from,omitempty"`
	// Reason is why the node gets no databases, or lacks one.
	Reason string `json:"reason,omitempty"`
	// Lacking reports that the node uses OVN and has no database of one of the kinds.
	Lacking bool `json:"lacking,omitempty"`
}

// From is the source of some of a node's OVN databases.
type From struct {
	Kinds  []workdir.Kind `json:"kinds"`
	Source string         `json:"source"` // "ctl-1 (sosreport-ctl-1-....tar.xz)"
}

// OVN returns where the node's OVN databases are from.
func (p *Plan) OVN() OVN {
	ovn := OVN{Reason: p.NoOVN, Lacking: p.LacksOVN}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		used := p.Database(kind)
		if used == nil {
			continue
		}
		db := used.Database
		if db.Source == nil {
			db.Source, db.Holder = &p.Source, p.Host
		}
		source := describeOrigin(db)
		if last := len(ovn.From) - 1; last >= 0 && ovn.From[last].Source == source {
			ovn.From[last].Kinds = append(ovn.From[last].Kinds, kind)
			continue
		}
		ovn.From = append(ovn.From, From{Kinds: []workdir.Kind{kind}, Source: source})
	}
	return ovn
}
