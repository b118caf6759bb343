package report

import "fmt"

// Origin counts the flows of the integration bridge by whether the southbound database has the
// row that they were made from: a cookie is the beginning of its UUID (ovn-controller(8)).
type Origin struct {
	Bridge string `json:"bridge"`
	Flows  int    `json:"flows"` // with a cookie
	Known  int    `json:"known"` // those whose row is in the database
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
	return fmt.Sprintf("the OVN SB database is %s: of %d flows of %s, it has the logical flow or port of %d (%d %%): names, rules and what is computed from it may be wrong", what, o.Flows, o.Bridge, o.Known, 100*o.Known/o.Flows)
}
