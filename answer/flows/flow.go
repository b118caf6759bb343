// Package flows lists the recorded flows of nodes in names: what each is for, which
// logical datapath and ports it matches, and what its counters were. It reads the
// collected dumps and databases; no replica needs to run.
package flows

import (
	"fmt"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/pass"
)

// Flow is a recorded flow in names.
type Flow struct {
	Node   string `json:"node,omitempty"` // of a set
	Bridge string `json:"bridge"`
	// Packets and Bytes are nil if the dump has no counters, and for a clause of a
	// conjunction, whose packets the flow with its conj_id counts.
	Packets  *uint64 `json:"packets,omitempty"`
	Bytes    *uint64 `json:"bytes,omitempty"`
	Table    int     `json:"table"`
	Stage    string  `json:"stage,omitempty"` // of OVN, or what the table is for
	Priority int     `json:"priority"`
	Cookie   string  `json:"cookie"`
	// Datapath, InPort and OutPort are the logical datapath and ports that the flow matches.
	Datapath string `json:"datapath,omitempty"`
	InPort   string `json:"inport,omitempty"`
	OutPort  string `json:"outport,omitempty"`
	// Match is the match without the fields that Datapath, InPort and OutPort stand for,
	// and with the names of ports.
	Match string `json:"match"`
	// For names what the flow was made from, in the words of its user where they are known.
	For string `json:"for,omitempty"`
	// Row and UUID are the northbound row that it was made from, or else the southbound row.
	Row  string `json:"row,omitempty"`
	UUID string `json:"uuid,omitempty"`
	// Candidates is the number of rows that the flow may be made from, if more than one.
	Candidates int `json:"candidates,omitempty"`
	// Clause is set for a clause of a conjunction.
	Clause bool `json:"clause,omitempty"`
	// Text is the flow as recorded, without its counters.
	Text string `json:"flow"`
}

// record is a recorded flow with its parsed key. Its strings are parts of its text.
type record struct {
	openflow.Flow
	openflow.Key
	metadata uint64 // the tunnel key of the datapath that the flow matches, 0 for none
	actions  string
}

// parse reads the text of a flow; ok is false if a number can't be read.
func parse(f openflow.Flow) (r record, ok bool) {
	key, err := openflow.ParseKey(f.Text)
	return record{f, key, key.Number("metadata"), f.Actions()}, err == nil
}

// parseRaw reads a flow without its text; ok is false if a number can't be read.
func parseRaw(f *openflow.RawFlow) (r record, ok bool) {
	key, err := f.Key()
	return record{openflow.Flow{Line: f.Line, Counters: f.Counters}, key, key.Number("metadata"), f.Actions}, err == nil
}

// matchedIn returns a flow that a packet matched, as a trace shows it.
func matchedIn(s pass.Stage) *record {
	key := s.Key()
	return &record{Key: key, metadata: key.Number("metadata")}
}

func (r *record) cookieText() string { return fmt.Sprintf("%#x", r.Cookie) }

// isClause reports whether the flow is a clause of conjunctions.
func (r *record) isClause() bool { return openflow.IsClause(r.actions) }
