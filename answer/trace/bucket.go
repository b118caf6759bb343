package trace

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"ovs-offline/answer/trace/follow"
)

// takenBuckets are the buckets that the packets of a session took, replies included. They are
// kept where an option selects a bucket.
type takenBuckets struct {
	mu   sync.Mutex
	list []follow.Branch // each once
}

// maxBuckets bounds the buckets that are kept, and so the memory.
const maxBuckets = 1000

func (t *takenBuckets) add(list []follow.Branch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, branch := range list {
		branch = follow.Branch{Bucket: branch.Bucket, Backend: branch.Backend}
		known := func(o follow.Branch) bool { return o.Bucket == branch.Bucket && o.Backend == branch.Backend }
		if len(t.list) < maxBuckets && !slices.ContainsFunc(t.list, known) {
			t.list = append(t.list, branch)
		}
	}
}

// CheckBucket returns an error if the options select a bucket, and no group on the way of the
// packets that were asked about, or of replies to them, has it: the option was ignored.
func (s *Session) CheckBucket() error {
	want := s.options.Bucket
	s.buckets.mu.Lock()
	defer s.buckets.mu.Unlock()
	met := s.buckets.list
	isWanted := func(branch follow.Branch) bool { return branch.Bucket == want || branch.Backend == want }
	switch {
	case want == "" || slices.ContainsFunc(met, isWanted):
		return nil
	case len(met) == 0:
		return fmt.Errorf("%w: no group on the way of the packet chooses a bucket by a hash: leave out the bucket %s", ErrQuestion, want)
	}
	var ids []string
	for _, branch := range met {
		text := branch.Bucket
		if branch.Backend != "" {
			text += " (" + branch.Backend + ")"
		}
		ids = append(ids, text)
	}
	return fmt.Errorf("%w: no group on the way of the packet has the bucket %s: they have %s", ErrQuestion, want, strings.Join(ids, ", "))
}

// bucketsOf returns the branches of a hop's tree that took a bucket.
func bucketsOf(h *follow.Hop) []follow.Branch {
	var all []follow.Branch
	for _, branch := range h.Branches {
		if branch.Bucket != "" {
			all = append(all, branch)
		}
		if branch.Next != nil {
			all = append(all, bucketsOf(branch.Next)...)
		}
	}
	return all
}
