package report

import (
	"fmt"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
)

// Origin counts the flows of the integration bridge by whether the southbound database has the
// row that they were made from: a cookie is the beginning of its UUID (ovn-controller(8)).
type Origin struct {
	Bridge string `json:"bridge"`
	Flows  int    `json:"flows"` // with a cookie
	Known  int    `json:"known"` // those whose row is in the database
	// Changed is when the last transaction of the database was, and Recorded when the flows were
	// recorded, with RecordedAbout if that may be wrong by a day. A time that is not known is zero.
	Changed       time.Time `json:"changed,omitzero"`
	Recorded      time.Time `json:"recorded,omitzero"`
	RecordedAbout bool      `json:"recorded_about,omitempty"`
}

// The shares of known flows, in percent, below which a database is of another moment and of
// another deployment. Of nodes that were recorded with their own database, 99.6 to 100 % are
// known; nine minutes older, 86.5 %; of another deployment, none.
const (
	ofMoment     = 99
	ofDeployment = 50
)

// IsForeign reports whether the southbound database is not that from which the flows were made.
func (o *Origin) IsForeign() bool { return o != nil && 100*o.Known < ofMoment*o.Flows }

// Sentence describes a database that is foreign, "" for one that is not.
func (o *Origin) Sentence() string {
	if !o.IsForeign() {
		return ""
	}
	what := "of another moment than the flows"
	if 100*o.Known < ofDeployment*o.Flows {
		what = "of another deployment, zone or time than the flows"
	}
	return fmt.Sprintf("the OVN SB database is %s%s: of %d flows of %s, it has the logical flow or port of %d (%d %%): names, rules and what is computed from it may be wrong", what, o.transactionTime(), o.Flows, o.Bridge, o.Known, 100*o.Known/o.Flows)
}

// transactionTime describes how far the last transaction of the database is from the flows: " (its last
// transaction is of 2026-11-18 10:02:11Z, 72 h before the flows were recorded)", "" if it has
// no time.
func (o *Origin) transactionTime() string {
	if o.Changed.IsZero() {
		return ""
	}
	text := " (its last transaction is of " + show.Time(o.Changed)
	gap := o.Recorded.Sub(o.Changed)
	switch {
	case o.Recorded.IsZero():
		text += "; when the flows were recorded is not known"
	case o.RecordedAbout && gap.Abs() < 2*day:
		text += "; the flows were recorded about " + o.Recorded.Format(time.DateOnly)
	case o.RecordedAbout:
		text += fmt.Sprintf(", about %d days %s the flows were recorded", int(gap.Abs().Round(day)/day), timeOrder(gap))
	default:
		text += fmt.Sprintf(", %s %s the flows were recorded", phrase.Duration(gap.Abs()), timeOrder(gap))
	}
	return text + ")"
}

const day = 24 * time.Hour

// timeOrder returns "before" or "after": when the transaction was made, compared to the flows' recording.
func timeOrder(gap time.Duration) string {
	if gap < 0 {
		return "after"
	}
	return "before"
}
