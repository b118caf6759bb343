package report

import (
	"fmt"
	"slices"

	"ovs-offline/internal/phrase"
)

// Status is how a step ended.
type Status string

// The statuses of a step. A step with several outcomes has the worst of them:
// Failed, then Unknown, Approximated, Restored, Idle.
const (
	Restored     Status = "restored"     // as on the live node, read back
	Approximated Status = "approximated" // with a default or a substitute, which Details name
	Unknown      Status = "unknown"      // the collected data does not say
	Failed       Status = "failed"       // the data was there and could not be restored
	Idle         Status = "nothing to do"
)

// Result is the part of the report about one step.
type Result struct {
	Step    string   `json:"step"`
	Status  Status   `json:"status"`
	Details []string `json:"details,omitempty"` // the worst first
	More    int      `json:"more,omitempty"`    // number of details beyond those in Details
}

// Outcome collects the details of one running step.
type Outcome struct {
	status  Status
	details map[Status][]string
	more    int
}

// NewOutcome returns the outcome of a step that has reported nothing yet.
func NewOutcome() *Outcome { return &Outcome{status: Idle, details: map[Status][]string{}} }

// maxDetails bounds the details of each status, and maxDetail the bytes of one:
// a recorded text can have a million lines. All are counted.
const (
	maxDetails = 1000
	maxDetail  = 4096
)

// severity orders statuses from Idle (0) to Failed.
func severity(status Status) int {
	return slices.Index([]Status{Idle, Restored, Approximated, Unknown, Failed}, status)
}

// Note records a detail under a status, or with an empty format the status alone.
func (o *Outcome) Note(status Status, format string, args ...any) {
	if severity(status) > severity(o.status) {
		o.status = status
	}
	switch {
	case format == "":
	case len(o.details[status]) == maxDetails:
		o.more++
	default:
		o.details[status] = append(o.details[status], phrase.Shorten(fmt.Sprintf(format, args...), maxDetail))
	}
}

// Result returns the part of the report about the step.
func (o *Outcome) Result(step string) Result {
	result := Result{Step: step, Status: o.status, More: o.more}
	for _, status := range []Status{Failed, Unknown, Approximated, Restored} {
		result.Details = append(result.Details, o.details[status]...)
	}
	return result
}
