package expect

import (
	"fmt"
	"strings"
	"testing"
)

// recorder is a test that only records its failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// TestBothSidesAreSaid also checks that equal values, and nil for something empty, are no failure.
func TestBothSidesAreSaid(t *testing.T) {
	r := &recorder{}
	Equal(r, 1, 1)
	Equal(r, []string{}, nil)
	if len(r.failures) > 0 {
		t.Errorf("failures of what is equal: %q", r.failures)
	}
	Equal(r, 1, 2, "the number of", []int{7})
	Equal(r, []string{"a b"}, []string{"a", "b"})
	Equal(r, strings.Repeat("same\n", 200)+"new\n", strings.Repeat("same\n", 200)+"old\n", "text")
	wanted := []string{`the number of: [7]: got 1, want 2`, `got []string{"a b"}, want []string{"a", "b"}`}
	if len(r.failures) != 3 || r.failures[0] != wanted[0] || r.failures[1] != wanted[1] || len(r.failures[2]) > 1000 ||
		!strings.Contains(r.failures[2], "new") {
		t.Errorf("got %q, want %q and a difference", r.failures, wanted)
	}
}
