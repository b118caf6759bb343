// Package expect compares what tests got with what they want.
package expect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Equal fails the test if got is not what it wants. It shows both, or of long values what
// differs. Nil and empty are the same. The values of say what was compared.
func Equal[T any](tb testing.TB, got, want T, of ...any) {
	tb.Helper()
	if cmp.Equal(got, want, cmpopts.EquateEmpty()) {
		return
	}
	var about strings.Builder
	for _, value := range of {
		fmt.Fprintf(&about, "%+v: ", value)
	}
	have, wanted := shown(got), shown(want)
	if len(have)+len(wanted) < 400 {
		tb.Errorf("%sgot %s, want %s", about.String(), have, wanted)
		return
	}
	tb.Errorf("%sgot (+) is not what is wanted (-):\n%s", about.String(), cmp.Diff(want, got, cmpopts.EquateEmpty()))
}

// shown returns a value with quotes around strings, and names before the fields of a struct.
func shown(value any) string {
	if text, ok := value.(fmt.Stringer); ok {
		return text.String()
	}
	return fmt.Sprintf("%#v", value)
}
