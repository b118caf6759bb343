package trace

import (
	"cmp"
	"errors"
	"net/netip"

	"ovs-offline/snapshot/names"
)

// Candidates is the document about an ambiguous name.
type Candidates struct {
	Ambiguous  string      `json:"ambiguous"`
	Candidates []Candidate `json:"candidates"`
}

// Candidate is an endpoint that an ambiguous name may mean.
type Candidate struct {
	Name    string       `json:"name"`
	Kind    names.Kind   `json:"kind"`
	Port    string       `json:"port,omitempty"` // the name of a logical port is not ambiguous
	MAC     string       `json:"mac,omitempty"`
	IPs     []netip.Addr `json:"ips,omitempty"`
	Network string       `json:"network,omitempty"`
	Node    string       `json:"node,omitempty"`
}

// CandidatesOf returns the document about an ambiguous name; ok is false for another error.
func CandidatesOf(err error) (document Candidates, ok bool) {
	ambiguous, ok := errors.AsType[*names.AmbiguousError](err)
	if !ok {
		return document, false
	}
	document.Ambiguous = ambiguous.Name
	for _, e := range ambiguous.Candidates {
		document.Candidates = append(document.Candidates, Candidate{e.Name, e.Kind, e.LogicalPort, e.MAC, e.IPs, cmp.Or(e.Network, e.Switch), e.Node})
	}
	return document, true
}
