package daemon

import (
	"slices"
	"sync"
)

// Remarks is a list of different lines for the report. Its methods may be called
// concurrently.
type Remarks struct {
	mu    sync.Mutex
	lines []string
}

// Add adds a line unless the list already has it.
func (r *Remarks) Add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.lines, line) {
		r.lines = append(r.lines, line)
	}
}

// Lines returns the lines in the order in which they were added.
func (r *Remarks) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}
