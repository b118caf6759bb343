// Package sweep separates what `make test` runs from what `make sweep` adds: `make test` has each shape and each kind of
// truth once, and the sweep has the products of them, rows by the hundred and packets by the hundred.
package sweep

import (
	"os"
	"slices"
	"testing"
)

// Variable is the environment variable that makes a run a sweep.
const Variable = "OVS_OFFLINE_SWEEP"

// Whole reports whether this run is a sweep, which has all rows of all tests.
func Whole() bool { return os.Getenv(Variable) != "" }

// Only skips a test that `make sweep` alone runs. caught names the test of `make test` that catches the same faults.
func Only(tb testing.TB, caught string) {
	tb.Helper()
	if !Whole() {
		tb.Skipf("make sweep runs it; in make test, %s catches the same", caught)
	}
}

// Rows returns all rows in a sweep, and otherwise those of which kept is true.
func Rows[T any](rows []T, kept func(T) bool) []T {
	if Whole() {
		return rows
	}
	var some []T
	for _, row := range rows {
		if kept(row) {
			some = append(some, row)
		}
	}
	return some
}

// Named returns all rows in a sweep, and otherwise those with these names. A name that no row has fails the test, and
// so does no name at all: rows would be missing in silence.
func Named[T any](tb testing.TB, rows []T, name func(T) string, kept ...string) []T {
	tb.Helper()
	if len(kept) == 0 {
		tb.Error("no row is named")
	}
	for _, k := range kept {
		if !slices.ContainsFunc(rows, func(row T) bool { return name(row) == k }) {
			tb.Errorf("no row is named %q", k)
		}
	}
	return Rows(rows, func(row T) bool { return slices.Contains(kept, name(row)) })
}

// Spread returns all rows in a sweep, and otherwise about most of them, evenly spread and with the first.
func Spread[T any](rows []T, most int) []T {
	if Whole() || len(rows) <= most {
		return rows
	}
	var some []T
	for i := range most {
		some = append(some, rows[i*len(rows)/most])
	}
	return some
}

// Last returns all rows in a sweep, and otherwise the last: of releases in their order, the newest.
func Last[T any](rows []T) []T {
	if Whole() {
		return rows
	}
	return rows[len(rows)-1:]
}

// Count returns the size of something in a sweep, and otherwise the smaller one.
func Count(whole, small int) int {
	if Whole() {
		return whole
	}
	return small
}
