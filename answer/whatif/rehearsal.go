package whatif

import (
	"context"
	"slices"
	"strings"

	"ovs-offline/answer/reach"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
)

// Rehearsal is what changes with an upgrade: what "what-if --ovn-version -o json" prints.
type Rehearsal struct {
	From versions.Pair `json:"from"` // the versions that computed the flows of the recorded release
	To   versions.Pair `json:"to"`
	Effect
	Mixed   []Mixed  `json:"mixed,omitempty"` // none if they were not asked for
	Doubts  []string `json:"doubts,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// Mixed is what changes while a part is upgraded.
type Mixed struct {
	First string `json:"first"` // what is upgraded first: northdFirst or controllersFirst
	Effect
	// Waiting are the nodes whose ovn-controllers wait until both are of one release: they have
	// ovn-match-northd-version, and keep the flows that they have, whatever changes.
	Waiting []string `json:"waiting,omitempty"`
}

// What can be upgraded first.
const (
	northdFirst      = "ovn-northd and the databases"
	controllersFirst = "ovn-controller"
)

// Effect is what changes from one phase of an upgrade to another.
type Effect struct {
	// Ended are sentences about daemons that ended (they crashed) before they had computed the flows. If there is one,
	// nothing else is known.
	Ended   []string  `json:"ended,omitempty"`
	Refused []Refusal `json:"refused"` // what the later programs log, and the earlier ones do not
	// Accepted is what the earlier programs log, and the later ones do not. It is no difference by itself: what comes of it
	// is one.
	Accepted []Refusal   `json:"accepted,omitempty"`
	Rows     []RowChange `json:"rows"`
	Pairs    Pairs       `json:"pairs"`
	// Flows are the nodes whose flows differ; nil if the phases have different tables, whose flows can't be compared.
	Flows []NodeResult `json:"flows"`
	// Logical has the logical flows that differ. It is nil if the flows of a node differ already, or if the releases belong to
	// different series, whose pipelines differ in most stages.
	Logical *Changes `json:"logical,omitempty"`
	// Collisions are the tables that collide in the later phase. If there is one, the result is not known for any pair.
	Collisions []Collision `json:"collisions,omitempty"`
}

// Pairs are the answers to who reaches whom.
type Pairs struct {
	Changed  []reach.Change `json:"changed"`
	Unknown  []reach.Change `json:"unknown,omitempty"` // undetermined in one of the phases only
	Compared int            `json:"compared"`
	// Undetermined is the number of cells with an undetermined answer.
	Undetermined int      `json:"undetermined"`
	Questions    int      `json:"questions"`
	Remarks      []string `json:"remarks,omitempty"`
}

// Differs reports whether the later programs do something else.
func (e *Effect) Differs() bool {
	return len(e.Ended)+len(e.Refused)+len(e.Rows)+len(e.Pairs.Changed)+len(e.Flows)+len(e.Collisions) > 0 || e.Logical != nil && !e.Logical.Equal()
}

// Differs reports whether a phase of the upgrade changes something.
func (r *Rehearsal) Differs() bool {
	return r.Effect.Differs() || slices.ContainsFunc(r.Mixed, func(m Mixed) bool { return m.Differs() })
}

// IsIncomplete reports whether something that could differ is not known.
func (r *Rehearsal) IsIncomplete() bool {
	return len(r.Doubts) > 0 || r.Pairs.Undetermined > 0 || slices.ContainsFunc(r.Mixed, func(m Mixed) bool { return m.Pairs.Undetermined > 0 })
}

// pairsOf sorts out the pairs whose result is not known. With collisions, these are all pairs.
func pairsOf(changes *reach.Changes, collisions []Collision) Pairs {
	pairs := Pairs{Changed: []reach.Change{}, Compared: changes.Compared, Undetermined: changes.Undetermined, Questions: changes.Answered, Remarks: changes.Remarks}
	for _, change := range changes.Changed {
		if change.Witness.Undetermined() || len(collisions) > 0 {
			pairs.Unknown = append(pairs.Unknown, change)
		} else {
			pairs.Changed = append(pairs.Changed, change)
		}
	}
	if len(collisions) > 0 {
		pairs.Undetermined = pairs.Compared
	}
	return pairs
}

// absent returns a sentence about the chassis that are not computed: ovn-northd uses a feature once all chassis have it.
// Those of other zones do not count.
func absent(ctx context.Context, d Deployment) ([]string, error) {
	content, _, err := file.Read(ctx, d.SB, ovn.ChassisTable, "Encap")
	if err != nil {
		return nil, err
	}
	all, err := ovn.ReadChassis(content)
	if err != nil {
		return nil, err
	}
	computed := map[string]bool{}
	for _, node := range d.Nodes {
		switched, _, err := file.Read(ctx, node.Dir.SwitchDatabase(), "Open_vSwitch")
		if err != nil {
			return nil, err
		}
		for _, row := range switched.Rows("Open_vSwitch") {
			computed[ovn.Settings(row.Map("external_ids")).Chassis()] = true
		}
	}
	var names []string
	for _, c := range all {
		if !computed[c.Name] && !c.Remote() {
			names = append(names, c.Title())
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return []string{"these chassis are not computed, and keep the features of their release, so that ovn-northd leaves out what needs newer ones: " + strings.Join(names, ", ")}, nil
}

// waiting returns the nodes whose ovn-controllers do nothing while ovn-northd is of another release.
func waiting(ctx context.Context, nodes []snapshot.Member) (found []string, err error) {
	for _, node := range nodes {
		content, _, err := file.Read(ctx, node.Dir.SwitchDatabase(), "Open_vSwitch")
		if err != nil {
			return nil, err
		}
		for _, row := range content.Rows("Open_vSwitch") {
			if ovn.Settings(row.Map("external_ids")).Get("ovn-match-northd-version") == "true" {
				found = append(found, node.Name)
			}
		}
	}
	return found, nil
}
