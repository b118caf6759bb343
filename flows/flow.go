// Package flows lists the recorded flows of nodes in names: what each is for, which
// logical datapath and ports it matches, and what its counters were. It reads the
// collected dumps and databases; no replica needs to run.
package flows

import (
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
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
	// Datapath, InPort and OutPort are the logical ones that the flow matches.
	Datapath string `json:"datapath,omitempty"`
	InPort   string `json:"inport,omitempty"`
	OutPort  string `json:"outport,omitempty"`
	// Match is the match without the fields that Datapath, InPort and OutPort stand for,
	// and with the names of ports.
	Match string `json:"match"`
	// For names what the flow was made from, in the words of its user where they are known.
	For string `json:"for,omitempty"`
	// Row and UUID are the northbound row that it was made from, or else the southbound one.
	Row  string `json:"row,omitempty"`
	UUID string `json:"uuid,omitempty"`
	// Candidates is the number of rows that the flow may be made from, if more than one.
	Candidates int `json:"candidates,omitempty"`
	// Clause is set for a clause of a conjunction.
	Clause bool `json:"clause,omitempty"`
	// Text is the flow as recorded, without its counters.
	Text string `json:"flow"`
}

// record is a recorded flow as far as its text shows it. Its strings are parts of the text.
type record struct {
	openflow.Flow
	cookie   uint64
	table    int
	priority int
	metadata uint64
	in, out  uint64 // the tunnel keys of the logical ports, 0 for none
	inPort   string // the OpenFlow port, "" for none
	fields   string // the match, without table, priority and cookie

	isClause    bool
	conjunction uint32 // the first of which the flow is a clause
}

// parse reads the text of a flow; ok is false if a number can't be read.
func parse(f openflow.Flow) (r record, ok bool) {
	r = record{Flow: f, priority: 32768} // what ovs-ofctl leaves out
	text := f.Text
	begin := -1 // of the first field of the match
	at := 0
	for at < len(text) {
		end := at + openflow.IndexSeparator(text[at:], true)
		token := text[at:end]
		if strings.HasPrefix(token, "actions=") {
			break
		}
		isMatch, ok := r.add(token)
		if !ok {
			return r, false
		}
		if isMatch && begin < 0 {
			begin = at
		}
		at = end + 1
	}
	r.readActions(strings.TrimPrefix(text[min(at, len(text)):], "actions="))
	if begin >= 0 {
		r.fields = strings.TrimRight(text[begin:min(at, len(text))], " ,")
	}
	return r, true
}

// parseRaw reads a flow but for its fields; ok is false if a number can't be read.
func parseRaw(f *openflow.RawFlow) (r record, ok bool) {
	r = record{Flow: openflow.Flow{Line: f.Line, Counters: f.Counters}, priority: 32768}
	for token := range f.Tokens() {
		if _, ok := r.add(token); !ok {
			return r, false
		}
	}
	r.readActions(f.Actions)
	return r, true
}

// add reads one field of a flow. isMatch is false for what stands before the match.
func (r *record) add(token string) (isMatch, ok bool) {
	name, value, _ := strings.Cut(token, "=")
	var err error
	var n uint64
	switch name {
	case "cookie":
		r.cookie, err = strconv.ParseUint(value, 0, 64)
		return false, err == nil
	case "table", "table_id":
		r.table, err = strconv.Atoi(value)
		return false, err == nil
	case "priority":
		r.priority, err = strconv.Atoi(value)
		return false, err == nil
	case "", "send_flow_rem", "reset_counts", "no_packet_counts", "no_byte_counts", "importance":
		return false, true
	case "in_port":
		r.inPort = value
		return true, true
	case "metadata", "reg14", "reg15":
		if n, err = strconv.ParseUint(value, 0, 64); err != nil {
			return true, true // masked
		}
	}
	switch name {
	case "metadata":
		r.metadata = n
	case "reg14":
		r.in = n
	case "reg15":
		r.out = n
	}
	return true, true
}

func (r *record) cookieText() string { return fmt.Sprintf("%#x", r.cookie) }
