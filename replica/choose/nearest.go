package choose

import (
	"cmp"
	"slices"

	"ovs-offline/internal/versions"
)

// Nearest returns the index of the versions nearest to the recorded ones, the first of
// equally near ones; -1 for an empty list. A recorded version that is unknown does not
// count, and an unknown version in the list is of tools that may lack the program.
func Nearest(recorded versions.Pair, list []versions.Pair) int {
	best := -1
	for i, pair := range list {
		if best < 0 || compare(recorded, pair, list[best]) < 0 {
			best = i
		}
	}
	return best
}

// compare returns a negative number if a is nearer to the recorded versions than b, 0 if
// they are equally near. First counts that both programs are there, then how many are of
// the recorded minor version, then Open vSwitch: it answers ofproto/trace.
func compare(recorded, a, b versions.Pair) int {
	ovsA, ovsB := distanceOf(recorded.OVS, a.OVS), distanceOf(recorded.OVS, b.OVS)
	ovnA, ovnB := distanceOf(recorded.OVN, a.OVN), distanceOf(recorded.OVN, b.OVN)
	count := func(test func(distance) bool, list ...distance) int {
		return len(slices.DeleteFunc(list, func(distance distance) bool { return !test(distance) }))
	}
	isUnknown := func(distance distance) bool { return distance == unknown }
	return cmp.Or(
		count(isUnknown, ovsA, ovnA)-count(isUnknown, ovsB, ovnB),
		count(distance.fits, ovsB, ovnB)-count(distance.fits, ovsA, ovnA),
		compareOne(recorded.OVS, a.OVS, b.OVS),
		compareOne(recorded.OVN, a.OVN, b.OVN),
	)
}

// compareOne compares the versions of one program.
func compareOne(recorded, a, b string) int {
	d, e := distanceOf(recorded, a), distanceOf(recorded, b)
	if d != e {
		return int(d) - int(e)
	}
	switch d {
	case newer, newerPatch:
		return versions.Compare(a, b)
	case older, olderPatch:
		return versions.Compare(b, a)
	}
	return 0
}

// distance is how far the version of a program is from the recorded one.
type distance int

// The distances, the nearest first. Newer programs read what older ones wrote, and add
// little to the answers; older ones reject it, or leave it out.
const (
	exact distance = iota // also where the recorded version is not known
	newerPatch
	olderPatch
	newer
	older
	unknown
)

func distanceOf(recorded, version string) distance {
	order := versions.Compare(version, recorded)
	switch {
	case recorded == "" || versions.Has(version, recorded):
		return exact
	case version == "":
		return unknown
	case order == 0:
		return exact
	case versions.Minor(version) == versions.Minor(recorded) && order > 0:
		return newerPatch
	case versions.Minor(version) == versions.Minor(recorded):
		return olderPatch
	case order > 0:
		return newer
	}
	return older
}

// fits reports whether a program behaves as the recorded one: it has the same minor
// version.
func (d distance) fits() bool { return d <= olderPatch }
