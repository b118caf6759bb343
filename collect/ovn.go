package collect

import (
	"fmt"

	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
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
	Node   string         `json:"node,omitempty"` // in whose report they are
	Source string         `json:"source"`         // the archive or file
}

// String returns the source for messages: "ctl-1 (sosreport-ctl-1-....tar.xz)".
func (f From) String() string {
	if f.Node == "" {
		return f.Source
	}
	return fmt.Sprintf("%s (%s)", f.Node, f.Source)
}

// originOf returns where an OVN database is from.
func originOf(db recording.Database) From {
	archive := archiveName(db.Source.Name)
	switch {
	case db.Holder != "":
		return From{Node: db.Holder, Source: archive}
	case archiveEnding.MatchString(archive):
		return From{Source: archive + ": " + db.Origin}
	}
	return From{Source: db.Origin}
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
		from := originOf(db)
		if last := len(ovn.From) - 1; last >= 0 && ovn.From[last].String() == from.String() {
			ovn.From[last].Kinds = append(ovn.From[last].Kinds, kind)
			continue
		}
		from.Kinds = []workdir.Kind{kind}
		ovn.From = append(ovn.From, from)
	}
	return ovn
}
