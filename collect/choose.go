package collect

import (
	"cmp"
	"slices"

	"ovs-offline/workdir/recording"
)

// choose returns the candidate that was recorded nearest in time, or nil and those
// among which time does not decide. Files with the same content are one candidate,
// and so are the databases of the members of a cluster: the most recent one is taken.
func choose(taken recording.Moment, list []candidate) (*candidate, []candidate) {
	list = nearest(taken, list)
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(b.Size, a.Size), cmp.Compare(a.String(), b.String()))
	})
	if len(list) == 1 || areCopies(list) || areMembers(list) {
		return &list[0], nil
	}
	return nil, list
}

// nearest returns the candidates that are nearest to a moment; all if a time is
// not known.
func nearest(taken recording.Moment, list []candidate) []candidate {
	if !taken.Known() || slices.ContainsFunc(list, func(candidate candidate) bool { return !candidate.taken.Known() }) {
		return list
	}
	byDay := taken.DayOnly || slices.ContainsFunc(list, func(candidate candidate) bool { return candidate.taken.DayOnly })
	least := slices.MinFunc(list, func(a, b candidate) int {
		return cmp.Compare(taken.Distance(a.taken, byDay), taken.Distance(b.taken, byDay))
	}).taken
	return slices.DeleteFunc(slices.Clone(list), func(candidate candidate) bool {
		return taken.Distance(candidate.taken, byDay) > taken.Distance(least, byDay)
	})
}

func areCopies(list []candidate) bool {
	return !slices.ContainsFunc(list, func(candidate candidate) bool { return candidate.SHA256 != list[0].SHA256 })
}

// areMembers reports whether the files are of different members of one cluster.
func areMembers(list []candidate) bool {
	servers := map[string]bool{}
	for _, candidate := range list {
		if candidate.server == "" || servers[candidate.server] || candidate.global != list[0].global {
			return false
		}
		servers[candidate.server] = true
	}
	return true
}
