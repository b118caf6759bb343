// Package versions compares versions of Open vSwitch and OVN, and finds the versions of a node
// in its databases.
package versions

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// Pair are the versions of Open vSwitch and OVN, "" if unknown.
type Pair struct {
	OVS string `json:"ovs,omitempty"`
	OVN string `json:"ovn,omitempty"`
}

// Or returns the versions of p, with other's where p has none.
func (p Pair) Or(other Pair) Pair {
	return Pair{OVS: cmp.Or(p.OVS, other.OVS), OVN: cmp.Or(p.OVN, other.OVN)}
}

// String returns the known versions in the form "OVS 3.5.0, OVN 25.03.1".
func (p Pair) String() string {
	var known []string
	if p.OVS != "" {
		known = append(known, "OVS "+p.OVS)
	}
	if p.OVN != "" {
		known = append(known, "OVN "+p.OVN)
	}
	return strings.Join(known, ", ")
}

// Minor returns a version up to its minor number: OVS and OVN change their behaviour
// with it.
func Minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Has reports whether a version is the wanted one, or begins with its numbers: 3.1.0
// has 3.1, and 3.10.0 does not.
func Has(version, wanted string) bool { return strings.HasPrefix(version+".", wanted+".") }

var leadingNumbers = lazyregexp.New(`^[0-9]+(?:\.[0-9]+)*`)

// numbers returns the numbers at the beginning of a version: 3, 1, 0 of "3.1.0~git1".
func numbers(version string) []int {
	var list []int
	for text := range strings.SplitSeq(leadingNumbers.FindString(version), ".") {
		n, err := strconv.Atoi(text)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}

// Compare returns a negative number if version a is older than b, a positive one if it
// is newer, and 0 if their numbers are equal. An unknown version is older than all.
func Compare(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }
