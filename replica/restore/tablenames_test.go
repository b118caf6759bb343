package restore

import (
	"maps"
	"testing"
)

// TestNumbersOfNamedTablesFollowTheDump checks the numbers of tables that have only a name: above those before them,
// and not used.
func TestNumbersOfNamedTablesFollowTheDump(t *testing.T) {
	for name, c := range map[string]struct {
		used []string
		want map[string]int
	}{
		"names only":            {[]string{"classifier", "acl", "out"}, map[string]int{"classifier": 0, "acl": 1, "out": 2}},
		"between numbers":       {[]string{"0", "acl", "10", "out"}, map[string]int{"acl": 1, "out": 11}},
		"a number that is used": {[]string{"0", "acl", "1", "2", "deep"}, map[string]int{"acl": 3, "deep": 4}},
		"numbers only":          {[]string{"0", "60"}, map[string]int{}},
	} {
		if got := numberTables(c.used); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
