// Package lines compares lists of lines for tests.
package lines

import "slices"

// Difference compares two lists in any order, and returns what only one of them
// has, sorted. A line that occurs twice counts twice.
func Difference(want, have []string) (missing, extra []string) {
	count := map[string]int{}
	for _, line := range have {
		count[line]++
	}
	for _, line := range want {
		if count[line] == 0 {
			missing = append(missing, line)
			continue
		}
		count[line]--
	}
	for line, n := range count {
		for range n {
			extra = append(extra, line)
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	return missing, extra
}
