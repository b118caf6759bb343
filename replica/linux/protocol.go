package linux

import "ovs-offline/replica/report"

// The requests that a keeper answers, each a line of JSON with a line as its answer.
const (
	OpReport     = "report"     // what was restored; it waits for the end of the restore
	OpNamespaces = "namespaces" // the namespaces
	OpPass       = "pass"       // a Question
	OpEnd        = "end"        // the keeper ends
)

// Request is what a client asks of a keeper.
type Request struct {
	Op       string    `json:"op"`
	Question *Question `json:"question,omitempty"`
}

// Response is the answer of a keeper.
type Response struct {
	Error      string              `json:"error,omitempty"`
	Report     []*report.Namespace `json:"report,omitempty"`
	Namespaces []Namespace         `json:"namespaces,omitempty"`
	Passage    *Passage            `json:"passage,omitempty"`
}
