package daemon

import (
	"slices"
	"sync"
)

// Remarks are lines for the report, each once, from any goroutine.
type Remarks struct {
	mu    sync.Mutex
	lines []string
}

// Add adds a line.
func (r *Remarks) Add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.lines, line) {
		r.lines = append(r.lines, line)
	}
}

// Lines are those that were added, in their order.
func (r *Remarks) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}
