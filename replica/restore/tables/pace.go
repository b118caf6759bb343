package tables

import (
	"fmt"
	"sync"
	"time"
)

// pace reports the progress of adding or reading back flows: their number, their
// rate, and the time that is left. It may be used concurrently.
type pace struct {
	report func(text string) // nil for none
	what   string
	began  time.Time

	mu       sync.Mutex
	count    int
	reported int // the count of the last report
}

func (t *Tables) pace(bridge Bridge, what string) *pace {
	return &pace{report: t.Progress, what: "flows of " + bridge.Name + ": " + what, began: time.Now()}
}

// paceStep is the number of flows between two reports.
const paceStep = 1000

// add counts flows that are done. Units of work may be flows, or bytes of the
// dump; done and total are 0 if unknown.
func (p *pace) add(flows int, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += flows
	if p.report == nil || p.count < p.reported+paceStep {
		return
	}
	p.reported = p.count
	text := fmt.Sprintf("%s %d", p.what, p.count)
	if spent := time.Since(p.began); spent > 0 {
		text += fmt.Sprintf(" (%.0f a second", float64(p.count)/spent.Seconds())
		if done > 0 && done <= total {
			left := time.Duration(float64(spent) / float64(done) * float64(total-done))
			text += fmt.Sprintf(", %d %%, %v left", done*100/total, left.Round(time.Second))
		}
		text += ")"
	}
	p.report(text)
}
